package runner

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"agency"
	"agency/internal/killpoint"
)

const (
	// pasteSpan is how long a line waits for the next one of a pasted text.
	pasteSpan = 100 * time.Millisecond
	// lineRoom is how many bytes of a line a terminal takes; it drops the rest.
	lineRoom = 4095
)

// console is the pane of a runner in the mode protocol. Such a runner does not read a terminal, so the
// wrapper reads what the user types in the pane, and says it to the runner in its protocol.
type console struct {
	speech        *speech
	stdin, stdout *os.File    // of the pane
	interrupting  atomic.Bool // an interruption of the user is on its way
}

// read says what the user types, a line or a pasted text at a time.
func (c *console) read() {
	lines := make(chan string)
	go c.readLines(lines)
	for line := range lines {
		text, cut := line, len(line) >= lineRoom
		for more := true; more; {
			select {
			case next, ok := <-lines:
				if more = ok; ok {
					text, cut = text+"\n"+next, cut || len(next) >= lineRoom
				}
			case <-time.After(pasteSpan):
				more = false
			}
		}
		switch text = strings.TrimSpace(text); {
		case cut:
			printNote(c.stdout, "error: the terminal may have cut off a line, so nothing was said; use agency send --file FILE")
		case text != "":
			c.say(func() (agency.Saying, error) { return c.speech.talk.Typed(uuid.NewString(), text) })
		}
	}
}

// readLines reads lines from the pane. A terminal continues after the key that ends an input.
func (c *console) readLines(lines chan<- string) {
	defer close(lines)
	for in := bufio.NewReader(c.stdin); ; {
		line, err := in.ReadString('\n')
		if line != "" {
			lines <- strings.TrimSuffix(line, "\n")
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && term.IsTerminal(int(c.stdin.Fd())):
			time.Sleep(pasteSpan)
		default:
			return
		}
	}
}

// interrupt interrupts the agent's turn: the user pressed the key for it in the pane. A key that the user
// presses before the agent has acknowledged the previous one adds nothing.
func (c *console) interrupt() {
	if !c.interrupting.CompareAndSwap(false, true) {
		return
	}
	defer c.interrupting.Store(false)
	c.say(func() (agency.Saying, error) {
		return agency.Saying{Kind: agency.SaysInterrupt, ID: uuid.NewString(), By: agency.User}, nil
	})
}

// say says what the user typed. It calls typed, which returns that, under the lock of the speech. It shows
// in the pane an error, or that the agent has not acknowledged it yet.
func (c *console) say(typed func() (agency.Saying, error)) {
	c.speech.mu.Lock()
	x, err := typed()
	c.speech.mu.Unlock()
	at := killpoint.Now().UTC()
	var delivery agency.Delivery
	if err == nil {
		delivery, err = c.speech.say(&x)
	}
	if err == nil {
		c.keep(at, x.Said(delivery.Confirmed))
	}
	switch e := agency.AsError(err); {
	case err != nil && e.Hint != "":
		printNote(c.stdout, "error: "+e.Message+"\r\nagency: hint: "+e.Hint)
	case err != nil:
		printNote(c.stdout, "error: "+e.Message)
	case !delivery.Confirmed:
		printNote(c.stdout, "written, and not acknowledged yet")
	}
}

// keep adds to the evidence what the user typed, so that the record has it as if a client had said it.
func (c *console) keep(at time.Time, said agency.Said) {
	said.Terminal = true
	c.speech.mu.Lock()
	defer c.speech.mu.Unlock()
	c.speech.speaker.Keep([]agency.Evidence{{At: at, Source: agency.FromProtocol, Signal: agency.SignalSaid, Said: &said}})
}
