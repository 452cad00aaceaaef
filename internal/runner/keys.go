package runner

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long a user counts as typing.
const (
	draftFor = 60 * time.Second // after the last key of a text that was not sent
	keyFor   = 2 * time.Second  // after any key
	loneEsc  = 50 * time.Millisecond
)

// typing follows the input from the pane, to know whether a user is typing, and the last text that
// agency typed. What terminals send by themselves, such as focus and mouse reports and answers to
// queries, does not count.
type typing struct {
	mu     sync.Mutex
	state  keyState
	params []byte // of the sequence being read
	more   int    // bytes of a mouse report still to come
	pasted bool   // inside a bracketed paste
	escAt  time.Time
	draft  bool
	before byte // the last byte of text
	lastAt time.Time
	own    string // the last text that agency typed
	moved  bool   // a key since then may have sent or cleared it
}

type keyState uint8

const (
	keyText   keyState = iota
	keyEscape          // after ESC
	keyCSI             // after ESC [
	keySS3             // after ESC O
	keyString          // inside OSC, DCS, APC, PM or SOS
	keyStringEscape
	keyMouse // the three bytes of an old mouse report
)

// feed reads input from the pane at now.
func (t *typing) feed(p []byte, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	for _, b := range p {
		t.step(b, now)
	}
}

// busy reports whether a user has an unsent text or pressed a key just now.
func (t *typing) busy(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	since := now.Sub(t.lastAt)
	return t.draft && since < draftFor || since < keyFor
}

// typed keeps the text that agency typed.
func (t *typing) typed(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own, t.moved = text, false
}

// pressed notes keys that agency pressed.
func (t *typing) pressed(keys string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moved = t.moved || strings.ContainsAny(keys, "\r\n\x03\x04\x15")
}

// left returns the last text that agency typed, which may still be where it was typed. moved reports
// whether a key since then may have sent or cleared it, or answered a dialog that hid it.
func (t *typing) left() (text string, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own, t.moved
}

// settle decides that an ESC without a following byte was the key itself.
func (t *typing) settle(now time.Time) {
	if t.state == keyEscape && now.Sub(t.escAt) >= loneEsc {
		t.state = keyText
		t.key(t.escAt)
		t.draft = false
	}
}

func (t *typing) key(now time.Time) { t.lastAt = now }

// empty notes that a key sent or cleared what was typed. Escape clears a user's draft in many
// programs, but not in all, so it does not count for agency's text.
func (t *typing) empty() { t.draft, t.moved = false, true }

func (t *typing) step(b byte, now time.Time) {
	switch t.state {
	case keyText:
		t.text(b, now)
	case keyEscape:
		t.escape(b, now)
	case keyCSI:
		switch {
		case b == esc:
			t.begin(now)
		case b >= 0x40 && b <= 0x7e:
			t.state = keyText
			t.sequence(b, now)
		case len(t.params) < 64:
			t.params = append(t.params, b)
		}
	case keySS3:
		t.state = keyText
		t.key(now)
	case keyString:
		switch b {
		case esc:
			t.state = keyStringEscape
		case 0x07:
			t.state = keyText
		}
	case keyStringEscape:
		t.state = keyText // ESC \ ends it; after any other byte nothing valid follows
	case keyMouse:
		if t.more--; t.more == 0 {
			t.state = keyText
		}
	}
}

func (t *typing) begin(now time.Time) { t.state, t.escAt = keyEscape, now }

func (t *typing) text(b byte, now time.Time) {
	const ctrlC, ctrlD, ctrlU, del = 0x03, 0x04, 0x15, 0x7f
	if b == esc {
		t.begin(now)
		return
	}
	t.key(now)
	before := t.before
	t.before = b
	switch {
	case t.pasted:
		t.draft = t.draft || b > ' '
	case b == '\n', b == '\r' && before == '\\': // a new line in the draft
	case b == '\r' || b == ctrlC || b == ctrlD || b == ctrlU:
		t.empty()
	case b >= ' ' && b != del:
		t.draft = true
	}
}

func (t *typing) escape(b byte, now time.Time) {
	t.state = keyText
	switch b {
	case esc: // the first one was the key
		t.key(now)
		t.draft = false
		t.begin(now)
	case '[':
		t.state, t.params = keyCSI, t.params[:0]
	case 'O':
		t.state = keySS3
	case ']', 'P', '_', '^', 'X':
		t.state = keyString
	default: // Alt and a key
		t.key(now)
	}
}

// sequence ends a sequence of ESC [.
func (t *typing) sequence(final byte, now time.Time) {
	private := len(t.params) > 0 && t.params[0] >= '<' && t.params[0] <= '?'
	switch {
	case private: // a mouse report or an answer
	case final == 'M' && len(t.params) == 0:
		t.state, t.more = keyMouse, 3
	case final == '~' && string(t.params) == "200":
		t.pasted = true
		t.key(now)
	case final == '~' && string(t.params) == "201":
		t.pasted = false
		t.key(now)
	case final == 'u' || final == '~' && bytes.HasPrefix(t.params, []byte("27;")):
		t.extended(now)
	case bytes.IndexByte([]byte("ABCDEFGHPQSZ~"), final) >= 0:
		t.key(now)
	}
}

// extended reads a key in one of the two long forms: CSI code ; modifiers u, and CSI 27 ; modifiers
// ; code ~.
func (t *typing) extended(now time.Time) {
	const control = 4
	fields := bytes.Split(t.params, []byte(";"))
	codeText, modText := fields[0], []byte(nil)
	switch {
	case len(fields) == 3 && string(fields[0]) == "27":
		codeText, modText = fields[2], fields[1]
	case len(fields) > 1:
		modText = fields[1]
	}
	code, _ := strconv.Atoi(string(codeText))
	mods, _ := strconv.Atoi(string(modText))
	withControl := (mods-1)&control != 0 && mods > 0
	t.key(now)
	switch {
	case code == esc:
		t.draft = false
	case code == '\r' && mods <= 1, withControl && (code == 'c' || code == 'd' || code == 'u'):
		t.empty()
	case code >= ' ' && code != 0x7f && !withControl:
		t.draft = true
	}
}
