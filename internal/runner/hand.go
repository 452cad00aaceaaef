package runner

import (
	"errors"
	"os"
	"time"

	"agency"
)

// How long a hand waits for a runner.
const (
	writeLimit = 5 * time.Second  // for the runner's terminal to take what is typed
	readLimit  = 10 * time.Second // for the runner to read it
	readEvery  = 2 * time.Millisecond
	// steadyLooks is how many looks in a row must find that all is read.
	steadyLooks = 10
	// mostLooks is how often the screen is looked at again because the runner printed meanwhile.
	// For a runner that prints all the time, the last look is recent enough by then.
	mostLooks = 5
)

// hand types into a runner's terminal. It is the only type that does, and it types nothing before a
// look at what the terminal shows; only a user's keys take another way.
type hand struct {
	w       *wrapper
	look    func() error // returns an error if nothing may be typed on what the terminal shows
	release func()
}

// takeTerminal prevents all other typing until the hand is released. It is refused when the runner
// does not read its input, and while a user types.
func (w *wrapper) takeTerminal(look func() error) (*hand, error) {
	if w.launch.Mode == agency.ModeProtocol {
		return nil, agency.Errorf(agency.CodeInputRefused, "agency types nothing into %s, since it speaks the protocol of the agent", w.launch.RunID)
	}
	if w.launch.Headless {
		return nil, agency.Errorf(agency.CodeInputRefused, "the run %s is headless: it reads no messages", w.launch.RunID)
	}
	select {
	case <-w.started:
	case <-time.After(writeLimit):
		return nil, agency.Errorf(agency.CodeInputRefused, "the agent of %s is still starting", w.launch.RunID)
	}
	if w.inputClosed.Load() {
		return nil, endedError(w.launch.RunID)
	}
	t := w.term
	select {
	case t.writing <- struct{}{}:
	case <-time.After(writeLimit):
		return nil, w.notReading()
	}
	h := &hand{w: w, look: look, release: func() { <-t.writing }}
	if t.keys.busy(time.Now()) {
		h.release()
		return nil, agency.Errorf(agency.CodeInputRefused, "the user is typing in %s", w.launch.RunID).
			WithHint("send again when the text there is sent or cleared; to look: agency attach %s", w.launch.RunID)
	}
	return h, nil
}

// types looks, and then writes to the runner's terminal, unless the runner does not read.
func (h *hand) types(text string) error {
	if err := h.clear(); err != nil {
		return err
	}
	w, master := h.w, h.w.term.master
	_ = master.SetWriteDeadline(time.Now().Add(writeLimit))
	defer func() { _ = master.SetWriteDeadline(time.Time{}) }()
	_, err := master.WriteString(text)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return w.notReading()
	case err != nil:
		return endedError(w.launch.RunID)
	default:
		return nil
	}
}

// clear looks until the runner prints nothing between the request and the answer, so that the look
// is of the present screen.
func (h *hand) clear() error {
	for range mostLooks {
		seen := h.w.out.bytes.Load()
		if err := h.look(); err != nil {
			return err
		}
		if h.w.out.bytes.Load() == seen {
			break
		}
	}
	return nil
}

// awaitRead waits until the runner has read all that was typed, and reports whether it has. A kernel
// may pass typed bytes on with a delay, so the terminal must have nothing to read for a while. Looks
// measure it, not time alone: on a busy machine the kernel and the looks are late alike.
func (h *hand) awaitRead(limit time.Duration) bool {
	begin, steady := time.Now(), 0
	for looks := 1; ; looks++ {
		waiting, err := h.w.term.unread()
		switch {
		case err != nil || h.w.inputClosed.Load():
			return true // it ended, which is reported elsewhere
		case waiting > 0:
			steady = 0
		case steady == steadyLooks:
			return true
		default:
			steady++
		}
		if looks > 2*steadyLooks && time.Since(begin) > limit {
			return false
		}
		time.Sleep(readEvery)
	}
}

func (w *wrapper) notReading() error {
	return agency.Errorf(agency.CodeInputRefused, "the agent of %s does not read its terminal; a part of the message may wait there", w.launch.RunID).
		WithHint("agency attach %s", w.launch.RunID)
}

func endedError(id agency.RunID) error {
	return agency.Errorf(agency.CodeInvalidState, "the agent of %s has ended", id).WithHint("agency logs %s", id)
}
