package harness

import (
	"slices"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/harness/agent"
)

// Answer returns the keys to press next on a terminal that shows these lines, to reply to a
// request; no keys mean that nothing is to be pressed before the terminal shows something else. The
// lines come with their colours, the top one first. shown is false when the terminal does not show
// a dialog with exactly this request. The error is E_INPUT_REFUSED when the reply cannot be given
// there.
func Answer(kind agency.RunnerKind, lines []string, r *agency.Request, reply agency.Reply) (keys string, shown bool, err error) {
	answer := of(kind).Answer
	if answer == nil {
		return "", false, agency.Errorf(agency.CodeInputRefused, "agency cannot answer in the terminal of %s", kind).WithHint("agency attach RUN")
	}
	d := readTerminal(kind, lines)
	if !d.about(r).Shown() {
		return "", false, nil
	}
	keys, err = answer(d.Dialog, r, reply)
	return keys, true, err
}

// Shown returns the index of the open request that the dialog of a terminal is about; -1 when it is
// about none of them, or can be about several different ones. The lines come as for Answer.
func Shown(kind agency.RunnerKind, lines []string, requests []agency.Request) int {
	if of(kind).Answer == nil {
		return -1
	}
	d := readTerminal(kind, lines)
	matches := make([]agent.Match, len(requests))
	for i := range requests {
		matches[i] = d.about(&requests[i])
	}
	for i, m := range matches {
		alone := m.Shown()
		for o, other := range matches {
			if other.Shown() && !requests[o].Same(&requests[i]) && !m.Explains(other) {
				alone = false
			}
		}
		if alone {
			return i
		}
	}
	return -1
}

// terminal is a terminal's lines and the dialog that they show.
type terminal struct {
	shown []agency.Evidence
	*agent.Dialog
}

func readTerminal(kind agency.RunnerKind, lines []string) terminal {
	plain := make([]string, 0, len(lines))
	for _, line := range lines {
		plain = append(plain, ansi.Strip(line))
	}
	return terminal{of(kind).Screen(plain), of(kind).Dialog(plain, lines)}
}

// about returns how well the dialog shows a request.
func (t terminal) about(r *agency.Request) agent.Match {
	asks := slices.ContainsFunc(t.shown, func(e agency.Evidence) bool {
		// A dialog that was read in full has the id of its request.
		return e.Signal == agency.SignalAsked && e.Kind == r.Kind && (e.ID == "" || e.ID == r.ID)
	})
	if !asks || t.Dialog == nil || t.Kind != "" && t.Kind != r.Kind {
		return agent.Match{}
	}
	return t.About(r)
}
