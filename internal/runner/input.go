package runner

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agency"
)

// Times of typing a text.
const (
	inputLimit  = 256 << 10
	enterAfter  = 250 * time.Millisecond // programs treat an Enter soon after a text as part of it; 60 ms are too few for Gemini
	echoLimit   = time.Second            // for a busy runner to show the text after it has read it
	effectLimit = 2 * time.Second        // for the runner to show something
)

// checkInput refuses a text with control characters, which could act as keys or end the paste.
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

// input types a text into the runner's terminal and presses Enter, each after a look, and returns
// the effect that it saw.
func (t *terminal) input(text string, look lookFunc) (agency.Delivery, error) {
	delivery := agency.Delivery{Effect: agency.EffectNone}
	if err := checkInput(text); err != nil {
		return delivery, err
	}
	h, err := t.take(look)
	if err != nil {
		return delivery, err
	}
	defer h.release()
	before, byLine, err := h.message(text)
	if err != nil {
		return delivery, err
	}
	delivery.Effect = h.effect(before, byLine)
	delivery.Confirmed = delivery.Effect == agency.EffectRead || delivery.Effect == agency.EffectEnded
	return delivery, nil
}

// message types the text and Enter. It returns how much the runner had written before the Enter,
// and whether the terminal is in line mode. Enter waits until the runner has read the text: a
// runner that reads both at once, after a pause of its own, may treat Enter as part of the text.
func (h *hand) message(text string) (before int64, byLine bool, err error) {
	if byLine, err = h.t.checkLines(text); err != nil {
		return 0, false, err
	}
	before = h.t.out.bytes.Load()
	if err := h.text(text); err != nil {
		return 0, false, err
	}
	if !byLine && !h.awaitRead(readLimit) {
		return 0, false, h.t.notReading()
	}
	for begin := time.Now(); h.t.out.bytes.Load() == before && time.Since(begin) < echoLimit && !h.t.ended.Load(); {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(enterAfter)
	before = h.t.out.bytes.Load()
	if err := h.enter(); err != nil {
		e := *agency.AsError(err)
		e.Message = "the message was typed, but not Enter: " + e.Message
		return 0, false, &e
	}
	h.t.keys.pressed("\r")
	return before, byLine, nil
}

// text types the text, unless it is still there from a message before.
func (h *hand) text(text string) error {
	last, moved := h.t.keys.left()
	unsent, err := h.clear(agency.Typing{Last: last, Moved: moved})
	if err != nil || unsent {
		return err
	}
	sent := text
	if strings.HasSuffix(text, `\`) {
		sent += " " // a backslash before Enter would make a new line of it, in agents and shells alike
	}
	if !h.t.paste.Load() {
		n, err := h.write(strings.ReplaceAll(sent, "\n", "\r"))
		h.t.keys.typed(text[:min(n, len(text))])
		return err
	}
	n, err := h.write(pasteBegin + sent + pasteEnd)
	h.t.keys.typed(text[:min(max(0, n-len(pasteBegin)), len(text))])
	h.t.pasting = err != nil && n > 0
	return err
}

// What a terminal sends before and after a bracketed paste.
const pasteBegin, pasteEnd = "\x1b[200~", "\x1b[201~"

// effect waits for an effect of an Enter.
func (h *hand) effect(before int64, byLine bool) agency.Effect {
	printed := func() bool { return h.t.out.bytes.Load() != before }
	for begin := time.Now(); time.Since(begin) < effectLimit; time.Sleep(5 * time.Millisecond) {
		switch {
		case h.t.ended.Load():
			return agency.EffectEnded
		case byLine && h.awaitRead(0):
			return agency.EffectRead
		case !byLine && printed():
			return agency.EffectOutput
		}
	}
	if !byLine || !printed() {
		return agency.EffectNone
	}
	return agency.EffectOutput
}

// checkLines refuses a line that the runner's terminal would cut: in line mode, as for a shell's
// read, it silently drops what does not fit into a line. It returns whether the terminal is in line
// mode.
func (t *terminal) checkLines(text string) (byLine bool, err error) {
	byLine, err = t.readsLines()
	if err != nil || !byLine {
		return false, nil //nolint:nilerr // typing the text reports a terminal that is gone
	}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		if number++; len(line) > longestLine {
			return true, agency.Errorf(agency.CodeInputRefused, "line %d of the message has %d bytes, and the agent of %s reads lines of at most %d", number, len(line), t.runID, longestLine).
				WithHint("break it into lines, or put the material into a file of the worktree and name that in the message")
		}
	}
	return true, nil
}

// press types keys unchanged, after a look.
func (t *terminal) press(keys string, look lookFunc) error {
	h, err := t.take(look)
	if err != nil {
		return err
	}
	defer h.release()
	if err := h.types(keys); err != nil {
		return err
	}
	t.keys.pressed(keys)
	return nil
}
