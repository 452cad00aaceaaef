package protocol_test

import (
	"slices"
	"testing"

	"agency"
	"agency/internal/protocol"
)

// The list of an agent's work goes on with its conversation, with the ids by which the agent changes it,
// and ends when the agent begins another conversation.
func TestTodosOfEarlierAttempt(t *testing.T) {
	t.Parallel()
	before := agency.ParseTodos(agency.FormatTodos([]agency.Todo{
		{ID: "1", Text: "read it", State: agency.TodoCompleted}, {ID: "2", Text: "fix # it", State: agency.TodoInProgress}, {Text: "test", State: agency.TodoPending},
	}))
	talk := protocol.New(&events, protocol.Start{Dir: "/work", Resumes: "old", Todos: before})
	told := func(e protocol.Event) []agency.Todo {
		for _, ev := range hear(t, talk, e).Evidence {
			if ev.Signal == agency.SignalTodos {
				return agency.ParseTodos(ev.Todos)
			}
		}
		return nil
	}
	change := func(todo protocol.Todo) []agency.Todo {
		return told(protocol.Event{Kind: protocol.Planned, Todos: []protocol.Todo{todo}})
	}
	if got := told(protocol.Event{Kind: protocol.Session, Conversation: "old"}); got != nil {
		t.Errorf("the same conversation changed the list to %+v", got)
	}
	want := slices.Clone(before)
	want[1].State = agency.TodoCompleted
	if got := change(protocol.Todo{ID: "2", State: agency.TodoCompleted}); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want = append(want, agency.Todo{Text: "land it", State: agency.TodoPending})
	if got := change(protocol.Todo{Call: "c", Text: "land it"}); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want[3].ID = "4"
	if got := change(protocol.Todo{Call: "c", ID: "4"}); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := told(protocol.Event{Kind: protocol.Session, Conversation: "new"}); got == nil || len(got) > 0 {
		t.Errorf("another conversation has the list %+v", got)
	}
}
