package protocol_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"agency"
	"agency/internal/protocol"
)

// A talk goes on the same when after each step it forgets all that it does not keep.
func TestMemory(t *testing.T) {
	t.Parallel()
	message := agency.Saying{Kind: agency.SaysMessage, ID: "m", Text: "begin", By: agency.User}
	hears := func(e protocol.Event) func(*protocol.Talk) any {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return func(talk *protocol.Talk) any { return talk.Hear(line) } // unlike hear, which has it forget
	}
	says := func(s agency.Saying) func(*protocol.Talk) any {
		return func(talk *protocol.Talk) any { return talk.Intend(protocol.Intent{Saying: s}) }
	}
	refuses := func(talk *protocol.Talk) any {
		refusals := talk.Refusals()
		return talk.Intend(protocol.Intent{Saying: refusals[0]}) + refusals[0].ID
	}
	progress := func(talk *protocol.Talk) any {
		return fmt.Sprint(talk.Progress(message), talk.Knows(message), talk.Forgot())
	}
	step := func(todo protocol.Todo) func(*protocol.Talk) any {
		return hears(protocol.Event{Kind: protocol.Planned, Todos: []protocol.Todo{todo}})
	}
	steps := []func(*protocol.Talk) any{
		says(protocol.Hello()), hears(protocol.Event{Kind: protocol.Replied, ID: protocol.Hello().ID}),
		says(message), hears(protocol.Event{Kind: protocol.Begun, ID: "m"}), progress,
		hears(protocol.Event{Kind: protocol.Foreign, ID: "a"}), refuses, hears(protocol.Event{Kind: protocol.Foreign, ID: "b"}), refuses,
		step(protocol.Todo{ID: "1", Text: "read"}), step(protocol.Todo{ID: "1", State: agency.TodoCompleted}),
		hears(protocol.Event{Kind: protocol.Part, Text: "a part", Subagent: "sub"}), hears(protocol.Event{Kind: protocol.Message, Text: "last words"}),
		hears(asked("x")), hears(protocol.Event{Kind: protocol.Withdrawn, ID: "x"}), hears(asked("y")),
		hears(protocol.Event{Kind: protocol.Ended}), hears(protocol.Event{Kind: protocol.Resting}), hears(protocol.Event{Kind: protocol.Answered, ID: "y"}),
	}
	for i := range 300 {
		steps = append(steps, says(agency.Saying{Kind: agency.SaysMessage, ID: fmt.Sprint(i)}))
	}
	begin := protocol.Start{Dir: "/work", Silent: true}
	whole, next := protocol.New(&events, begin), protocol.New(&events, begin)
	for i, step := range append(steps, progress) {
		want, got := step(whole), step(next)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("step %d: got %+v, want %+v", i, got, want)
		}
		memory, err := next.Memory()
		if next = protocol.New(&events, protocol.Start{}); err == nil {
			err = next.Remember(memory)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
