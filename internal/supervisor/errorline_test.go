package supervisor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// printer is a run whose output is matched with the pattern "error: ".
type printer struct {
	*testing.T
	w *world
	r *agency.Run
	p *wrapper
}

func newPrinter(t *testing.T, w *world, kind agency.RunnerKind, headless bool) *printer {
	t.Helper()
	w.sup.Observer.Errors.SetPatterns(&observe.ErrorPatterns{Any: []*regexp.Regexp{regexp.MustCompile("^(?:error: )")}})
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
	request := w.request("prints")
	request.Spec.Runner.Kind, request.Spec.Headless = kind, &headless
	if kind == agency.Custom {
		request.Spec.Runner.Name = "aider"
	}
	r, err := w.createRun(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return &printer{t, w, r, p}
}

// says makes the run print a text, and its wrapper report it.
func (p *printer) says(stream, text string) {
	p.Helper()
	path := filepath.Join(p.p.dir, "logs", stream+".log")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		p.Fatal(err)
	}
	if _, err = f.WriteString(text); err != nil {
		p.Fatal(err)
	}
	if err := f.Close(); err != nil {
		p.Fatal(err)
	}
	p.tells()
}

// tells sends the update that a wrapper sends once a second.
func (p *printer) tells() {
	p.Helper()
	time.Sleep(2 * time.Second)
	now := time.Now()
	if err := p.w.sup.Wrappers.Update(p.Context(), p.r.ID, 1, agency.WrapperUpdate{Output: &now}); err != nil {
		p.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// want fails unless this number of errors was found, the last one with this text.
func (p *printer) want(errors int, text string) {
	p.Helper()
	s := p.w.run(p.r.ID).Attempt.AgentState
	got := ""
	if s.Printed != nil {
		got = s.Printed.Text
	}
	if n := p.w.count(p.r.ID, agency.AgentStateChanged); n != errors || got != text {
		p.Errorf("%d errors, the last one %q; want %d, %q", n, got, errors, text)
	}
}

// Complete new lines count, from their beginning, once each.
func TestPrinted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPrinter(t, w, agency.Shell, false)
		p.says("runner", "it says: error: no\r\n  error: quoted\r\n> error: quoted\r\nerror: of which the e")
		p.want(0, "")
		p.says("runner", "nd is missing\r\n")
		p.want(1, "error: of which the end is missing")
		p.tells()
		w.restart()
		if err := p.p.connect(); err != nil {
			t.Fatal(err)
		}
		w.sup.Observer.Errors.SetPatterns(&observe.ErrorPatterns{Any: []*regexp.Regexp{regexp.MustCompile("^(?:error: )")}})
		p.tells()
		p.want(1, "error: of which the end is missing")
		// While it is open, more lines change nothing. After a message they do.
		p.says("runner", "error: two\r\n")
		p.want(1, "error: of which the end is missing")
		if _, _, err := w.sup.Input.Send(t.Context(), p.r.Handle, "go on", ""); err != nil {
			t.Fatal(err)
		}
		p.says("runner", "\x1b[31merror: red\x1b[0m  \r\n")
		p.want(2, "error: red")
	})
}

// A line is matched as it looks after it was painted over, and endless output is examined in parts.
func TestPrintedFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPrinter(t, w, agency.Custom, true)
		p.says("stdout", "error: 10 %\rerror: 20 %\rdone\n")
		p.want(0, "")
		p.says("stdout", strings.Repeat("x", 3<<20))
		p.says("stdout", "error: the end of a long line\n")
		p.tells()
		p.tells()
		p.want(0, "")
		p.says("stderr", "error: short\n")
		p.want(1, "error: short")
	})
}

// An agent without a terminal quotes its model in its stream. Beside the stream its program prints.
func TestPrintedBesideStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPrinter(t, w, "claude_code", true)
		p.says("stdout", "error: where nothing says what the lines are\n")
		p.want(0, "")
		w.tell(p.p, agency.Evidence{Source: agency.FromStream, Signal: agency.SignalSession})
		w.watcher.hints <- filepath.Join(p.p.dir, agency.EventsFile)
		synctest.Wait()
		p.says("stdout", `{"type":"assistant","text":"error: quoted"}`+"\n"+`{"text":`)
		p.says("stdout", `"\nerror: quoted"}`+"\n")
		p.says("stderr", "a warning\n")
		p.says("stderr", "error: quota\n")
		if got := w.run(p.r.ID).Attempt.AgentState.Printed; got == nil || got.Text != "error: quota" {
			t.Errorf("got %+v", got)
		}
	})
}

// On an agent's terminal only lines with its program's own mark count, and only new ones.
func TestPrintedOnTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.ErrorMarksOf = map[agency.RunnerKind][]string{"codex": {"■ "}}
		p := newPrinter(t, w, "codex", false)
		show := func(text string) {
			w.tmux.mu.Lock()
			w.tmux.Screen = text
			w.tmux.mu.Unlock()
			p.tells()
		}
		show("› why do I see error: quota?\n• You see\n  ■ error: quota\nerror: quota\n› \n")
		p.want(0, "")
		show("› go\n■ error: quota\n› \n")
		p.want(1, "error: quota")
		show("› go\n■ error: quota\n› well\n")
		p.want(1, "error: quota")
		if _, _, err := w.sup.Input.Send(t.Context(), p.r.Handle, "well", ""); err != nil {
			t.Fatal(err)
		}
		show("› go\n■ error: quota\n› well\n• Working\n")
		p.want(1, "error: quota")
		show("› go\n■ error: quota\n› well\n■ error: quota\n› \n")
		p.want(2, "error: quota")
	})
}

// New patterns apply to what is printed from then on; those of a preset replace the others.
func TestPrintedPatterns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newPrinter(t, w, agency.Shell, false)
		p.says("runner", "panic: one\n")
		panics := []*regexp.Regexp{regexp.MustCompile("^(?:panic: )")}
		w.sup.Observer.Errors.SetPatterns(&observe.ErrorPatterns{Any: panics, Presets: map[string][]*regexp.Regexp{"": nil}})
		p.tells()
		p.want(0, "")
		p.says("runner", "cut off here\npanic: two\n")
		p.want(1, "panic: two")
		w.sup.Observer.Errors.SetPatterns(&observe.ErrorPatterns{Any: panics, Presets: map[string][]*regexp.Regexp{"": {regexp.MustCompile("^(?:never)")}}})
		p.tells()
		if _, _, err := w.sup.Input.Send(t.Context(), p.r.Handle, "go on", ""); err != nil {
			t.Fatal(err)
		}
		p.says("runner", "one line\npanic: three\n")
		p.want(1, "panic: two")
	})
}
