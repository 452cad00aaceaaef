package field

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// types types a text into an area: ^ is up, _ is down, < is left, > is right and | is enter.
func types(a *Area, keys string) {
	for _, r := range keys {
		key := tea.KeyPressMsg{Code: r, Text: string(r)}
		for i, name := range "^_<>|" {
			if r == name {
				key = tea.KeyPressMsg{Code: []rune{tea.KeyUp, tea.KeyDown, tea.KeyLeft, tea.KeyRight, tea.KeyEnter}[i]}
			}
		}
		a.Press(key)
	}
}

// drawn returns the rows of an area, the cursor as a reversed cell.
func drawn(a *Area, width, height int) string {
	rows := []string{}
	for _, line := range a.Draw("> ", width, height) {
		rows = append(rows, strings.TrimRight(strings.NewReplacer("\x1b[7m", "[", "\x1b[1m", "", "\x1b[m", "]").Replace(line.String()), " "))
	}
	return strings.ReplaceAll(strings.Join(rows, "/"), "> ]", "")
}

// A user types lines, goes up and down in them, and a long one goes on below at a word.
func TestArea(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys, text, drawn string
	}{
		{"one", "one", "one[ ]"},
		{"one|two", "one\ntwo", "one/  two[ ]"},
		{"one|two^", "one\ntwo", "one[ ]/  two"},
		{"one|two^<<x", "oxne\ntwo", "ox[n]e/  two"},
		{"a|bcd^_", "a\nbcd", "a/  b[c]d"},
		{"fix the login test", "fix the login test", "fix the/  login/  test[ ]"},
		{"fix the login test^", "fix the login test", "fix the/  logi[n]/  test"},
		{"abcdefghijklm", "abcdefghijklm", "abcdefghi/  jklm[ ]"},
		{"日本語日本語", "日本語日本語", "日本語日/  本語[ ]"},
	} {
		a := NewArea("")
		a.Draw("> ", 12, 5)
		types(&a, c.keys)
		if got := drawn(&a, 12, 5); a.Text() != c.text || got != c.drawn {
			t.Errorf("%s: %q, drawn %q, want %q", c.keys, a.Text(), got, c.drawn)
		}
	}
}

// A low area draws the rows around the cursor. The cursor stops at the first row and at the last.
func TestAreaScrolls(t *testing.T) {
	t.Parallel()
	a := NewArea("1\n2\n3\n4\n5")
	if got := drawn(&a, 12, 2); got != "4/  5[ ]" {
		t.Error(got)
	}
	types(&a, "^^^")
	if got := drawn(&a, 12, 2); got != "2[ ]/  3" {
		t.Error(got)
	}
	types(&a, "^")
	if a.Press(tea.KeyPressMsg{Code: tea.KeyUp}) {
		t.Error("there is no row above the first")
	}
	a.Insert("\x1b[2J\tpasted\n")
	if got := a.Text(); got != "1    pasted\n\n2\n3\n4\n5" {
		t.Errorf("%q", got)
	}
}
