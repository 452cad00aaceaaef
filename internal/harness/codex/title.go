package codex

import (
	"strings"
	"unicode/utf8"

	"agency"
)

// title reads the title in the form that settings sets: a spinner or a blinking mark, a word for
// the state, and the folder. Only a named state counts as rest, because a user's own title may name
// none.
func title(title string) []agency.Evidence {
	state, _, _ := strings.Cut(title, " | ")
	wheel, width := utf8.DecodeRuneInString(state)
	turns := wheel >= 0x2801 && wheel <= 0x28ff
	if turns {
		state = strings.TrimSpace(state[width:])
	}
	switch {
	case strings.HasPrefix(state, "[ ! ]"), strings.HasPrefix(state, "[ . ]"):
		return []agency.Evidence{{
			Signal: agency.SignalAsked, Event: "Action Required", Kind: agency.AsksQuestion, Text: "it asks for something in its terminal",
		}}
	case state == "Starting": // its tools, before any prompt
		return nil
	case turns, state == "Working", state == "Thinking", state == "Waiting":
		return []agency.Evidence{{Signal: agency.SignalBusy, Event: "Working"}}
	case state == "Ready":
		return []agency.Evidence{{Signal: agency.SignalResting, Event: state}}
	default:
		return nil
	}
}
