package agency

import "strings"

// Sight is what the terminal of an agent shows to one who is about to type. Its texts are the program's, so they are untrusted.
type Sight struct {
	// Dialog is what a dialog or a menu asks; empty when none is to be seen.
	Dialog string
	// Composer is what stands in the agent's input box; nil when none is to be seen.
	Composer *string
	// Boxless is true when no input box is to be seen although agents of this kind always show one when they take a text.
	Boxless bool
}

// holdsLimit is how much of a text's beginning or end must stand in an input box, in characters that are no space.
const holdsLimit = 30

// Holds reports whether a text that was typed stands in the input box, where a long one may stand as a note of what was pasted.
func (s *Sight) Holds(text string) bool {
	if s.Composer == nil {
		return false
	}
	shown, typed := []rune(squeezed(*s.Composer)), []rune(squeezed(text))
	if len(typed) == 0 || len(shown) == 0 {
		return false
	}
	limit := min(holdsLimit, len(typed))
	return strings.Contains(string(shown), string(typed[:limit])) || strings.Contains(string(shown), string(typed[len(typed)-limit:])) ||
		strings.HasPrefix(string(shown), "[Paste")
}

// squeezed is a text without white space: an input box breaks lines where it likes.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }
