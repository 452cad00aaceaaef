package runner

import (
	"errors"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agency"
)

// How an input is typed.
const (
	inputLimit  = 256 << 10
	enterAfter  = 250 * time.Millisecond // programs take an Enter that comes soon after a text for a part of it; 60 are too few for Gemini
	echoLimit   = time.Second            // for a busy runner to show the text, from when the Enter's wait counts
	writeLimit  = 5 * time.Second        // for the runner to read it
	effectLimit = 2 * time.Second        // for the runner to show something
)

// checkInput refuses what is no text: a control character could act as a key, or end the paste.
func checkInput(text string) error {
	refuse := func(format string, args ...any) error {
		return agency.Errorf(agency.CodeInputRefused, format, args...)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return refuse("the message is empty")
	case len(text) > inputLimit:
		return agency.Errorf(agency.CodeInputRefused, "the message has %d bytes, more than %d", len(text), inputLimit).
			WithHint("put the material into a file of the worktree and name it in the message")
	case !utf8.ValidString(text):
		return refuse("the message is not valid UTF-8")
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return refuse("the message holds the control character %U; a message is plain text, newlines and tabs", r)
		}
	}
	return nil
}

// input types a text into the runner's terminal, presses Enter, and watches for an effect.
func (w *wrapper) input(text string) (agency.Delivery, error) {
	delivery := agency.Delivery{Effect: "none"}
	if err := checkInput(text); err != nil {
		return delivery, err
	}
	before, err := w.typeMessage(text)
	if err != nil {
		return delivery, err
	}
	for begin := time.Now(); time.Since(begin) < effectLimit; time.Sleep(5 * time.Millisecond) {
		switch {
		case w.out.bytes.Load() != before:
			return agency.Delivery{Confirmed: true, Effect: "output"}, nil
		case w.deaf.Load():
			return agency.Delivery{Confirmed: true, Effect: "ended"}, nil
		}
	}
	return delivery, nil
}

// typeMessage types the text and Enter, and returns how much the runner had written before the Enter.
func (w *wrapper) typeMessage(text string) (before int64, err error) {
	release, err := w.takeTerminal()
	if err != nil {
		return 0, err
	}
	defer release()
	t := w.term
	if err := w.checkLines(text); err != nil {
		return 0, err
	}
	typed := strings.ReplaceAll(text, "\n", "\r")
	if t.paste.Load() {
		typed = "\x1b[200~" + text + "\x1b[201~"
	}
	before = w.out.bytes.Load()
	if err := w.typeIn(typed); err != nil {
		return 0, err
	}
	for begin := time.Now(); w.out.bytes.Load() == before && time.Since(begin) < echoLimit && !w.deaf.Load(); {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(enterAfter)
	before = w.out.bytes.Load()
	return before, w.typeIn("\r")
}

// checkLines refuses a line that the runner's terminal would cut: while that makes lines of what is typed, as for a shell's read,
// it drops without a word what does not fit into one.
func (w *wrapper) checkLines(text string) error {
	byLine, err := w.term.readsLines()
	if err != nil || !byLine {
		return nil //nolint:nilerr // a terminal that is gone is told when the text is typed
	}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		if number++; len(line) > longestLine {
			return agency.Errorf(agency.CodeInputRefused, "line %d of the message has %d bytes, and the agent of %s reads lines of at most %d", number, len(line), w.launch.RunID, longestLine).
				WithHint("break it into lines, or put the material into a file of the worktree and name that in the message")
		}
	}
	return nil
}

// press types keys as they are.
func (w *wrapper) press(keys string) error {
	release, err := w.takeTerminal()
	if err != nil {
		return err
	}
	defer release()
	return w.typeIn(keys)
}

// takeTerminal keeps everybody else from typing until release is called. It is refused where nobody reads what is typed, and
// while a person types.
func (w *wrapper) takeTerminal() (release func(), err error) {
	if w.launch.Headless {
		return nil, agency.Errorf(agency.CodeInputRefused, "the run %s is headless: it reads no messages", w.launch.RunID)
	}
	select {
	case <-w.started:
	case <-time.After(writeLimit):
		return nil, agency.Errorf(agency.CodeInputRefused, "the agent of %s is still starting", w.launch.RunID)
	}
	if w.deaf.Load() {
		return nil, endedError(w.launch.RunID)
	}
	t := w.term
	select {
	case t.writing <- struct{}{}:
	case <-time.After(writeLimit):
		return nil, w.notReading()
	}
	release = func() { <-t.writing }
	if t.keys.busy(time.Now()) {
		release()
		return nil, agency.Errorf(agency.CodeInputRefused, "a person is typing in %s", w.launch.RunID).
			WithHint("send again when the text there is sent or cleared; to look: agency attach %s", w.launch.RunID)
	}
	return release, nil
}

// typeIn writes to the runner's terminal, unless the runner does not read.
func (w *wrapper) typeIn(text string) error {
	master := w.term.master
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

func (w *wrapper) notReading() error {
	return agency.Errorf(agency.CodeInputRefused, "the agent of %s does not read its terminal; a part of the message may wait there", w.launch.RunID).
		WithHint("agency attach %s", w.launch.RunID)
}

func endedError(id agency.RunID) error {
	return agency.Errorf(agency.CodeInvalidState, "the agent of %s has ended", id).WithHint("agency logs %s", id)
}
