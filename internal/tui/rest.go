package tui

import (
	"bytes"
	"context"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// restAfter is how long nothing must have happened before the dashboard rests.
	restAfter = 50 * time.Millisecond
	// restFor is how long it rests at most. The program cannot end meanwhile when its input breaks.
	restFor = 5 * time.Second
	// restMark is what the program prints to rest. It never reaches the terminal.
	restMark = "\x00"
)

// restful is a terminal on which a program of bubbletea rests while nothing happens. By itself, the loop
// of the program that draws wakes up 60 times a second to see whether there is a new frame. It has no way
// to wait for one, but it writes what the program prints raw before it draws. So Write blocks that loop at
// restMark until the next message. The program prints two marks before that: when the loop writes the
// second one, it has drawn all that changed before the first one.
type restful struct {
	*os.File

	ctx  context.Context //nolint:containedctx // ends the rest
	send func(tea.Msg)   // to the program

	mu    sync.Mutex
	timer *time.Timer   // prints the first mark
	marks int           // printed since the last message
	awake chan struct{} // closed by the next message
}

func newRestful(ctx context.Context, f *os.File) *restful {
	return &restful{File: f, ctx: ctx, awake: make(chan struct{})}
}

// begin lets a program rest that writes to this terminal and uses filter.
func (r *restful) begin(p *tea.Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send = p.Send
	r.timer = time.AfterFunc(restAfter, r.print)
}

// print has the program print a mark.
func (r *restful) print() { r.send(tea.RawMsg{Msg: restMark}) }

// filter is the filter of the program: it gets each message before the program handles it. Every message
// but a mark ends the rest. A third mark is dropped, because the loop may rest by now, and the program could
// print nothing else meanwhile.
func (r *restful) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	if raw, ok := msg.(tea.RawMsg); ok && raw.Msg == restMark {
		if r.marks == 2 {
			return nil
		}
		r.marks++
		return msg
	}
	r.marks = 0
	close(r.awake)
	r.awake = make(chan struct{})
	if r.timer != nil {
		r.timer.Reset(restAfter)
	}
	return msg
}

// Write implements io.Writer.
func (r *restful) Write(b []byte) (int, error) {
	marks := bytes.Count(b, []byte(restMark))
	if text := bytes.ReplaceAll(b, []byte(restMark), nil); len(text) > 0 {
		if _, err := r.File.Write(text); err != nil {
			return 0, err
		}
	}
	if marks > 0 {
		r.rest(marks)
	}
	return len(b), nil
}

// rest waits for the next message, or has the program print another mark if the loop may not have drawn yet
// what changed before the first one.
func (r *restful) rest(marks int) {
	r.mu.Lock()
	drawn, awake := r.marks == 2 && marks == 1, r.awake
	r.mu.Unlock()
	if drawn {
		select {
		case <-awake:
		case <-r.ctx.Done():
		case <-time.After(restFor):
		}
	}
	r.mu.Lock()
	r.marks = min(r.marks, 1)
	another := r.marks == 1
	r.mu.Unlock()
	if another {
		go r.print()
	}
}
