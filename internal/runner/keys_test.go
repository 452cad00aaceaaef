package runner_test

import (
	"testing"
	"time"

	"agency/internal/runner"
)

// When text may be typed after an input.
const (
	free  = "free"  // at once
	key   = "key"   // after two seconds
	draft = "draft" // after a minute
)

func TestTyping(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"a":                             draft,
		"ä":                             draft,
		" ":                             draft,
		"abc\r":                         key,
		"abc\n":                         draft,
		"abc\\\r":                       draft,
		"abc\\\r\r":                     key,
		"\n":                            key,
		"abc\x03":                       key,
		"abc\x04":                       key,
		"abc\x15":                       key,
		"abc\x1b":                       key,
		"abc\x1b[A":                     draft,
		"\x1b[A":                        key,
		"\x1bOP":                        key,
		"\x1bb":                         key,
		"\x1b\x1b[A":                    key,
		"\x7f":                          key,
		"\x1b[I":                        free,
		"\x1b[O":                        free,
		"\x1b[<35;10;20M":               free,
		"\x1b[<0;10;20m":                free,
		"\x1b[M abc"[:6]:                free,
		"\x1b[?1;2c":                    free,
		"\x1b[>41;330;0c":               free,
		"\x1b[24;80R":                   free,
		"\x1b[8;24;80t":                 free,
		"\x1b]11;rgb:0000/0000/0000\a":  free,
		"\x1b]11;rgb:0000/0000/0\x1b\\": free,
		"\x1bP>|tmux 3.3a\x1b\\":        free,
		"\x1b[200~pasted\r\x1b[201~":    draft,
		"\x1b[200~pasted\r\x1b[201~\r":  key,
		"\x1b[97u":                      draft,
		"abc\x1b[99;5u":                 key,
		"abc\x1b[13u":                   key,
		"abc\x1b[13;2u":                 draft,
		"abc\x1b[27;5;99~":              key,
	} {
		now := time.Unix(1_700_000_000, 0)
		for _, whole := range []bool{true, false} {
			keys := typed(input, whole, now)
			if got := mayType(keys, now); got != want {
				t.Errorf("%q (whole %v): %s, want %s", input, whole, got, want)
			}
			if keys.Busy(now.Add(61 * time.Second)) {
				t.Errorf("%q: busy after a minute", input)
			}
		}
	}
}

// mayType returns when text may be typed after an input.
func mayType(keys *runner.Typing, now time.Time) string {
	switch {
	case keys.Busy(now.Add(59 * time.Second)):
		return draft
	case keys.Busy(now.Add(time.Second)):
		return key
	}
	return free
}

// typed is what is known of an input that arrived at once, or byte by byte.
func typed(input string, whole bool, now time.Time) *runner.Typing {
	var keys runner.Typing
	if whole {
		keys.Feed([]byte(input), now)
		return &keys
	}
	for i := range len(input) {
		keys.Feed([]byte{input[i]}, now)
	}
	return &keys
}

func TestModes(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]bool{
		"\x1b[?2004h":                    true,
		"x\x1b[?2004hy":                  true,
		"\x1b[?2004h\x1b[?2004l":         false,
		"\x1b[?1;2004h":                  true,
		"\x1b[?2004;1h":                  true,
		"\x1b[?2004h\x1b[?25;2004l":      false,
		"\x1b[?2004h\x1bc":               false,
		"\x1b[2004h":                     false,
		"\x1b[?20040h":                   false,
		"\x1b[?2004":                     false,
		"\x1b[?2004\x1b[?2004h":          true,
		"\x1b[?2004$p":                   false,
		"\x1b[?999999999999999992004h":   false,
		"\x1b[?2004h\x1b[?25l\x1b[0mabc": true,
	} {
		if got := runner.ScanModes([]byte(output)); got != want {
			t.Errorf("%q: %v", output, got)
		}
	}
}

// The result does not depend on how output is cut into pieces.
func FuzzModes(f *testing.F) {
	f.Add([]byte("a\x1b[?1;2004hb\x1b[?2004l\x1bc"), uint8(3))
	f.Add([]byte("\x1b\x1b[?2004h"), uint8(1))
	f.Fuzz(func(t *testing.T, output []byte, size uint8) {
		var pieces [][]byte
		for rest, n := output, int(size)+1; len(rest) > 0; {
			cut := min(n, len(rest))
			pieces, rest = append(pieces, rest[:cut]), rest[cut:]
		}
		if got, want := runner.ScanModes(pieces...), runner.ScanModes(output); got != want {
			t.Errorf("%q in pieces of %d: %v, whole: %v", output, int(size)+1, got, want)
		}
	})
}

func FuzzTyping(f *testing.F) {
	f.Add([]byte("abc\x1b[200~x\x1b[201~\r\x1b[M abc"), uint8(2))
	f.Add([]byte("\x1bP\x1b\x1b[27;5;99~"), uint8(1))
	f.Fuzz(func(t *testing.T, input []byte, size uint8) {
		now := time.Unix(1_700_000_000, 0)
		var whole, pieces runner.Typing
		whole.Feed(input, now)
		for rest, n := input, int(size)+1; len(rest) > 0; {
			cut := min(n, len(rest))
			pieces.Feed(rest[:cut], now)
			rest = rest[cut:]
		}
		for _, after := range []time.Duration{0, time.Second, 30 * time.Second, 2 * time.Minute} {
			if got, want := pieces.Busy(now.Add(after)), whole.Busy(now.Add(after)); got != want {
				t.Errorf("%q in pieces of %d, after %v: %v, whole: %v", input, int(size)+1, after, got, want)
			}
		}
	})
}

// A text that agency typed stays there for certain until a key can have sent or cleared it.
func TestTypedText(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]bool{
		"": false, "a": false, "\x1b": false, "\x1b[A": false, "\x1b[200~a\r\x1b[201~": false, "\x1b[27u": false, "\x1b[13;2u": false,
		"\r": true, "\n": false, "\x03": true, "\x04": true, "\x15": true, "\x1b[13u": true, "\x1b[99;5u": true,
	} {
		var keys runner.Typing
		keys.Typed("hello")
		keys.Feed([]byte(input), time.Unix(1_700_000_000, 0))
		if text, moved := keys.Left(); text != "hello" || moved != want {
			t.Errorf("after %q of the user: %q, moved %v, want %v", input, text, moved, want)
		}
	}
	for input, want := range map[string]bool{"1": false, "\x1b[B": false, "\x1b[B\r": true, "\x15": true} {
		var keys runner.Typing
		keys.Typed("hello")
		keys.Pressed(input)
		if text, moved := keys.Left(); text != "hello" || moved != want {
			t.Errorf("after %q of agency: %q, moved %v, want %v", input, text, moved, want)
		}
	}
}
