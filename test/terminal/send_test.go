package terminal_test

import (
	"strings"
	"testing"

	"agency"
	"agency/test/fixture"
)

// The text that a user types and the text that a script sends must not mix.
func TestSendWhileTheUserTypes(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	p := paneOf(t, f, r)
	c := agencyIn(t, f, 80, 24, "attach", r.Handle)
	c.shows("hello from the agent")
	c.types("half a li")
	p.shows("half a li")
	refused(t, f.Agency("send", r.Handle, "a message"), agency.CodeInputRefused, "the user is typing", "hint: ", "agency attach "+r.Handle)
	c.types("ne\r")
	p.line("got half a line")
	await(t, "the message goes", func() (bool, string) {
		sent := f.Agency("send", r.Handle, "a message")
		return sent.Exit == 0, sent.Stderr
	})
	p.line("got a message")
}

func TestSendManyLines(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, bytesOf("2004", "20"))
	p := paneOf(t, f, r)
	p.shows("ready")
	if out := succeeds(t, f.AgencyIn("one\ntwo\n", "send", r.Handle, "-")); !strings.HasPrefix(out, "delivered, not confirmed") {
		t.Errorf("send said %q", out)
	}
	p.shows("shown")
	if got, want := typed(p.screen()), `033 [ 2 0 0 ~ o n e \n t w o 033 [ 2 0 1 ~ \r`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSendWhatIsNoText(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, echo)
	for name, text := range map[string]string{"escape": "\x1b[201~rm -rf", "interrupt": "\x03", "return": "a\rb", "C1": "a\u009bb", "nothing": " \n"} {
		t.Run(name, func(t *testing.T) {
			refused(t, f.Agency("send", r.Handle, text), agency.CodeInputRefused)
		})
	}
	if screen := paneOf(t, f, r).screen(); strings.Contains(screen, "got") {
		t.Errorf("something was typed:\n%s", screen)
	}
}

func TestSendToAHeadlessRun(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, "sleep 1000", "--headless")
	refused(t, f.Agency("send", r.Handle, "hello"), agency.CodeInputRefused, "headless")
}
