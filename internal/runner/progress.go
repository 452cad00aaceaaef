package runner

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// progress distinguishes output with new content from repetition: a clock that counts, a spinner
// that turns, a screen that is painted again. It compares pieces of text between control
// characters, without digits and signs, with the last few hundred of them.
type progress struct {
	mu     sync.Mutex
	seed   maphash.Seed
	known  map[uint64]struct{}
	order  [progressMemory]uint64
	next   int
	budget int
	until  time.Time // when the budget is renewed

	escape escapeState
	piece  []byte
	last   atomic.Int64 // when something new was seen, in nanoseconds of the Unix era
}

const (
	progressMemory = 512
	// progressBudget is how much output is examined per second: a flood is progress without reading
	// all of it.
	progressBudget = 16 << 10
	pieceLimit     = 200
	// pieceLetters is the least number of letters of a piece that counts.
	pieceLetters = 3
)

type escapeState uint8

const (
	escapeNone escapeState = iota
	escapeBegun
	escapeSequence // ESC [ ... up to a letter
	escapeString   // ESC ] ... up to BEL or ESC
)

func newProgress() *progress {
	return &progress{seed: maphash.MakeSeed(), known: make(map[uint64]struct{}, progressMemory)}
}

// see examines output.
func (p *progress) see(out []byte, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.until) {
		p.budget, p.until = progressBudget, now.Add(time.Second)
	}
	if len(out) > p.budget {
		out = out[:p.budget]
	}
	p.budget -= len(out)
	for len(out) > 0 {
		r, size := utf8.DecodeRune(out)
		out = out[size:]
		p.step(r, now)
	}
}

func (p *progress) step(r rune, now time.Time) {
	switch {
	case r == 0x1b:
		p.end(now)
		p.escape = escapeBegun
	case p.escape == escapeBegun && r == '[':
		p.escape = escapeSequence
	case p.escape == escapeBegun && (r == ']' || r == 'P' || r == '_' || r == '^'):
		p.escape = escapeString
	case p.escape == escapeBegun:
		p.escape = escapeNone
	case p.escape == escapeSequence:
		if r >= '@' && r <= '~' {
			p.escape = escapeNone
		}
	case p.escape == escapeString:
		if r == bel {
			p.escape = escapeNone
		}
	case unicode.IsControl(r):
		p.end(now)
	case unicode.IsLetter(r) && len(p.piece) < pieceLimit:
		p.piece = utf8.AppendRune(p.piece, r)
	}
}

// end finishes a piece.
func (p *progress) end(now time.Time) {
	if len(p.piece) >= pieceLetters {
		sum := maphash.Bytes(p.seed, p.piece)
		if _, known := p.known[sum]; !known {
			delete(p.known, p.order[p.next])
			p.known[sum], p.order[p.next] = struct{}{}, sum
			p.next = (p.next + 1) % progressMemory
			p.last.Store(now.UnixNano())
		}
	}
	p.piece = p.piece[:0]
}
