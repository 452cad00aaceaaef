package protocol

import (
	"encoding/json"

	"agency"
	"agency/internal/plain"
)

// Guests is how the agent's own terminal joins a conversation that agency leads: as a guest, a second
// client whose frames agency passes on to the one program, and the program's to it. Its functions are
// pure. What a guest says is untrusted.
type Guests struct {
	// Hear reads a frame of a guest. A request goes to the program under id; a message goes under the id
	// that the guest gave to it, if it did. Hear fails when the protocol has no such frame.
	Hear func(at Place, greeting json.RawMessage, id string, frame []byte) (GuestFrame, error)
	// Tell reads a line of the program.
	Tell func(line []byte) Told
	// Reply returns a reply of the program under the id that the guest gave to its request, and Refuse
	// one of agency.
	Reply  func(line []byte, request json.RawMessage) []byte
	Refuse func(request json.RawMessage, why string) []byte
}

// GuestFrame is what a frame of a guest comes to.
type GuestFrame struct {
	// Saying is what the guest says to the program, and Frame how. Without a kind it says nothing to it.
	Saying agency.Saying
	Frame  []byte
	// Request is the guest's own id of a request; nil for a frame without one.
	Request json.RawMessage
	// Joins is set when the program tells the guest of the conversation from its reply on.
	Joins bool
	// Answers is the program's number of the request that the frame answers.
	Answers string
	// Reply is what the guest gets from agency instead.
	Reply []byte
}

// Told is what a line of the program is to guests. A line of which nothing is set is for all of them.
type Told struct {
	Replies string // the id of the request that it replies to: only who asked gets it
	Asks    string // the number of a request that a guest may answer
	Over    string // the number of a request that is over
	Private bool   // it is for agency alone
}

// What a guest says beyond what agency says too: its text names it. It is not said again when the
// wrapper was killed, since its guest is gone.
const (
	SaysGuest agency.SayingKind = "guest"
	saysJoin  agency.SayingKind = "join"
)

// Joins returns why no guest can join now; nil when one can.
func (t *Talk) Joins() error {
	switch {
	case t.dialect.Guests == nil:
		return agency.Errorf(agency.CodeInputRefused, "no terminal can join %s", t.dialect.Name)
	case t.Greeting == nil:
		return agency.Errorf(agency.CodeInvalidState, "its attempt began with an older agency, in which no terminal can join: agency resume --restart begins the next one")
	case t.Place.Turn == "" && !t.Resumed:
		return agency.Errorf(agency.CodeInvalidState, "its agent has begun no turn yet, and before that its own terminal does not find the conversation: send it a message first")
	}
	return nil
}

// Guest reads a frame of a guest, whose request goes to the program under id. It fails when the
// protocol has no such frame.
func (t *Talk) Guest(id string, frame []byte) (GuestFrame, error) {
	f, err := t.dialect.Guests.Hear(t.Place, t.Greeting, id, frame)
	if err != nil {
		return GuestFrame{}, err
	}
	f.Saying.By = agency.UserTerminal
	if f.Saying.Kind == SaysGuest {
		f.Saying.Text = plain.Clip(plain.OneLine(f.Saying.Text))
	}
	if f.Saying.Decision != "" {
		f.Saying.Answer = plain.Clip(plain.OneLine(f.Saying.Answer))
	}
	switch i := t.numberIndex(f.Answers); {
	case f.Saying.Kind == agency.SaysAnswer && f.Answers == "":
		return GuestFrame{}, nil
	case f.Saying.Kind == agency.SaysAnswer && i < 0:
		f.Saying.Kind = SaysGuest // of a conversation beside
	case f.Saying.Kind == agency.SaysAnswer && t.Open[i].By != nil:
		return GuestFrame{}, nil // another answer is on its way, and the program tells the guest
	case f.Saying.Kind == agency.SaysAnswer:
		f.Saying.ID = t.Open[i].ID
	case f.Joins:
		f.Saying.Kind = saysJoin
	case f.Saying.Kind != "" && t.accepted(f.Saying.ID):
		return GuestFrame{Reply: t.dialect.Guests.Refuse(f.Request, "this was said before")}, nil
	}
	return f, nil
}

// Guests returns how guests speak; nil where none can.
func (t *Talk) Guests() *Guests { return t.dialect.Guests }

// mostBeside is how many conversations of guests are remembered.
const mostBeside = 64

// guestSaid returns what the record keeps of a message or an answer of a guest, which the program took.
func guestSaid(s agency.Saying) []agency.Evidence {
	if s.By != agency.UserTerminal {
		return nil
	}
	said := s.Said(true)
	said.Terminal = true
	return []agency.Evidence{{Signal: agency.SignalSaid, Said: &said}}
}
