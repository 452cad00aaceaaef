package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Limits of what is remembered, so that an attempt of weeks does not grow.
const (
	mostOpen   = 256
	mostTools  = 256
	mostClosed = 256 // answered or withdrawn requests, and messages
	mostID     = 512 // bytes of the id of a request that agency refuses, or of a step
	mostTodos  = 50
	mostTodo   = 120 // characters of a step
)

// Talk is one attempt's conversation with its agent, as the journal tells it: the same journal makes
// the same talk. It is fed in the order of the journal, by Hear and Intend.
type Talk struct {
	dialect *Dialect
	open    []asked
	foreign []foreign // requests that agency does not know, without a reply
	refused int       // requests that agency did not know, so far
	closed  []closed
	said    []said
	forgot  bool            // of said, the oldest is left out
	tools   map[string]tool // open tool calls
	todos   []Todo
	place   Place
	part    strings.Builder // of a message of which more may come
	partOf  string          // the subagent that says it
	last    string          // what the agent last said in this turn
	failed  string          // why the program did not begin the conversation
	asked   int             // requests so far
	hello   bool            // the program answered our Hello
	silent  bool            // after Hello it waits for a message
	turn    bool            // the agent is in a turn
	working bool
	resting bool   // the agent said that it rests, with requests open: it does when they are over
	ended   *Event // how the turn ended, as far as it is known
}

// tool is an open tool call.
type tool struct{ name, text string }

// asked is an open request.
type asked struct {
	Request
	number int
	by     *Intent // the answer that was written and is not taken yet
}

// foreign is a request that agency does not know.
type foreign struct {
	id, name string
	refusal  string // the id of what agency says to it
}

// closed is a request that is over.
type closed struct {
	id string
	by *Intent // nil when the agent withdrew it
}

// stage is how far something that agency said got.
type stage int

const (
	written stage = iota
	taken
	begun
	over
	dropped
)

// said is a message, an interruption, or Hello.
type said struct {
	intent Intent
	stage  stage
	queued []string // of an interruption
	failed string   // why the program refused it
}

// Heard is what one line of an agent comes to.
type Heard struct {
	Evidence []agency.Evidence
	Text     string // readable, safe for a terminal, with line ends
}

// Start is how an attempt begins.
type Start struct {
	Dir     string // the working directory
	Resumes string // the conversation that it continues; empty for a new one
	Silent  bool   // the agent gets no message at the start, and waits for one
}

// New returns a conversation of which nothing is known but how it begins.
func New(d *Dialect, at Start) *Talk {
	return &Talk{dialect: d, tools: map[string]tool{}, place: Place{Dir: at.Dir, Conversation: at.Resumes}, silent: at.Silent}
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
		evidence := t.take(e)
		for j := range evidence {
			evidence[j].Source, evidence[j].Event, evidence[j].Subagent = agency.FromProtocol, e.Name, e.Subagent
		}
		h.Evidence = append(h.Evidence, evidence...)
	}
	return h
}

// partLimit is how long a message becomes of its parts, in bytes. What follows is another message.
const partLimit = 1 << 20

// join collects the parts of a message, and returns the whole of it as readable text when something
// else comes.
func (t *Talk) join(e *Event) (text string) {
	if t.part.Len() > 0 && (e.Kind != Part || e.Subagent != t.partOf || t.part.Len()+len(e.Text) > partLimit) {
		whole := Event{Kind: Message, Text: t.part.String(), Subagent: t.partOf}
		t.part.Reset()
		if whole.Subagent == "" {
			t.last = whole.Text
		}
		text = t.show(&whole)
	}
	if e.Kind == Part {
		t.part.WriteString(e.Text)
		t.partOf = e.Subagent
	}
	return text
}

// concerns reports whether an event says something of this conversation, and completes it from what
// came before. In the conversation of a subagent, the turns are the subagent's own.
func (t *Talk) concerns(e *Event) bool {
	if t.dialect.Replays && !t.hello && !slices.Contains([]Kind{Unknown, Foreign, Session, Replied}, e.Kind) {
		return false // of an old conversation
	}
	if e.Thread != "" && t.place.Conversation != "" && e.Thread != t.place.Conversation {
		e.Subagent = e.Thread
		if slices.Contains([]Kind{Session, Working, Resting, Ended, Begun, Used}, e.Kind) {
			return false
		}
	}
	if t.dialect.OneAtATime && t.stale(e) {
		return false
	}
	if r := e.Request; r != nil {
		r.Subagent = cmp.Or(r.Subagent, e.Subagent)
		call := t.tools[r.Call]
		r.Tool, r.Text = cmp.Or(r.Tool, call.name), cmp.Or(r.Text, call.text)
	}
	return true
}

