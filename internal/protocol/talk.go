package protocol

import (
	"cmp"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// mostTools is how many open tool calls are remembered. Everything that is remembered has a limit, so
// that the memory of an attempt does not grow over weeks.
const mostTools = 256

// Talk is one attempt's conversation with its agent. The calls of Hear and Intend, in the order of the
// journal, are all that changes it: the same journal makes the same talk. Its parts are the requests of
// the agent (request.go) and the deliveries of what agency says (delivery.go).
type Talk struct {
	memory

	dialect *Dialect
	part    strings.Builder // the parts of an unfinished message
}

// Heard is what agency learns from one line of an agent.
type Heard struct {
	Evidence []agency.Evidence
	Text     string // readable, safe for a terminal, with line ends
}

// Start is how an attempt begins.
type Start struct {
	Dir     string        // the working directory
	Resumes string        // the conversation that it continues; empty for a new one
	Silent  bool          // the agent gets no message at the start, and waits for one
	Todos   []agency.Todo // the list of its work that the conversation had before
}

// New returns the conversation of an attempt that begins so.
func New(d *Dialect, at Start) *Talk {
	return &Talk{dialect: d, memory: memory{
		Tools: map[string]tool{}, Todos: carried(at.Todos), Place: Place{Dir: at.Dir, Conversation: at.Resumes},
		Silent: at.Silent, Resumed: at.Resumes != "",
	}}
}

// Hear takes one line of the agent; nil is a line that was too long.
func (t *Talk) Hear(line []byte) Heard {
	if len(line) == 0 && line != nil {
		return Heard{}
	}
	events := []Event{{Kind: Unknown, Name: "a line that is too long"}}
	if line != nil {
		events = t.dialect.Read(line)
	}
	var h Heard
	for i := range events {
		e := &events[i]
		if !t.concerns(e) {
			continue
		}
		h.Text += t.join(e)
		h.Text += t.show(e)
		evidence := t.apply(e)
		for j := range evidence {
			evidence[j].Source, evidence[j].Event, evidence[j].Subagent = agency.FromProtocol, e.Name, e.Subagent
		}
		h.Evidence = append(h.Evidence, evidence...)
	}
	queue := ""
	if t.Turn {
		queue = t.queueEvidence()
	}
	if queue != t.Queued {
		t.Queued = queue
		h.Evidence = append(h.Evidence, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalQueue, Event: events[len(events)-1].Name, Queue: queue})
	}
	return h
}

// partLimit is the size in bytes to which parts are joined to one message. Further parts make another
// message.
const partLimit = 1 << 20

// join collects the parts of a message. When an event ends the message, join returns the whole of it as
// readable text.
func (t *Talk) join(e *Event) (text string) {
	if t.part.Len() > 0 && (e.Kind != Part || e.Subagent != t.PartOf || t.part.Len()+len(e.Text) > partLimit) {
		whole := Event{Kind: Message, Text: t.part.String(), Subagent: t.PartOf}
		t.part.Reset()
		if whole.Subagent == "" {
			t.Last = whole.Text
		}
		text = t.show(&whole)
	}
	if e.Kind == Part {
		t.part.WriteString(e.Text)
		t.PartOf = e.Subagent
	}
	return text
}

// concerns reports whether an event is about this conversation, and completes the event from earlier
// ones. The turns in the conversation of a subagent are not turns of this one.
func (t *Talk) concerns(e *Event) bool {
	if t.dialect.Replays && !t.Hello && !slices.Contains([]Kind{Unknown, Foreign, Session, Replied}, e.Kind) {
		return false // the program repeats an old conversation
	}
	if e.Thread != "" && t.Place.Conversation != "" && e.Thread != t.Place.Conversation {
		e.Subagent = e.Thread
		if slices.Contains([]Kind{Session, Working, Resting, Ended, Begun, Used}, e.Kind) {
			return false
		}
	}
	if t.dialect.OneAtATime && t.stale(e) {
		return false
	}
	if e.Kind != Beside && e.Kind != Foreign && slices.Contains(t.Beside, e.Thread) {
		return false
	}
	if r := e.Request; r != nil {
		r.Subagent = cmp.Or(r.Subagent, e.Subagent)
		call := t.Tools[r.Call]
		r.Tool, r.Text = cmp.Or(r.Tool, call.Name), cmp.Or(r.Text, call.Text)
	}
	return true
}

