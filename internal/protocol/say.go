package protocol

import (
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// What agency says by itself: the first thing, a question that only tells how far the program has
// read, and that it does not know a request.
const (
	saysHello   agency.SayingKind = "hello"
	saysLook    agency.SayingKind = "look"
	saysRefusal agency.SayingKind = "refusal"
)

// Hello returns the first thing that agency says to the program of an attempt.
func Hello() agency.Saying { return agency.Saying{Kind: saysHello, ID: "agency-hello", By: "agency"} }

// Look returns what shows by its reply that the program has read all that was written before. ok is
// false where that need not be known.
func (t *Talk) Look(id string) (s agency.Saying, ok bool) {
	return agency.Saying{Kind: saysLook, ID: id, By: "agency"}, t.dialect.Look != nil
}

// Refusals returns what to say to the requests that agency does not know: without a reply the agent
// would wait for ever.
func (t *Talk) Refusals() []agency.Saying {
	all := make([]agency.Saying, 0, len(t.Foreign))
	for _, f := range t.Foreign {
		all = append(all, agency.Saying{Kind: saysRefusal, ID: f.Refusal, Text: f.Name, By: "agency"})
	}
	return all
}

// Typed returns what a text means that the user typed into the pane, which is a message with this id
// unless the agent asks. Then only what answers the request is taken for one: the request may have come
// while the user typed a message.
func (t *Talk) Typed(id, text string) (agency.Saying, error) {
	open := slices.DeleteFunc(slices.Clone(t.Open), func(a asked) bool { return a.By != nil })
	switch len(open) {
	case 0:
		return agency.Saying{Kind: agency.SaysMessage, ID: id, Text: text, By: agency.User}, nil
	case 1:
	default:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks %d things at once", len(open)).WithHint("agency answer RUN --prompt-id ID allow|deny|TEXT")
	}
	r, word := &open[0].Request, strings.ToLower(text)
	s := agency.Saying{Kind: agency.SaysAnswer, ID: r.ID, By: agency.User}
	switch {
	case r.Kind == agency.AsksPermission && (word == string(agency.Allow) || word == string(agency.Deny)):
		s.Decision = agency.Decision(word)
	case r.Kind == agency.AsksPermission:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks for permission").WithHint("type allow or deny")
	case slices.ContainsFunc(r.Options, func(o string) bool { return strings.EqualFold(o, text) }):
		s.Answer = text
	default:
		return agency.Saying{}, agency.Errorf(agency.CodeUsage, "its agent asks a question, and this is none of the answers that it names").WithHint("agency answer RUN TEXT")
	}
	return s, nil
}

// Frame returns what to write to say something now. The error says why it cannot be said.
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
		for i := range t.Open {
			if t.Open[i].By == nil { // else the agent would hear a second answer
				at.Open = append(at.Open, &t.Open[i].Request)
			}
		}
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

// refuse returns a refusal, and behind it, where the protocol has that, what shows that it was read.
func (t *Talk) refuse(s agency.Saying) []byte {
	i := slices.IndexFunc(t.Foreign, func(f foreign) bool { return f.Refusal == s.ID })
	frame := t.dialect.Refuse(t.Foreign[i].ID, t.Foreign[i].Name)
	if t.dialect.Look != nil {
		frame = append(frame, t.dialect.Look(t.Place, s.ID)...)
	}
	return frame
}

func (t *Talk) answer(s agency.Saying) ([]byte, error) {
	if i := t.indexOf(s.ID); i >= 0 {
		if by := t.Open[i].By; by != nil {
			return nil, late(s.ID, by)
		}
		reply := agency.Reply{Decision: s.Decision, Text: s.Answer}
		if reply.Reason() != "" && !t.dialect.Reasons {
			return nil, agency.Errorf(agency.CodeInputRefused, "%s has no place for a reason", t.dialect.Name).
				WithHint("deny it without one, and then agency send the reason")
		}
		return t.dialect.Answer(&t.Open[i].Request, reply)
	}
	i := slices.IndexFunc(t.Closed, func(c closed) bool { return c.ID == s.ID })
	switch {
	case i < 0:
		return nil, agency.Errorf(agency.CodeInvalidState, "its agent does not ask %s", plain.Clip(s.ID))
	case t.Closed[i].By == nil:
		return nil, agency.Errorf(agency.CodeInvalidState, "the request %s is over: its agent withdrew it", plain.Clip(s.ID))
	default:
		return nil, late(s.ID, t.Closed[i].By)
	}
}

// late is the error for an answer that comes after another one.
func late(id string, by *Intent) error {
	return agency.Errorf(agency.CodeInvalidState, "the request %s was answered by %s at %s: %s",
		plain.Clip(id), by.By, by.At.Format("15:04:05"), plain.Clip(reply(&by.Saying))).WithDetail("answered_by", by.By)
}

// reply returns the words of an answer.
func reply(s *agency.Saying) string {
	switch {
	case s.Decision == "":
		return s.Answer
	case s.Answer == "":
		return string(s.Decision)
	default:
		return string(s.Decision) + ": " + s.Answer
	}
}

// Progress is how far something got that agency said.
type Progress struct {
	Taken  bool     // the agent acknowledged it
	Over   bool     // nothing more will be heard of it
	Failed string   // why the program refused it
	Queued []string // of an interruption: messages that the agent begins with next
}

// Progress returns how far something got that agency said.
func (t *Talk) Progress(s agency.Saying) Progress {
	if s.Kind == agency.SaysAnswer {
		i := slices.IndexFunc(t.Closed, func(c closed) bool { return c.ID == s.ID })
		return Progress{Taken: i >= 0 && t.Closed[i].By != nil, Over: i >= 0}
	}
	i := slices.IndexFunc(t.Said, func(a said) bool { return a.Intent.ID == s.ID && a.Intent.Kind == s.Kind })
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

// Unproven returns what was about to be written when an earlier wrapper was killed, and of which
// nothing shows that the agent has it. Writing it again is harmless: an agent takes the answer of a
// request once, and a message of the same id, or else it has not read it (see Look). An interruption
// is not repeated: by now it could end something else.
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

// Forgot reports whether so much was said that the beginning of it is no longer known.
func (t *Talk) Forgot() bool { return t.Forgotten }

// Knows reports whether something was said, or was about to be, under this id.
func (t *Talk) Knows(s agency.Saying) bool {
	return slices.ContainsFunc(t.Said, func(a said) bool { return a.Intent.ID == s.ID && a.Intent.Kind == s.Kind })
}

func (t *Talk) number(id string) string {
	if i := t.indexOf(id); i >= 0 {
		return fmt.Sprint(t.Open[i].Nth)
	}
	return "?"
}
