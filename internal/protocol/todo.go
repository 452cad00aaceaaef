package protocol

import (
	"cmp"
	"fmt"
	"slices"

	"agency"
	"agency/internal/plain"
)

// Limits of the list of an agent's work.
const (
	mostTodos = 50
	mostTodo  = 120 // characters of a step
)

// planned returns the list of an agent's work after an event that changes it.
func planned(before []Todo, e *Event) []Todo {
	list := slices.Clone(before)
	if e.Whole {
		list = nil
	}
	for _, change := range e.Todos {
		if len(change.ID) > mostID || len(change.Call) > mostID {
			continue
		}
		change.Text = shorten(plain.OneLine(change.Text), mostTodo)
		i := slices.IndexFunc(list, func(old Todo) bool { return change.Call != "" && old.Call == change.Call })
		if i < 0 {
			i = slices.IndexFunc(list, func(old Todo) bool { return change.ID != "" && old.ID == change.ID })
		}
		switch {
		case i >= 0 && change.Deleted:
			list = slices.Delete(list, i, i+1)
		case i >= 0:
			old := &list[i]
			old.ID, old.Text, old.State = cmp.Or(change.ID, old.ID), cmp.Or(change.Text, old.Text), cmp.Or(change.State, old.State)
		case change.Text != "" && !change.Deleted && len(list) < mostTodos:
			change.State = cmp.Or(change.State, agency.TodoPending)
			list = append(list, change)
		}
	}
	return list
}

// recorded returns a list in the form of the record.
func recorded(list []Todo) []agency.Todo {
	all := make([]agency.Todo, 0, len(list))
	for _, todo := range list {
		state := todo.State
		if state != agency.TodoInProgress && state != agency.TodoCompleted {
			state = agency.TodoPending // also a state that only newer agents have
		}
		all = append(all, agency.Todo{ID: todo.ID, Text: todo.Text, State: state})
	}
	return all
}

// carried returns the list that a conversation had in an earlier attempt.
func carried(list []agency.Todo) []Todo {
	all := make([]Todo, 0, len(list))
	for _, todo := range list {
		all = append(all, Todo{ID: todo.ID, Text: todo.Text, State: todo.State})
	}
	return all
}

// todosEvidence returns a list as evidence.
func todosEvidence(list []Todo) agency.Evidence {
	return agency.Evidence{Signal: agency.SignalTodos, Todos: agency.FormatTodos(recorded(list))}
}

// showTodos shows on one line the list after an event; empty when it is as before.
func showTodos(before []Todo, e *Event) string {
	list := recorded(planned(before, e))
	if slices.EqualFunc(list, recorded(before), func(a, b agency.Todo) bool { return a.Text == b.Text && a.State == b.State }) {
		return ""
	}
	done, now := 0, ""
	for _, todo := range list {
		switch todo.State {
		case agency.TodoCompleted:
			done++
		case agency.TodoInProgress:
			now = ", now: " + todo.Text
		case agency.TodoPending:
		}
	}
	return line(markTool + fmt.Sprintf("%d of %d steps done%s", done, len(list), oneLine(now)))
}