// Intend records what agency is about to write, and returns it as readable text.
func (t *Talk) Intend(i Intent) (text string) {
	text = t.showIntent(&i)
	switch i.Kind {
	case SaysGuest, saysJoin: // never said again, so not remembered
	case agency.SaysAnswer:
		if n := t.openIndex(i.ID); n >= 0 {
			t.Open[n].By = &i
		}
	case saysRefusal:
		t.Foreign = slices.DeleteFunc(t.Foreign, func(f foreignRequest) bool { return f.Refusal == i.ID })
		t.Said = slices.DeleteFunc(t.Said, func(d delivery) bool { return d.Intent.Kind == saysRefusal }) // they were written
		t.add(i)
	default:
		t.add(i)
	}
	return text
}

// apply changes the talk by an event, and returns what the event shows about the agent.
func (t *Talk) apply(e *Event) []agency.Evidence {
	one := func(ev agency.Evidence) []agency.Evidence { return []agency.Evidence{ev} }
	if t.dialect.OneAtATime && !t.Turn && !t.unread() && slices.Contains([]Kind{Part, Message, Tool}, e.Kind) {
		return nil // the turn is over: as the beginning of a turn, it would have no end
	}
	switch e.Kind {
	case Session:
		return t.session(e)
	case Beside:
		t.Beside = addNewest(t.Beside, e.Thread, mostBeside)
		return nil
	case Working:
		t.Turn, t.Resting, t.Place.Turn = true, false, e.Turn
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Resting:
		return t.rest()
	case Part:
		if t.part.Len() > len(e.Text) {
			return nil // the first part showed that the agent is at work
		}
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Message:
		t.Last = e.Text
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Tool:
		if _, known := t.Tools[e.ID]; known || len(t.Tools) < mostTools {
			t.Tools[e.ID] = tool{e.Tool, e.Text}
		}
		return one(agency.Evidence{Signal: agency.SignalToolStarted, ID: e.ID, Tool: e.Tool, Text: e.Text})
	case ToolEnded:
		return t.toolEnded(e)
	case Asked:
		r := e.Request
		if !t.addRequest(r) {
			return nil
		}
		return one(agency.Evidence{Signal: agency.SignalAsked, ID: r.ID, Kind: r.Kind, Tool: r.Tool, Text: r.Text, Options: optionLines(r.Options)})
	case Foreign:
		t.addForeign(e.ID, e.Name)
		return one(agency.Evidence{Signal: agency.SignalRefused, ID: e.ID})
	case Answered, Withdrawn:
		return t.close(e)
	case Taken, Begun, Done, Dropped, Replied:
		return t.receipt(e)
	case Used:
		return one(agency.Evidence{Signal: agency.SignalUsage, ID: e.ID, Usage: e.Usage, Whole: e.Whole, Add: e.Add})
	case Retrying:
		return one(agency.Evidence{Signal: agency.SignalRetrying, Class: e.Class, Text: e.Text})
	case Planned:
		return t.plan(e)
	case Ended:
		return t.end(e)
	default:
		return one(agency.Evidence{Signal: agency.SignalUnknown})
	}
}

// session applies what became known of the conversation. The list of the agent's work ends with the
// conversation.
func (t *Talk) session(e *Event) []agency.Evidence {
	evidence := []agency.Evidence{sessionEvidence(e.Conversation, e.Settings)}
	if another := e.Conversation != "" && t.Place.Conversation != "" && e.Conversation != t.Place.Conversation; another && len(t.Todos) > 0 {
		t.Todos = nil
		evidence = append(evidence, todosEvidence(nil))
	}
	t.Place.Conversation = cmp.Or(e.Conversation, t.Place.Conversation)
	t.Settings = update(t.Settings, e.Settings)
	if e.Greeting != nil {
		t.Greeting = e.Greeting
		return nil
	}
	return evidence
}

// toolEnded ends a tool call. A failed call has not added a step to the list of the agent's work.
func (t *Talk) toolEnded(e *Event) []agency.Evidence {
	delete(t.Tools, e.ID)
	evidence := []agency.Evidence{{Signal: agency.SignalToolEnded, ID: e.ID}}
	isLost := func(todo Todo) bool { return e.Failed && e.ID != "" && todo.ID == "" && todo.Call == e.ID }
	if slices.ContainsFunc(t.Todos, isLost) {
		t.Todos = slices.DeleteFunc(t.Todos, isLost)
		evidence = append(evidence, todosEvidence(t.Todos))
	}
	return evidence
}

