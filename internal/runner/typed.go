package runner

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"agency"
	"agency/internal/killpoint"
)

// What a user types in the pane of a runner in the mode protocol is said to the runner in its
// protocol: the terminal of the pane is the wrapper's, and the runner reads none.

const (
	// pasteSpan is how long a line waits for the next one of a pasted text.
	pasteSpan = 100 * time.Millisecond
	// lineRoom is how many bytes of a line a terminal takes; it drops what is beyond.
	lineRoom = 4095
)

// hearPane says what the user types in the pane, a line or a pasted text at a time.
func (s *speech) hearPane() {
	lines := make(chan string)
	go s.readPane(lines)
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
			s.w.printNote("error: the terminal may have cut off a line, so nothing was said; use agency send --file FILE")
		case text != "":
			s.sayTyped(func() (agency.Saying, error) { return s.talk.Typed(uuid.NewString(), text) })
		}
	}
}

// readPane reads lines from the pane. A terminal continues after the key that ends an input.
func (s *speech) readPane(lines chan<- string) {
	defer close(lines)
	for in := bufio.NewReader(s.w.stdin); ; {
		line, err := in.ReadString('\n')
		if line != "" {
			lines <- strings.TrimSuffix(line, "\n")
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && term.IsTerminal(int(s.w.stdin.Fd())):
			time.Sleep(pasteSpan)
		default:
			return
		}
	}
}

// interruptKey interrupts the agent's turn, as the key for it does in the pane. A key that is pressed
// while the agent has not acknowledged the one before adds nothing.
func (s *speech) interruptKey() {
	if !s.pressed.CompareAndSwap(false, true) {
		return
	}
	defer s.pressed.Store(false)
	s.sayTyped(func() (agency.Saying, error) {
		return agency.Saying{Kind: agency.SaysInterrupt, ID: uuid.NewString(), By: agency.User}, nil
	})
}

// keepTyped adds to the evidence what was typed, so that the record has it as if a client had said it.
func (s *speech) keepTyped(at time.Time, said agency.Said) {
	said.Terminal = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speaker.Keep([]agency.Evidence{{At: at, Source: agency.FromProtocol, Signal: agency.SignalSaid, Said: &said}})
}

// sayTyped says what was typed, and shows in the pane why it cannot be said, and what the agent has
// not acknowledged.
func (s *speech) sayTyped(typed func() (agency.Saying, error)) {
	s.mu.Lock()
	x, err := typed()
	s.mu.Unlock()
	at := killpoint.Now().UTC()
	var delivery agency.Delivery
	if err == nil {
		delivery, err = s.w.say(&x)
	}
	if err == nil {
		s.keepTyped(at, x.Said(delivery.Confirmed))
	}
	switch e := agency.AsError(err); {
	case err != nil && e.Hint != "":
		s.w.printNote("error: " + e.Message + "\r\nagency: hint: " + e.Hint)
	case err != nil:
		s.w.printNote("error: " + e.Message)
	case !delivery.Confirmed:
		s.w.printNote("written, and not acknowledged yet")
	}
}
