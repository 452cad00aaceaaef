package protocol

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Limits of what is remembered of deliveries, and of the list of messages with which the agent has not begun.
const (
	mostSaid   = 256
	mostQueued = 20
	mostQueue  = 120 // characters of a message
)

// deliveries are what agency said in a conversation, but for answers to requests.
type deliveries struct {
	Said      []delivery // the newest
	Forgotten bool       // older ones are left out
}

// delivery is a message, an interruption, Hello, or another saying on its way to the agent.
type delivery struct {
	Intent Intent
	Stage  stage
	Queued []string // of an interruption: messages with which the agent begins next
	Failed string   // why the program refused it
}

// stage is how far a delivery got.
type stage int

const (
	written stage = iota // agency was about to write it; nothing shows that the agent has it
	taken                // the agent has it
	begun                // the agent has begun with it
	over                 // the agent is done with it
	dropped              // the agent will not begin with it
)

// add begins a delivery. It replaces one of the same id that the program refused.
func (d *deliveries) add(i Intent) {
	d.Said = slices.DeleteFunc(d.Said, func(s delivery) bool { return s.Failed != "" && s.Intent.ID == i.ID })
	d.Forgotten = d.Forgotten || len(d.Said) == mostSaid
	d.Said = addNewest(d.Said, delivery{Intent: i}, mostSaid)
}

// deliveryIndex returns the index of a delivery; -1 when there is none.
func (d *deliveries) deliveryIndex(kind agency.SayingKind, id string) int {
	return slices.IndexFunc(d.Said, func(s delivery) bool { return s.Intent.Kind == kind && s.Intent.ID == id })
}

// Knows reports whether something was said, or was about to be, under this id.
func (d *deliveries) Knows(s agency.Saying) bool { return d.deliveryIndex(s.Kind, s.ID) >= 0 }

// Forgot reports whether so much was said that the beginning of it is no longer known.
func (d *deliveries) Forgot() bool { return d.Forgotten }

// accepted reports whether something was said under an id, and the program did not refuse it. A terminal
// may say again what was refused: as the beginning of a turn, when the turn that it was meant for had ended.
func (d *deliveries) accepted(id string) bool {
	return slices.ContainsFunc(d.Said, func(s delivery) bool { return s.Intent.ID == id && s.Failed == "" })
}

// unread reports whether there is a message of which nothing shows that the agent has it.
func (d *deliveries) unread() bool {
	return slices.ContainsFunc(d.Said, func(s delivery) bool { return s.Intent.Kind == agency.SaysMessage && s.Stage == written })
}

// stale reports whether an event is about a turn that is over, or that agency did not begin. The event
// that the agent began with a message may come after the end of its turn.
func (d *deliveries) stale(e *Event) bool {
	if !slices.Contains([]Kind{Begun, Working, Ended, Resting}, e.Kind) {
		return false
	}
	i := d.deliveryIndex(agency.SaysMessage, e.ID)
	return i < 0 || d.Said[i].Stage >= over || e.Kind == Begun && d.Said[i].Stage >= begun
}

// drop records that the agent will not begin with a message.
func (d *deliveries) drop(id string) {
	d.dropIf(func(s *delivery) bool { return s.Stage < begun && s.Intent.ID == id })
}

// dropTaken records that the agent will not begin with the messages that it has.
func (d *deliveries) dropTaken() {
	d.dropIf(func(s *delivery) bool { return s.Stage == taken })
}

func (d *deliveries) dropIf(matches func(*delivery) bool) {
	for i := range d.Said {
		if s := &d.Said[i]; s.Intent.Kind == agency.SaysMessage && matches(s) {
			s.Stage, s.Intent = dropped, *s.Intent.withoutText()
		}
	}
}

// queueEvidence returns the messages that the agent has, and with which it has not begun, as evidence.
func (d *deliveries) queueEvidence() string {
	var b strings.Builder
	n := 0
	for i := range d.Said {
		s := &d.Said[i]
		if s.Intent.Kind != agency.SaysMessage || s.Stage != taken || n == mostQueued {
			continue
		}
		n++
		b.WriteString(s.Intent.ID + " " + s.Intent.By + " " + shorten(plain.OneLine(s.Intent.Text), mostQueue) + "\n")
	}
	return b.String()
}

// receive records what the program said about a delivery. It returns what agency had said, and why the
// program refused it; both are empty for an event about something else.
func (d *deliveries) receive(e *Event) (saying agency.Saying, refused string) {
	i := slices.IndexFunc(d.Said, func(s delivery) bool { return s.Intent.ID == e.ID })
	if i < 0 {
		return agency.Saying{}, ""
	}
	s := &d.Said[i]
	saying = s.Intent.Saying
	s.Stage = max(s.Stage, map[Kind]stage{Taken: taken, Begun: begun, Done: over, Dropped: dropped, Replied: over}[e.Kind])
	if s.Stage >= begun {
		s.Intent = *s.Intent.withoutText()
	}
	s.Queued = e.Queued
	if e.Failed {
		s.Failed = e.Text
	}
	return saying, s.Failed
}