// plan changes the list of the agent's work. A subagent has a list of its own, which is not kept.
func (t *Talk) plan(e *Event) []agency.Evidence {
	if e.Subagent != "" {
		return nil
	}
	before := recorded(t.Todos)
	t.Todos = planned(t.Todos, e)
	if slices.Equal(recorded(t.Todos), before) {
		return nil
	}
	return []agency.Evidence{todosEvidence(t.Todos)}
}

// close ends a request: the agent took an answer to it, or withdrew it.
func (t *Talk) close(e *Event) []agency.Evidence {
	c, ok := t.closeRequest(e.ID, e.Kind == Answered)
	if !ok {
		return nil
	}
	evidence := []agency.Evidence{{Signal: agency.SignalAnswered, ID: c.ID}}
	if c.By != nil {
		evidence = append(evidence, guestSaid(c.By.Saying)...)
	}
	if t.Resting && len(t.Open) == 0 {
		evidence = append(evidence, t.rest()...)
	}
	return evidence
}

// receipt applies what the program says about something that agency said.
func (t *Talk) receipt(e *Event) []agency.Evidence {
	saying, refused := t.receive(e)
	switch {
	case e.Kind == Begun:
		return append(t.begin(e), guestSaid(saying)...)
	case e.Kind != Replied:
		return nil
	case saying.Kind == saysHello:
		return t.greet(e, refused)
	case e.Failed:
		return nil
	case saying.Kind == agency.SaysTakeBack:
		t.drop(saying.Text)
		return nil
	case saying.Kind == agency.SaysSetting:
		now := effective(saying, e.Settings, t.Settings)
		t.Settings = update(t.Settings, now)
		return []agency.Evidence{sessionEvidence("", now)}
	default:
		return nil
	}
}

// greet applies the reply to Hello. After the first one an agent without a message at the start waits.
func (t *Talk) greet(e *Event, refused string) []agency.Evidence {
	first := !t.Hello && !e.Failed
	t.Hello, t.Failed = t.Hello || !e.Failed, plain.Visible(oneLine(refused))
	if first && t.Silent {
		return []agency.Evidence{{Signal: agency.SignalTurnEnded}}
	}
	return nil
}

// begin begins a turn with a message of agency.
func (t *Talk) begin(e *Event) []agency.Evidence {
	if t.Turn {
		t.Last = "" // outside a turn, it may belong to this one: the agent spoke before it reported the beginning
	}
	t.Turn, t.Resting, t.Ended, t.Place.Turn = true, false, nil, cmp.Or(e.Turn, t.Place.Turn)
	return []agency.Evidence{{Signal: agency.SignalPrompt}}
}

// end applies the end of a turn. A failure and an interruption are final; after any other end, subagents
// may still work or ask, until the agent rests.
func (t *Talk) end(e *Event) []agency.Evidence {
	t.Ended = e
	var evidence []agency.Evidence
	if e.Usage != nil {
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalUsage, Usage: e.Usage, Whole: e.Whole})
	}
	switch {
	case e.Interrupted:
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalInterrupted})
	case e.Failed:
		evidence = append(evidence, agency.Evidence{Signal: agency.SignalFailed, Class: e.Class, Text: e.Text})
	}
	return evidence
}

// rest ends the turn, once. A turn that was not cut off continues while requests are open: a request
// ends only when the agent takes an answer or withdraws it.
func (t *Talk) rest() []agency.Evidence {
	ended, last := t.Ended, t.Last
	if !t.Turn {
		return nil
	}
	if len(t.Open) > 0 && !t.cut() {
		t.Resting = true
		return nil
	}
	t.Turn, t.Resting, t.Ended, t.Last = false, false, nil, ""
	t.dropTaken()
	switch {
	case ended == nil:
		return []agency.Evidence{{Signal: agency.SignalTurnEnded}}
	case ended.Interrupted || ended.Failed:
		return nil // end has returned better evidence
	default:
		return []agency.Evidence{{Signal: agency.SignalTurnEnded, Text: cmp.Or(ended.Text, last)}}
	}
}

// cut reports whether the turn was cut off, by an interruption or a failure. The agent reports rest a
// moment later.
func (t *Talk) cut() bool { return t.Ended != nil && (t.Ended.Interrupted || t.Ended.Failed) }

// optionLines returns options as evidence holds them.
func optionLines(options []string) string {
	lines, size := make([]string, 0, len(options)), 0
	for _, o := range options {
		if o = plain.OneLine(o); size+len(o) > agency.EvidenceText {
			break
		}
		size += len(o)
		lines = append(lines, o)
	}
	return strings.Join(lines, "\n")
}
