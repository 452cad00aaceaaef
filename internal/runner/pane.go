package runner

import (
	"fmt"
	"io"
	"sync"
	"time"

	"agency"
)

const (
	// paneBuffer is how far a terminal may lag behind a headless runner before output is skipped on
	// it.
	paneBuffer = 512 << 10
	// paneLimit is how long a terminal may take for the last output.
	paneLimit = 500 * time.Millisecond
)

// pane shows the output of a runner without a terminal. A slow pane never slows the runner: it skips output,
// which the logs have.
type pane struct {
	w       io.Writer
	mu      sync.Mutex
	more    sync.Cond
	next    []byte
	skipped int64
	closed  bool
	done    chan struct{}
}

func newPane(w io.Writer) *pane {
	p := &pane{w: w, next: make([]byte, 0, paneBuffer), done: make(chan struct{})}
	p.more.L = &p.mu
	go p.run()
	return p
}

func (p *pane) show(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.next)+len(b) > paneBuffer {
		p.skipped += int64(len(b))
		return
	}
	p.next = append(p.next, b...)
	p.more.Signal()
}

func (p *pane) run() {
	defer close(p.done)
	writing := make([]byte, 0, paneBuffer)
	for {
		p.mu.Lock()
		for len(p.next) == 0 && p.skipped == 0 && !p.closed {
			p.more.Wait()
		}
		p.next, writing = writing[:0], p.next
		skipped := p.skipped
		p.skipped = 0
		p.mu.Unlock()
		if len(writing) == 0 && skipped == 0 {
			return
		}
		// The error of a pane that is gone does not affect the runner.
		_, _ = p.w.Write(writing)
		if skipped > 0 {
			_, _ = fmt.Fprintf(p.w, "\n[agency: %d bytes not shown here, the logs have them]\n", skipped)
		}
	}
}

// close waits a moment for a terminal that still takes output.
func (p *pane) close() {
	p.mu.Lock()
	p.closed = true
	p.more.Signal()
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-time.After(paneLimit):
	}
}

// printNote shows a line of agency in the pane.
func printNote(pane io.Writer, words string) {
	_, _ = fmt.Fprintf(pane, "agency: %s\r\n", words)
}

// printEnd shows in the pane, below the last output, that the runner has ended. It does not wait for a
// terminal that takes no output.
func printEnd(pane io.Writer, exit *agency.Exit) {
	how := fmt.Sprintf("exit status %d", exit.ExitCode)
	if exit.Signal != "" {
		how = exit.Signal
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		_, _ = fmt.Fprintf(pane, "\r\nagency: the agent has ended: %s\r\n", how)
	}()
	select {
	case <-shown:
	case <-time.After(paneLimit):
	}
}
