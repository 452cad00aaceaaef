package protocol

import (
	"slices"

	"agency"
	"agency/internal/plain"
)

// What agency says by itself.
const (
	saysHello   agency.SayingKind = "hello"   // begins or resumes the conversation
	saysLook    agency.SayingKind = "look"    // the reply shows how far the program has read
	saysRefusal agency.SayingKind = "refusal" // refuses a request that agency does not know
)

// Hello returns the first thing that agency says to the program of an attempt.
func Hello() agency.Saying { return agency.Saying{Kind: saysHello, ID: "agency-hello", By: "agency"} }

// Look returns a saying whose reply shows that the program has read all that was written before. ok is
// false for a protocol in which agency need not know that.
func (t *Talk) Look(id string) (s agency.Saying, ok bool) {
	return agency.Saying{Kind: saysLook, ID: id, By: "agency"}, t.dialect.Look != nil
}

// Frame returns the frame that says something now. The error says why agency cannot say it.
func (t *Talk) Frame(s agency.Saying) ([]byte, error) {
	switch s.Kind {
	case saysHello:
		return t.dialect.Hello(t.Place, s.ID), nil
	case agency.SaysMessage:
		if t.dialect.OneAtATime && (t.Turn && !t.cut() || t.unread()) {
			return nil, agency.Errorf(agency.CodeInvalidState, "its agent is at work, and a message now would end its turn").
				WithHint("send it when the agent waits, or agency interrupt first")
		}
		return t.dialect.Message(t.Place, s.ID, s.Text, s.Files), nil
	case agency.SaysInterrupt:
		if (!t.Turn || t.cut()) && len(t.Open) == 0 && (!t.dialect.OneAtATime || !t.unread()) {
			return nil, agency.Errorf(agency.CodeInvalidState, "its agent is idle, so there is nothing to interrupt")
		}
		at := t.Place
		at.Open = t.unanswered() // the agent must not get a second answer to the others
		return t.dialect.Interrupt(at, s.ID), nil
	case agency.SaysSetting:
		return t.set(s)
	case agency.SaysTakeBack:
		return t.takeBack(s)
	case saysLook:
		return t.dialect.Look(t.Place, s.ID), nil
	case saysRefusal:
		return t.refuse(s), nil
	case agency.SaysAnswer:
		return t.answer(s)
	default:
		return nil, agency.Errorf(agency.CodeUsage, "agency cannot say %q", plain.Clip(string(s.Kind)))
	}
}

// refuse returns the frame of a refusal, and after it the one of Look, where the protocol has that.
func (t *Talk) refuse(s agency.Saying) []byte {
	f := t.refusedBy(s.ID)
	frame := t.dialect.Refuse(f.ID, f.Name)
	if t.dialect.Look != nil {
		frame = append(frame, t.dialect.Look(t.Place, s.ID)...)
	}
	return frame
}

// answer returns the frame of an answer.
func (t *Talk) answer(s agency.Saying) ([]byte, error) {
	r, err := t.answerable(s.ID)
	if err != nil {
		return nil, err
	}
	reply := agency.Reply{Decision: s.Decision, Text: s.Answer}
	if reply.Reason() != "" && !t.dialect.Reasons {
		return nil, agency.Errorf(agency.CodeInputRefused, "%s has no place for a reason", t.dialect.Name).
			WithHint("deny it without one, and then agency send the reason")
	}
	return t.dialect.Answer(r, reply)
}

// Progress is how far a saying got.
type Progress struct {
	Taken  bool     // the agent has it
	Over   bool     // the agent will report nothing more about it
	Failed string   // why the program refused it
	Queued []string // of an interruption: messages with which the agent begins next
}

// Progress returns how far a saying got.
func (t *Talk) Progress(s agency.Saying) Progress {
	if s.Kind == agency.SaysAnswer {
		i := slices.IndexFunc(t.Closed, func(c closedRequest) bool { return c.ID == s.ID })
		return Progress{Taken: i >= 0 && t.Closed[i].By != nil, Over: i >= 0}
	}
	i := t.deliveryIndex(s.Kind, s.ID)
	if i < 0 {
		return Progress{}
	}
	a := &t.Said[i]
	return Progress{Taken: a.Stage > written, Over: a.Stage >= over, Failed: a.Failed, Queued: a.Queued}
}

// Greeted reports whether the program answered Hello: it speaks the protocol, and the conversation
// has begun.
func (t *Talk) Greeted() bool { return t.Hello }

// Refused returns why the program did not begin the conversation, on one short line; empty when it did,
// or has not answered yet.
func (t *Talk) Refused() string { return t.Failed }

// AtWork reports whether more is about to come from the agent.
func (t *Talk) AtWork() bool { return t.Turn && len(t.Open) == 0 }

// Unproven returns what an earlier wrapper was about to write when it was killed, if nothing shows that
// the agent has it. Writing it again is harmless: an agent takes one answer to a request, and ignores a
// message whose id it has had; where it does not ignore that, Look shows whether it has read the message.
// Unproven leaves out interruptions: by now they could end something else.
func (t *Talk) Unproven() []Intent {
	var all []Intent
	for i := range t.Said {
		if s := &t.Said[i]; s.Stage == written && s.Intent.Kind != agency.SaysInterrupt && s.Intent.Kind != saysLook {
			all = append(all, s.Intent)
		}
	}
	for i := range t.Open {
		if by := t.Open[i].By; by != nil {
			all = append(all, *by)
		}
	}
	return all
}
