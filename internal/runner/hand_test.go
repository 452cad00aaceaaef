package runner_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
)

// anything is a look at a terminal that takes all input.
func anything(context.Context, agency.Typing) (bool, error) { return false, nil }

// dialog is a look at a terminal that shows a dialog.
func dialog(context.Context, agency.Typing) (bool, error) {
	return false, agency.Errorf(agency.CodeInputRefused, "a dialog is open")
}

// Nothing is typed unless a look finds the terminal clear.
func TestNothingIsTypedIntoADialog(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	if _, err := link.Input(t.Context(), "hello", dialog); !agency.IsCode(err, agency.CodeInputRefused) || !strings.Contains(err.Error(), "a dialog is open") {
		t.Errorf("input: %v", err)
	}
	if err := link.Keys(t.Context(), "1", dialog); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("keys: %v", err)
	}
	if err := link.Keys(t.Context(), "q", anything); err != nil {
		t.Error(err)
	}
	f.logged("readyq")
}

// A dialog that opens between a text and its Enter gets no Enter.
func TestNoEnterIntoADialog(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; head -c 5 >/dev/null; printf 'Sure? '; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	look := func(ctx context.Context, next agency.Typing) (bool, error) {
		if !next.Enter {
			return false, nil
		}
		f.logged("Sure? ")
		return dialog(ctx, next)
	}
	_, err := link.Input(t.Context(), "hello", look)
	if !agency.IsCode(err, agency.CodeInputRefused) || !strings.Contains(err.Error(), "but not Enter") {
		t.Errorf("got %v", err)
	}
	if err := link.Keys(t.Context(), "q", anything); err != nil {
		t.Error(err)
	}
	f.logged("Sure? q")
}

// A message that got no Enter is not typed again while it is there: it gets the Enter.
func TestTextWithoutEnter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unsent bool
		want   string
	}{
		"still there": {true, "readyhello\r"},
		"gone":        {false, "readyhellohello\r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepare(t, `stty raw -echo; printf ready; exec cat`)
			d := f.listen(0)
			f.begin(true)
			link := receive(t, "link", d.links)
			f.logged("ready")
			_, err := link.Input(t.Context(), "hello", func(ctx context.Context, next agency.Typing) (bool, error) {
				if next.Enter {
					return dialog(ctx, next)
				}
				return false, nil
			})
			if !agency.IsCode(err, agency.CodeInputRefused) {
				t.Fatal(err)
			}
			var left string
			_, err = link.Input(t.Context(), "hello", func(_ context.Context, next agency.Typing) (bool, error) {
				left = cmp.Or(left, next.Last)
				return next.Last != "" && c.unsent, nil
			})
			if err != nil || left != "hello" {
				t.Fatalf("%v, asked about %q", err, left)
			}
			f.logged(c.want)
		})
	}
}

// A key is pressed again only when the one before was read: a runner that wakes up would take both, the
// second perhaps for another dialog.
func TestKeysWaitForTheOnesBefore(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; while [ ! -e go ]; do sleep 0.01; done; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	if err := link.Keys(t.Context(), "y", anything); err != nil {
		t.Fatal(err)
	}
	if err := link.Keys(t.Context(), "y", anything); !agency.IsCode(err, agency.CodeInputRefused) || !strings.Contains(err.Error(), "nothing of this was typed") {
		t.Errorf("got %v", err)
	}
	if _, err := link.Input(t.Context(), "hello", anything); !agency.IsCode(err, agency.CodeInputRefused) || !strings.Contains(err.Error(), "nothing of this was typed") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.logged("readyy")
	if err := link.Keys(t.Context(), "n", anything); err != nil {
		t.Error(err)
	}
	f.logged("readyyn")
}

// A paste that a runner stopped reading is ended before anything else is typed.
func TestPasteCutOff(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf '\033[?2004hready'; while [ ! -e go ]; do sleep 0.01; done; cat >got`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	if _, err := link.Input(t.Context(), strings.Repeat("long ", 20_000), anything); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Fatalf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Input(t.Context(), "hello", anything); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both messages", func() bool {
		return strings.HasSuffix(f.raw("got"), "\x1b[201~\x1b[200~hello\x1b[201~\r")
	})
}

// A backslash at the end of a message does not turn the Enter into a new line.
func TestBackslashBeforeEnter(t *testing.T) {
	t.Parallel()
	f := prepare(t, `printf ready; read line; echo " got $line."; exec sleep 100`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	if got, err := link.Input(t.Context(), `look in C:\`, anything); err != nil || !got.Confirmed {
		t.Errorf("delivery %+v, %v", got, err)
	}
	f.logged("got look in C:")
}

// Output that was printed since the look began makes another look necessary.
func TestLookAgainAtWhatWasPrinted(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; while [ ! -e go ]; do sleep 0.01; done; printf dialog; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	looks := 0
	err := link.Keys(t.Context(), "q", func(ctx context.Context, next agency.Typing) (bool, error) {
		if looks++; looks > 1 {
			return dialog(ctx, next)
		}
		if err := os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600); err != nil {
			return false, err
		}
		f.logged("dialog")
		return false, nil
	})
	if !agency.IsCode(err, agency.CodeInputRefused) || looks != 2 {
		t.Errorf("got %v after %d looks", err, looks)
	}
}

// Enter is typed after the runner has read the text, even if it was stopped for long: no read
// returns both.
func TestEnterWaitsForTheText(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; while [ ! -e go ]; do sleep 0.01; done
		dd bs=100 count=1 2>/dev/null >first; dd bs=100 count=1 2>/dev/null >second; printf done; exec sleep 100`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	typed, entered := false, false
	look := func(_ context.Context, next agency.Typing) (bool, error) {
		entered = next.Enter
		if !typed { // the runner begins to read a while after the text was typed
			if typed = true; next.Enter {
				t.Error("Enter came first")
			}
			time.AfterFunc(time.Second, func() { _ = os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600) })
		}
		return false, nil
	}
	if _, err := link.Input(t.Context(), "hello", look); err != nil || !entered {
		t.Fatalf("%v, after a look before Enter: %t", err, entered)
	}
	f.logged("done")
	if first, second := f.raw("first"), f.raw("second"); first != "hello" || second != "\r" {
		t.Errorf("read %q, then %q", first, second)
	}
}

// A program that does not read gets no Enter; one that reads and prints nothing confirms nothing.
func TestInputWithoutEffect(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]agency.Code{
		`exec sleep 100`:      agency.CodeInputRefused,
		`exec cat >/dev/null`: "",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			f := prepare(t, `stty raw -echo; echo ready; `+script)
			d := f.listen(0)
			f.begin(true)
			link := receive(t, "link", d.links)
			f.logged("ready")
			got, err := link.Input(t.Context(), "hello", anything)
			if code := agency.AsError(err); err != nil && code.Code != want || err == nil && want != "" || got.Confirmed || got.Effect != agency.EffectNone {
				t.Errorf("delivery %+v, %v", got, err)
			}
		})
	}
}

// A program that reads lines confirms by reading them.
func TestInputByLines(t *testing.T) {
	t.Parallel()
	f := prepare(t, `echo ready; read one; read two; exec sleep 100`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	for range 2 {
		if got, err := link.Input(t.Context(), "a line", anything); err != nil || !got.Confirmed || got.Effect != agency.EffectRead {
			t.Errorf("delivery %+v, %v", got, err)
		}
	}
	if got, err := link.Input(t.Context(), "one more", anything); err != nil || got.Confirmed {
		t.Errorf("a line that nothing reads: delivery %+v, %v", got, err)
	}
}
