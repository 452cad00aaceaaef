// Package view defines how every interface of the program shows runs and sessions: their marks,
// colours and texts. It does not depend on a terminal, and does not make texts safe: text from agents and
// repositories stays as the record has it.
package view

// Colour is the name of a colour.
type Colour string

// The colours of marks.
const (
	Green  Colour = "green"  // working
	Yellow Colour = "yellow" // a user is needed
	Red    Colour = "red"    // failed
	Cyan   Colour = "cyan"   // done
	Dim    Colour = "dim"    // everything else
)

// MarkColour returns the colour of a mark.
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
