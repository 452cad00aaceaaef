package tui

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// text is a program that shows a text, until it is told another one.
type text string

func (t text) Init() tea.Cmd { return nil }

func (t text) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if said, ok := msg.(string); ok {
		return text(said), tea.SetClipboard(said)
	}
	return t, nil
}

func (t text) View() tea.View { return tea.NewView(string(t)) }

// resting runs a program on a terminal that rests, and returns both, what is drawn, and how it ended.
func resting(ctx context.Context, t *testing.T) (r *restful, p *tea.Program, drawn <-chan string, ended <-chan error) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r = newRestful(ctx, in)
	p = tea.NewProgram(text("first frame"), tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(r), tea.WithFilter(r.filter), tea.WithWindowSize(80, 24))
	r.begin(p)
	frames, end := make(chan string, 1000), make(chan error, 1)
	go func() {
		defer close(frames)
		buf := make([]byte, 1<<16)
		for {
			n, err := out.Read(buf)
			if err != nil {
				return
			}
			frames <- string(buf[:n])
		}
	}()
	go func() {
		_, err := p.Run()
		end <- err
		_ = in.Close()
	}()
	return r, p, frames, end
}

// until reads what is drawn until a text is there.
func until(t *testing.T, drawn <-chan string, want string) {
	t.Helper()
	for all := ""; ; {
		select {
		case part, ok := <-drawn:
			all += part
			if strings.Contains(all, want) {
				return
			}
			if !ok {
				t.Fatalf("%q is not in %q", want, all)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q is not in %q", want, all)
		}
	}
}

// atRest waits until the loop of frames rests.
func atRest(t *testing.T, r *restful) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		marks := r.marks
		r.mu.Unlock()
		if marks == 2 {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it never rests")
		}
	}
}

// At rest nothing wakes up, every message is drawn, no mark reaches the terminal, and the program ends.
func TestRest(t *testing.T) {
	t.Parallel()
	r, p, drawn, ended := resting(t.Context(), t)
	until(t, drawn, "first frame")
	for _, said := range []string{"one", "two", "three"} {
		atRest(t, r)
		p.Send(said)
		until(t, drawn, said)
	}
	atRest(t, r)
	p.Quit()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for part := range drawn {
		if strings.Contains(part, restMark) {
			t.Errorf("a mark is in %q", part)
		}
	}
}

// A program that rests ends with its context, and every message of many is drawn at the latest when
// it rests again.
func TestRestAmongMany(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, p, drawn, ended := resting(ctx, t)
	atRest(t, r)
	for i := range 200 {
		p.Send(strings.Repeat("x", i%7))
		if i%50 == 0 {
			atRest(t, r)
		}
	}
	p.Send("the last of them")
	until(t, drawn, "the last of them")
	atRest(t, r)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
