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
	memory

	dialect *Dialect
	part    strings.Builder // of a message of which more may come
}

// Heard is what one line of an agent comes to.
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

// New returns a conversation of which nothing is known but how it begins.
func New(d *Dialect, at Start) *Talk {
	return &Talk{dialect: d, memory: memory{Tools: map[string]tool{}, Place: Place{Dir: at.Dir, Conversation: at.Resumes}, Silent: at.Silent, Resumed: at.Resumes != "", Todos: carried(at.Todos)}}
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
	if queue := t.queue(); queue != t.Queued {
		t.Queued = queue
		h.Evidence = append(h.Evidence, agency.Evidence{Source: agency.FromProtocol, Signal: agency.SignalQueue, Event: events[len(events)-1].Name, Queue: queue})
	}
	return h
}

// partLimit is how long a message becomes of its parts, in bytes. What follows is another message.
const partLimit = 1 << 20

// join collects the parts of a message, and returns the whole of it as readable text when something
// else comes.
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

// concerns reports whether an event says something of this conversation, and completes it from what
// came before. In the conversation of a subagent, the turns are the subagent's own.
func (t *Talk) concerns(e *Event) bool {
	if t.dialect.Replays && !t.Hello && !slices.Contains([]Kind{Unknown, Foreign, Session, Replied}, e.Kind) {
		return false // of an old conversation
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

// stale reports whether an event is of a turn that is over, or that agency did not begin. What shows
// that the agent has read a message may come after the end of its turn.
func (t *Talk) stale(e *Event) bool {
	if !slices.Contains([]Kind{Begun, Working, Ended, Resting}, e.Kind) {
		return false
	}
	i := slices.IndexFunc(t.Said, func(s said) bool { return s.Intent.Kind == agency.SaysMessage && s.Intent.ID == e.ID })
	return i < 0 || t.Said[i].Stage >= over || e.Kind == Begun && t.Said[i].Stage >= begun
}

// unread reports whether nothing shows yet that the agent has a message.
func (t *Talk) unread() bool {
	return slices.ContainsFunc(t.Said, func(s said) bool { return s.Intent.Kind == agency.SaysMessage && s.Stage == written })
}

// Intend takes what agency is about to write, and returns it as readable text.
func (t *Talk) Intend(i Intent) (text string) {
	text = t.showIntent(&i)
	if i.Kind == SaysGuest || i.Kind == saysJoin {
		return text
	}
	if i.Kind == agency.SaysAnswer {
		if n := t.indexOf(i.ID); n >= 0 {
			t.Open[n].By = &i
		}
		return text
	}
	if i.Kind == saysRefusal {
		t.Foreign = slices.DeleteFunc(t.Foreign, func(f foreign) bool { return f.Refusal == i.ID })
		t.Said = slices.DeleteFunc(t.Said, func(s said) bool { return s.Intent.Kind == saysRefusal }) // those before it were written
	}
	t.Said = slices.DeleteFunc(t.Said, func(s said) bool { return s.Failed != "" && s.Intent.ID == i.ID }) // it is said again
	if len(t.Said) == mostClosed {
		t.Said, t.Forgotten = slices.Delete(t.Said, 0, 1), true
	}
	t.Said = append(t.Said, said{Intent: i})
	return text
}

// take changes the talk by an event, and returns what it shows of the agent.
func (t *Talk) take(e *Event) []agency.Evidence {
	one := func(ev agency.Evidence) []agency.Evidence { return []agency.Evidence{ev} }
	if t.dialect.OneAtATime && !t.Turn && !t.unread() && slices.Contains([]Kind{Part, Message, Tool}, e.Kind) {
		return nil // after the turn: no end of it would come
	}
	switch e.Kind {
	case Session:
		heard := one(settled(e.Conversation, e.Settings))
		if another := e.Conversation != "" && t.Place.Conversation != "" && e.Conversation != t.Place.Conversation; another && len(t.Todos) > 0 {
			t.Todos = nil
			heard = append(heard, todos(nil))
		}
		t.Place.Conversation = cmp.Or(e.Conversation, t.Place.Conversation)
		t.use(e.Settings)
		if e.Greeting != nil {
			t.Greeting = e.Greeting
			return nil
		}
		return heard
	case Beside:
		t.begunBeside(e.Thread)
		return nil
	case Working:
		t.Turn, t.Resting, t.Place.Turn = true, false, e.Turn
		return one(agency.Evidence{Signal: agency.SignalBusy})
	case Resting:
		return t.rest()
	case Part:
		if t.part.Len() > len(e.Text) {
			return nil // the first part showed that it is at work
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
		delete(t.Tools, e.ID)
		ended := one(agency.Evidence{Signal: agency.SignalToolEnded, ID: e.ID})
		isLost := func(todo Todo) bool { return e.Failed && e.ID != "" && todo.ID == "" && todo.Call == e.ID } // the call was to add it
		if slices.ContainsFunc(t.Todos, isLost) {
			t.Todos = slices.DeleteFunc(t.Todos, isLost)
			ended = append(ended, todos(t.Todos))
		}
		return ended
	case Asked:
		return t.ask(e)
	case Foreign:
		t.Unknown++
		if len(e.ID) <= mostID {
			t.Foreign = append(t.Foreign, foreign{ID: e.ID, Name: plain.Clip(plain.OneLine(e.Name)), Refusal: fmt.Sprint("refusal-", t.Unknown)})
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
		before := known(t.Todos)
		t.Todos = t.planned(e)
		if slices.Equal(known(t.Todos), before) {
			return nil
		}
		return one(todos(t.Todos))
	case Ended:
		return t.end(e)
	default:
		return one(agency.Evidence{Signal: agency.SignalUnknown})
	}
}

func (t *Talk) ask(e *Event) []agency.Evidence {
	r := e.Request
	if t.indexOf(r.ID) >= 0 || len(t.Open) == mostOpen {
		return nil
	}
	t.Closed = slices.DeleteFunc(t.Closed, func(c closed) bool { return c.ID == r.ID }) // it asks anew
	t.Asked++
	t.Open = append(t.Open, asked{Request: *r, Nth: t.Asked})
	return []agency.Evidence{{Signal: agency.SignalAsked, ID: r.ID, Kind: r.Kind, Tool: r.Tool, Text: r.Text, Options: optionLines(r.Options)}}
}

// close ends a request by its own proof.
func (t *Talk) close(e *Event) []agency.Evidence {
	i := t.called(e.ID)
	if i < 0 {
		return nil
	}
	was := t.Open[i]
	t.Open = slices.Delete(t.Open, i, i+1)
	c := closed{ID: was.ID}
	if e.Kind == Answered {
		c.By = was.By.read() // nil: something else than an answer ended it
	}
	if len(t.Closed) == mostClosed {
		t.Closed = slices.Delete(t.Closed, 0, 1)
	}
	t.Closed = append(t.Closed, c)
	evidence := []agency.Evidence{{Signal: agency.SignalAnswered, ID: was.ID}}
	if c.By != nil {
		evidence = append(evidence, guestSaid(c.By.Saying)...)
	}
	if t.Resting && len(t.Open) == 0 {
		evidence = append(evidence, t.rest()...)
	}
	return evidence
}

// receipt takes what the program says of something that agency said.
func (t *Talk) receipt(e *Event) []agency.Evidence {
	var saying agency.Saying
	i := slices.IndexFunc(t.Said, func(s said) bool { return s.Intent.ID == e.ID })
	if i >= 0 {
		s := &t.Said[i]
		saying = s.Intent.Saying
		s.Stage = max(s.Stage, map[Kind]stage{Taken: taken, Begun: begun, Done: over, Dropped: dropped, Replied: over}[e.Kind])
		if s.Stage >= begun {
			s.Intent = *s.Intent.read()
		}
		s.Queued = e.Queued
		if e.Failed {
			s.Failed = e.Text
		}
		if e.Kind == Replied && s.Intent.Kind == saysHello {
			first := !t.Hello && !e.Failed
			t.Hello, t.Failed = t.Hello || !e.Failed, plain.Visible(oneLine(s.Failed))
			if first && t.Silent {
				return []agency.Evidence{{Signal: agency.SignalTurnEnded}}
			}
		}
		if e.Kind == Replied && !e.Failed {
			return t.done(saying, e)
		}
	}
	if e.Kind != Begun {
		return nil
	}
	if t.Turn {
		t.Last = "" // else it may be of this turn, whose beginning shows late
	}
	t.Turn, t.Resting, t.Ended, t.Place.Turn = true, false, nil, cmp.Or(e.Turn, t.Place.Turn)
	return append([]agency.Evidence{{Signal: agency.SignalPrompt}}, guestSaid(saying)...)
}

// done takes that the program did what agency asked for.
func (t *Talk) done(s agency.Saying, e *Event) []agency.Evidence {
	if s.Kind == agency.SaysTakeBack {
		t.drop(s.Text)
	}
	if s.Kind != agency.SaysSetting {
		return nil
	}
	now := t.changed(s, e.Settings)
	t.use(now)
	return []agency.Evidence{settled("", now)}
}

// end takes the end of a turn. A failure and an interruption are final; for any other end, subagents
// may still work or ask, and only rest shows that they do not.
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

// rest ends the turn, once. A turn that was not cut off continues while requests are open: only their
// own proof ends them.
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
	t.drop("")
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
func (t *Talk) cut() bool { return t.Ended != nil && (t.Ended.Interrupted || t.Ended.Failed) }

func (t *Talk) indexOf(id string) int {
	return slices.IndexFunc(t.Open, func(a asked) bool { return a.ID == id })
}

// called returns the index of the open request that the program calls so.
func (t *Talk) called(id string) int {
	return slices.IndexFunc(t.Open, func(a asked) bool { return cmp.Or(a.Number, a.ID) == id })
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
