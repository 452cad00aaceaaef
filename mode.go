package agency

import (
	"strings"

	"agency/internal/plain"
)

// Mode is how agency speaks with the agent of an attempt.
type Mode string

// The modes.
const (
	// ModeTerminal is the default: the agent has a terminal, in which agency types and reads.
	ModeTerminal Mode = "terminal"
	// ModeHeadless is without a terminal: the agent works on the prompt and ends.
	ModeHeadless Mode = "headless"
	// ModeProtocol is the agent's own protocol: each request has an id, and an answer is acknowledged.
	// Nothing is typed and no screen is read.
	ModeProtocol Mode = "protocol"
)

// Modes returns all modes, the default first.
func Modes() []Mode { return []Mode{ModeTerminal, ModeHeadless, ModeProtocol} }

// ChooseMode returns the mode that a layer of settings asks for; empty when it leaves the choice
// open. headless is the short form of two of the modes. The error is E_SPEC_INVALID for a mode that
// does not exist, and for two that differ.
func ChooseMode(mode Mode, headless *bool) (Mode, error) {
	short := Mode("")
	if headless != nil {
		if short = ModeTerminal; *headless {
			short = ModeHeadless
		}
	}
	switch {
	case mode == "":
		return short, nil
	case mode != ModeTerminal && mode != ModeHeadless && mode != ModeProtocol:
		return "", Errorf(CodeSpecInvalid, "the mode %q does not exist", plain.Clip(string(mode))).WithHint("%s", ModeWords())
	case short != "" && (short == ModeHeadless) != (mode == ModeHeadless):
		return "", Errorf(CodeSpecInvalid, "the mode is %s, and headless says %t", mode, short == ModeHeadless).WithHint("drop one of the two")
	default:
		return mode, nil
	}
}

// ModeWords returns the modes as a list for people.
func ModeWords() string {
	words := make([]string, 0, len(Modes()))
	for _, m := range Modes() {
		words = append(words, string(m))
	}
	return strings.Join(words, ", ")
}

// SetMode sets how agency speaks with the agent of an attempt.
func (a *Attempt) SetMode(m Mode) { a.Mode, a.Headless = m, m == ModeHeadless }

// HasTerminal reports whether the agent of an attempt has a terminal, in which agency may read and
// type.
func (a *Attempt) HasTerminal() bool { return a.Mode == ModeTerminal || a.Mode == "" && !a.Headless }

// HasTerminal reports whether the runner gets a terminal.
func (l *Launch) HasTerminal() bool {
	return l.Mode == ModeTerminal || l.Mode == "" && !l.Headless
}

// Saying is what agency says to an agent in the agent's own protocol. Its ID names it in the journal
// of the attempt, so that it is said once, however often a wrapper is killed.
type Saying struct {
	Kind SayingKind `json:"kind"`
	ID   string     `json:"id"`             // of the message or the interruption; of an answer, the id of the request
	Text string     `json:"text,omitempty"` // of a message
	// Decision or Answer are the reply to a request.
	Decision Decision `json:"decision,omitempty"`
	Answer   string   `json:"answer,omitempty"`
	By       string   `json:"by"` // who says it: "user", or a run
}

// SayingKind is what kind of thing agency says to an agent.
type SayingKind string

// The kinds.
const (
	SaysMessage   SayingKind = "message"
	SaysAnswer    SayingKind = "answer"
	SaysInterrupt SayingKind = "interrupt"
)
