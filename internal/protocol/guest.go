package protocol

import (
	"encoding/json"

	"agency"
	"agency/internal/plain"
)

// Guests is how the agent's own terminal joins a conversation that agency leads: as a guest. A guest is
// another client of the agent's program; agency passes on what the two say to each other. The functions
// are pure. What a guest says is untrusted.
type Guests struct {
	// Hear reads a frame of a guest. A request goes to the program under id; a message keeps the id that
	// the guest gave it, if any. Hear fails when the protocol has no such frame.
	Hear func(at Place, greeting json.RawMessage, id string, frame []byte) (GuestFrame, error)
	// Audience returns which guests get a line of the program.
	Audience func(line []byte) Audience
	// Reply returns a reply of the program under the id that the guest gave to its request. Refuse returns
	// a reply in which agency refuses the request.
	Reply  func(line []byte, request json.RawMessage) []byte
	Refuse func(request json.RawMessage, why string) []byte
}

// GuestFrame is what agency does with a frame of a guest.
type GuestFrame struct {
	// Saying is what the guest says to the program, and Frame what is written to it. A Saying without a
	// kind is not passed on.
	Saying agency.Saying
	Frame  []byte
	// Request is the id that the guest gave to its request; nil for a frame that is not a request.
	Request json.RawMessage
	// Joins is set when the guest gets what the program says in the conversation, from the reply on.
	Joins bool
	// Answers is the number that the program gave to the request that the frame answers.
	Answers string
	// Reply is what the guest gets from agency, when agency passes nothing on.
	Reply []byte
}

// Audience is for which guests a line of the program is: with Private for none, with Replies for one,
// otherwise for all that have joined.
type Audience struct {
	Replies string // the id of the request that the line answers, for the guest that sent the request
	Asks    string // the number of the request in the line, which a guest may answer
	Over    string // the number of a request that no guest can answer any more
	Private bool   // the line is for agency alone
}

// What only guests say: SaysGuest is a request whose Text names it, and saysJoin joins the conversation.
// Neither is said again after the wrapper was killed, since the guest is gone.
const (
	SaysGuest agency.SayingKind = "guest"
	saysJoin  agency.SayingKind = "join"
)

// Joins returns an error that says why no guest can join now; nil when one can.
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
		f.Saying.Kind = SaysGuest // the request is of a conversation beside this one
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

// guestSaid returns the evidence of a message or an answer that the program took, if it is a guest's.
func guestSaid(s agency.Saying) []agency.Evidence {
	if s.By != agency.UserTerminal {
		return nil
	}
	said := s.Said(true)
	said.Terminal = true
	return []agency.Evidence{{Signal: agency.SignalSaid, Said: &said}}
}
