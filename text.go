package agency

import (
	"strings"
)

// OneLine is a text with each run of white space in it as one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Clip returns the beginning of a text of another, as much as a message has room for.
func Clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
