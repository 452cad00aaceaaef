package runner

import "bytes"

// modes watches a program's output for switches of bracketed paste, ESC [ ? 2004 h and l, alone or
// in a list of modes, and for titles, ESC ] 0 ; TEXT and ESC ] 2 ; TEXT up to BEL or ESC \. A
// sequence may arrive in any number of pieces.
type modes struct {
	paste  bool
	title  []byte // the newest complete one
	titled bool   // it is new since the reader set this to false

	words  []byte // the title being read
	state  modeState
	param  int  // the number being read
	wanted bool // 2004 was in the list
}

type modeState uint8

const (
	modeText modeState = iota
	modeEscape
	modeBracket
	modeParams
	modeCommand // an operating system command: whether its number sets a title is not known yet
	modeTitle
	modeTitleEscape
)

const (
	esc       = 0x1b
	bel       = 0x07
	pasteMode = 2004
	// titleLimit is how much of a title is kept, in bytes.
	titleLimit = 256
)

// scan reads a piece of output and reports whether the mode was switched in it. It skips text
// between sequences at the speed of memory.
func (m *modes) scan(p []byte) (switched bool) {
	for i := 0; i < len(p); i++ {
		if m.state == modeText {
			next := bytes.IndexByte(p[i:], esc)
			if next < 0 {
				return switched
			}
			i += next
			m.state = modeEscape
			continue
		}
		if m.step(p[i]) {
			switched = true
		}
	}
	return switched
}

// step reads one byte of a sequence.
func (m *modes) step(b byte) bool {
	switch {
	case m.state == modeTitle || m.state == modeTitleEscape:
		m.read(b)
	case b == esc:
		m.state = modeEscape
	case m.state == modeEscape && b == ']':
		m.state, m.param, m.words = modeCommand, -1, m.words[:0]
	case m.state == modeCommand && (b == '0' || b == '2') && m.param < 0:
		m.param = int(b)
	case m.state == modeCommand && b == ';' && m.param >= 0:
		m.state = modeTitle
	case m.state == modeEscape && b == '[':
		m.state = modeBracket
	case m.state == modeEscape && b == 'c': // full reset
		m.state = modeText
		return m.set(false)
	case m.state == modeBracket && b == '?':
		m.state, m.param, m.wanted = modeParams, 0, false
	case m.state == modeParams && b >= '0' && b <= '9':
		m.param = min(m.param*10+int(b-'0'), pasteMode*10) // all larger numbers are equally wrong
	case m.state == modeParams && (b == ';' || b == 'h' || b == 'l'):
		m.wanted = m.wanted || m.param == pasteMode
		m.param = 0
		if b == ';' {
			return false
		}
		m.state = modeText
		return m.wanted && m.set(b == 'h')
	default:
		m.state = modeText
	}
	return false
}

// read reads one byte of a title. A title that never ends, or that another sequence interrupts, is
// dropped.
func (m *modes) read(b byte) {
	switch {
	case b == bel, m.state == modeTitleEscape && b == '\\':
		m.title, m.titled = append(m.title[:0], m.words...), true
		m.state = modeText
	case m.state == modeTitleEscape:
		m.state = modeText
	case b == esc:
		m.state = modeTitleEscape
	case len(m.words) < titleLimit:
		m.words = append(m.words, b)
	}
}

func (m *modes) set(on bool) bool {
	switched := m.paste != on
	m.paste = on
	return switched
}
