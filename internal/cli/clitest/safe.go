// Package clitest holds what the tests of the command line share.
package clitest

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Hostile are texts that a terminal would obey, or that are invisible.
var Hostile = []string{
	"", "plain", "two\nlines\tand a tab", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07after", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
	"\x1bP+q\x1b\\dcs", "\x9b31mc1", "\u009b31m", "\xc3\x1b[2J", "\xe2\x82", "é ü 界 🙂", "a\u202eb\u2066c\u200fd\u061ce", "\x00\x08\x7f\r", "\x1b", "\x1b[",
	"\x1b[31", "\x1b\x1b[31m[32mx", "\x1b_apc\x1b\\", "\x1b]52;c;aGk=\x07", "e\u0301 \U0001F468\u200d\U0001F469", "\ufeffbom", "a\u2028b\u2029c\u0085d", "\x90\x9c\x1b",
}

// CheckSafe fails the test when a terminal would obey a part of text, except for the characters of
// alsoFine.
func CheckSafe(t *testing.T, text string, alsoFine string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if unicode.IsControl(r) && !strings.ContainsRune(alsoFine, r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%q holds %U", text, r)
		}
	}
}