// stale reports whether an event is of a turn that is over, or that agency did not begin. What shows
// that the agent has read a message may come after the end of its turn.
func (t *Talk) stale(e *Event) bool {
	if !slices.Contains([]Kind{Begun, Working, Ended, Resting}, e.Kind) {
		return false
	}
	i := slices.IndexFunc(t.said, func(s said) bool { return s.intent.Kind == agency.SaysMessage && s.intent.ID == e.ID })
	return i < 0 || t.said[i].stage >= over || e.Kind == Begun && t.said[i].stage >= begun
}

// unread reports whether nothing shows yet that the agent has a message.
func (t *Talk) unread() bool {
	return slices.ContainsFunc(t.said, func(s said) bool { return s.intent.Kind == agency.SaysMessage && s.stage == written })
}

// Intend takes what agency is about to write, and returns it as readable text.
func (t *Talk) Intend(i Intent) (text string) {
	text = t.showIntent(&i)
	if i.Kind == agency.SaysAnswer {
		if n := t.indexOf(i.ID); n >= 0 {
			t.open[n].by = &i
		}
		return text
	}
	if i.Kind == saysRefusal {
		t.foreign = slices.DeleteFunc(t.foreign, func(f foreign) bool { return f.refusal == i.ID })
		t.said = slices.DeleteFunc(t.said, func(s said) bool { return s.intent.Kind == saysRefusal }) // those before it were written
	}
	if len(t.said) == mostClosed {
		t.said, t.forgot = slices.Delete(t.said, 0, 1), true
	}
	t.said = append(t.said, said{intent: i})
	return text
}

// take changes the talk by an event, and returns what it shows of the agent.
func (t *Talk) take(e *Event) []agency.Evidence {
	one := func(ev agency.Evidence) []agency.Evidence { return []agency.Evidence{ev} }
	if t.dialect.OneAtATime && !t.turn && !t.unread() && slices.Contains([]Kind{Part, Message, Tool}, e.Kind) {
		return nil // after the turn: no end of it would come
	}
	switch e.Kind {
	case Session:
		t.place.Conversation = cmp.Or(e.Conversation, t.place.Conversation)
		return one(agency.Evidence{Signal: agency.SignalSession, Conversation: e.Conversation, Model: e.Model})
	case Working:
		t.turn, t.working, t.resting, t.place.Turn = true, true, false, e.Turn
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Resting:
		return t.rest()
	case Part:
		if t.part.Len() > len(e.Text) {
			return nil // the first part showed that it is at work
		}
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Message:
		t.last = e.Text
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Tool:
		if _, known := t.tools[e.ID]; known || len(t.tools) < mostTools {
			t.tools[e.ID] = tool{e.Tool, e.Text}
		}
		return one(agency.Evidence{Signal: agency.SignalToolStarted, ID: e.ID, Tool: e.Tool, Text: e.Text})
	case ToolEnded:
		delete(t.tools, e.ID)
		ended := one(agency.Evidence{Signal: agency.SignalToolEnded, ID: e.ID})
		isLost := func(todo Todo) bool { return e.Failed && e.ID != "" && todo.ID == "" && todo.Call == e.ID } // the call was to add it
		if slices.ContainsFunc(t.todos, isLost) {
			t.todos = slices.DeleteFunc(t.todos, isLost)
			ended = append(ended, agency.Evidence{Signal: agency.SignalTodos, Todos: steps(t.todos)})
		}
		return ended
	case Asked:
		return t.ask(e)
	case Foreign:
		t.refused++
		if len(e.ID) <= mostID {
			t.foreign = append(t.foreign, foreign{id: e.ID, name: plain.Clip(plain.OneLine(e.Name)), refusal: fmt.Sprint("refusal-", t.refused)})
		}
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
		if e.Subagent != "" {
			return nil // it has a list of its own
		}
		before := steps(t.todos)
		t.todos = t.planned(e)
		if after := steps(t.todos); after != before {
			return one(agency.Evidence{Signal: agency.SignalTodos, Todos: after})
		}
		return nil // as when a result names a step that is in the list
	case Ended:
		return t.end(e)
	default:
		return one(agency.Evidence{Signal: agency.SignalUnknown})
	}
}

