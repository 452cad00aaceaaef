package runner

import (
	"errors"
	"os"
	"time"

	"agency"
)

// How long a hand waits for a runner.
const (
	handLimit  = 15 * time.Second // for other typing to end
	writeLimit = 5 * time.Second  // for the runner's terminal to take what is typed
	readLimit  = 10 * time.Second // for the runner to read it
	readEvery  = 2 * time.Millisecond
	shownLimit = time.Second // for the pane to take what the runner has printed
	// steadyLooks is how many looks in a row must find that all is read.
	steadyLooks = 10
	// mostLooks is how often the screen is looked at again because the runner printed meanwhile.
	// For a runner that prints all the time, the last look is recent enough by then.
	mostLooks = 5
)

// hand types into a runner's terminal. It is the only type that does, and it types nothing before a
// look at what the terminal shows; only a user's keys take another way.
type hand struct {
	t       *terminal
	look    lookFunc // returns an error if nothing may be typed on what the terminal shows
	release func()
}

// take prevents all other typing until the hand is released. It is refused while a user types, when the
// typing before it does not end, and when the runner does not read what was typed: it would read the rest
// at once, and a key for what it shows now would go to what it shows then.
func (t *terminal) take(look lookFunc) (*hand, error) {
	if t.ended.Load() {
		return nil, endedError(t.runID)
	}
	select {
	case t.writing <- struct{}{}:
	case <-time.After(handLimit):
		return nil, agency.Errorf(agency.CodeInputRefused, "something else is being typed into the terminal of %s, and nothing of this was", t.runID).
			WithHint("send again; to look: agency attach %s", t.runID)
	}
	h := &hand{t: t, look: look, release: func() { <-t.writing }}
	if t.keys.busy(time.Now()) {
		h.release()
		return nil, agency.Errorf(agency.CodeInputRefused, "the user is typing in %s", t.runID).
			WithHint("send again when the text there is sent or cleared; to look: agency attach %s", t.runID)
	}
	if byLine, err := t.readsLines(); err == nil && !byLine && !h.awaitRead(writeLimit) {
		h.release()
		return nil, agency.Errorf(agency.CodeInputRefused, "the agent of %s does not read its terminal, and nothing of this was typed", t.runID).
			WithHint("agency attach %s", t.runID)
	}
	return h, nil
}

// types looks, and then writes to the runner's terminal, unless the runner does not read.
func (h *hand) types(text string) error {
	if _, err := h.clear(agency.Typing{}); err != nil {
		return err
	}
	_, err := h.write(text)
	return err
}

// enter is types for the Enter after a text.
func (h *hand) enter() error {
	if _, err := h.clear(agency.Typing{Enter: true}); err != nil {
		return err
	}
	_, err := h.write("\r")
	return err
}

// write writes to the runner's terminal, after a look, and returns how many bytes it took.
func (h *hand) write(text string) (n int, err error) {
	_ = h.t.master.SetWriteDeadline(time.Now().Add(writeLimit))
	defer func() { _ = h.t.master.SetWriteDeadline(time.Time{}) }()
	n, err = h.t.write([]byte(text))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, h.t.notReading()
	case err != nil:
		return n, endedError(h.t.runID)
	default:
		return n, nil
	}
}

// clear looks until the runner prints nothing between the request and the answer, so that the look
// is of the present screen. What it printed before is in the pane by then.
func (h *hand) clear(next agency.Typing) (unsent bool, err error) {
	for range mostLooks {
		seen := h.t.out.shown(shownLimit)
		if unsent, err = h.look(next); err != nil {
			return false, err
		}
		if h.t.out.bytes.Load() == seen {
			break
		}
	}
	return unsent, nil
}

// awaitRead waits until the runner has read all that was typed, and reports whether it has. A kernel
// may pass typed bytes on with a delay, so the terminal must have nothing to read for a while. Looks
// measure it, not time alone: on a busy machine the kernel and the looks are late alike.
func (h *hand) awaitRead(limit time.Duration) bool {
	begin, steady := time.Now(), 0
	for looks := 1; ; looks++ {
		waiting, err := h.t.unread()
		switch {
		case err != nil || h.t.ended.Load():
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

func (t *terminal) notReading() error {
	return agency.Errorf(agency.CodeInputRefused, "the agent of %s does not read its terminal; a part of the message may wait there", t.runID).
		WithHint("agency attach %s", t.runID)
}

func startingError(code agency.Code, id agency.RunID) error {
	return agency.Errorf(code, "the agent of %s is still starting", id)
}

func endedError(id agency.RunID) error {
	return agency.Errorf(agency.CodeInvalidState, "the agent of %s has ended", id).WithHint("agency logs %s", id)
}
