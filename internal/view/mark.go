// Package view is how runs and sessions are shown, for every face of the program: their order, marks, colours and words. It knows
// no terminal, and makes no text safe: what comes from agents and repositories stays as the record has it.
package view

// Colour is the name of a colour.
type Colour string

// The colours of marks.
const (
	Green  Colour = "green"  // at work
	Yellow Colour = "yellow" // a person is needed
	Red    Colour = "red"    // failed
	Cyan   Colour = "cyan"   // done
	Dim    Colour = "dim"    // all else
)

// MarkColour is the colour of a mark.
func MarkColour(mark string) Colour {
	switch mark {
	case "●":
		return Green
	case "◐":
		return Yellow
	case "✕":
		return Red
	case "✓":
		return Cyan
	default:
		return Dim
	}
}