func (t *Talk) ask(e *Event) []agency.Evidence {
	r := e.Request
	if t.indexOf(r.ID) >= 0 || len(t.open) == mostOpen {
		return nil
	}
	t.closed = slices.DeleteFunc(t.closed, func(c closed) bool { return c.id == r.ID }) // it asks anew
	t.asked++
	t.open = append(t.open, asked{Request: *r, number: t.asked})
	return []agency.Evidence{{Signal: agency.SignalAsked, ID: r.ID, Kind: r.Kind, Tool: r.Tool, Text: r.Text, Options: optionLines(r.Options)}}
}

// close ends a request by its own proof.
func (t *Talk) close(e *Event) []agency.Evidence {
	i := t.called(e.ID)
	if i < 0 {
		return nil
	}
	was := t.open[i]
	t.open = slices.Delete(t.open, i, i+1)
	c := closed{id: was.ID}
	if e.Kind == Answered {
		c.by = was.by // nil: something else than an answer ended it
	}
	if len(t.closed) == mostClosed {
		t.closed = slices.Delete(t.closed, 0, 1)
	}
	t.closed = append(t.closed, c)
	evidence := []agency.Evidence{{Signal: agency.SignalAnswered, ID: was.ID}}
	if t.resting && len(t.open) == 0 {
		evidence = append(evidence, t.rest()...)
	}
	return evidence
}

// receipt takes what the program says of something that agency said.
func (t *Talk) receipt(e *Event) []agency.Evidence {
	i := slices.IndexFunc(t.said, func(s said) bool { return s.intent.ID == e.ID })
	if i >= 0 {
		s := &t.said[i]
		s.stage = max(s.stage, map[Kind]stage{Taken: taken, Begun: begun, Done: over, Dropped: dropped, Replied: over}[e.Kind])
		s.queued = e.Queued
		if e.Failed {
			s.failed = e.Text
		}
		if e.Kind == Replied && s.intent.Kind == saysHello {
			first := !t.hello && !e.Failed
			t.hello, t.failed = t.hello || !e.Failed, plain.Visible(oneLine(s.failed))
			if first && t.silent {
				return []agency.Evidence{{Signal: agency.SignalTurnEnded}}
			}
		}
	}
	if e.Kind != Begun {
		return nil
	}
	if t.turn {
		t.last = "" // else it may be of this turn, whose beginning shows late
	}
	t.turn, t.resting, t.ended, t.place.Turn = true, false, nil, cmp.Or(e.Turn, t.place.Turn)
	return []agency.Evidence{{Signal: agency.SignalPrompt}}
}

// end takes the end of a turn. A failure and an interruption are final; for any other end, subagents
// may still work or ask, and only rest shows that they do not.
func (t *Talk) end(e *Event) []agency.Evidence {
	t.ended = e
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

// rest ends the turn, once. A turn that was not cut off continues while requests are open: only their
// own proof ends them.
func (t *Talk) rest() []agency.Evidence {
	ended, last := t.ended, t.last
	if !t.turn {
		return nil
	}
	if len(t.open) > 0 && !t.cut() {
		t.resting = true
		return nil
	}
	t.turn, t.working, t.resting, t.ended, t.last = false, false, false, nil, ""
	switch {
	case ended == nil:
		return []agency.Evidence{{Signal: agency.SignalTurnEnded}}
	case ended.Interrupted || ended.Failed:
		return nil // which ended it already, and says more
	default:
		return []agency.Evidence{{Signal: agency.SignalTurnEnded, Text: cmp.Or(ended.Text, last)}}
	}
}

// cut reports whether the turn was cut off, by an interruption or a failure. The agent says a moment
// later that it rests.
func (t *Talk) cut() bool { return t.ended != nil && (t.ended.Interrupted || t.ended.Failed) }

func (t *Talk) indexOf(id string) int {
	return slices.IndexFunc(t.open, func(a asked) bool { return a.ID == id })
}

// called returns the index of the open request that the program calls so.
func (t *Talk) called(id string) int {
	return slices.IndexFunc(t.open, func(a asked) bool { return cmp.Or(a.Number, a.ID) == id })
}

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
