package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		line func(n int) string
		most int // lines in a hundred that may count as new
		all  bool
	}{
		"a spinner with a clock": {func(n int) string {
			return fmt.Sprintf("\r\x1b[2K%c Thinking... (%ds, %d tokens)", []rune("⠋⠙⠹⠸⠼⠴")[n%6], n, 17*n)
		}, 2, false},
		"a bar":                {func(n int) string { return fmt.Sprintf("\r[%-100s] %d%%", strings.Repeat("#", n), n) }, 0, false},
		"a repainted screen":   {func(n int) string { return fmt.Sprintf("\x1b[H\x1b[2J\x1b[1mClaude\x1b[0m\r\n  > write\r\n%d", n) }, 2, false},
		"a title that turns":   {func(n int) string { return fmt.Sprintf("\x1b]0;%c work\a", []rune("◐◑")[n%2]) }, 0, false},
		"a compiler":           {func(n int) string { return fmt.Sprintf("cc -o %s.o %s.c\n", word(n), word(n)) }, 100, true},
		"an agent that writes": {func(n int) string { return "then " + word(n) + " is next\r\n" }, 100, true},
	} {
		p, drafts := newProgress(), 0
		for n := range 100 {
			now := begin.Add(time.Duration(n) * time.Second)
			p.see([]byte(tt.line(n)+"\x1b[0m"), now)
			if p.last.Load() == now.UnixNano() {
				drafts++
			}
		}
		if tt.all && drafts != 100 || drafts > tt.most {
			t.Errorf("%s: %d of 100 are news", name, drafts)
		}
	}
}

func word(n int) string {
	return strings.Repeat(string(rune('a'+n%26)), 3+n/26)
}

// Both the memory and the output examined per second are limited.
func TestProgressLimits(t *testing.T) {
	t.Parallel()
	p, now := newProgress(), time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for n := range 3 * progressMemory {
		p.see([]byte(strings.Repeat("x", 3+n%150)+string(rune('a'+n/150))+"\n"), now.Add(time.Duration(n)*2*time.Second))
	}
	if len(p.known) > progressMemory {
		t.Errorf("it remembers %d pieces", len(p.known))
	}
	p.see([]byte(strings.Repeat("y", 1<<20)), now.Add(time.Hour*10))
	if p.budget != 0 || len(p.piece) > pieceLimit {
		t.Errorf("budget %d, piece of %d", p.budget, len(p.piece))
	}
}

func FuzzProgress(f *testing.F) {
	f.Add([]byte("\x1b]0;t\a\x1b[31mred\x1b[0m\xff\r\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		p := newProgress()
		p.see(out, time.Unix(1, 0))
		p.see(out, time.Unix(3, 0))
		if len(p.piece) > pieceLimit || len(p.known) > progressMemory {
			t.Error("it remembers too much")
		}
	})
}
