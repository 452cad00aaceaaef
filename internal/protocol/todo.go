package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// planned returns the list of an agent's work after an event that changes it.
func (t *Talk) planned(e *Event) []Todo {
	list := slices.Clone(t.Todos)
	if e.Whole {
		list = nil
	}
	for _, change := range e.Todos {
		if len(change.ID) > mostID || len(change.Call) > mostID {
			continue
		}
		change.Text = plain.OneLine(change.Text)
		if r := []rune(change.Text); len(r) > mostTodo {
			change.Text = string(r[:mostTodo]) + "…"
		}
		i := slices.IndexFunc(list, func(old Todo) bool {
			return change.ID != "" && old.ID == change.ID || change.Call != "" && old.Call == change.Call
		})
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

// steps returns a list as evidence has it.
func steps(list []Todo) string {
	var b strings.Builder
	for _, todo := range list {
		state := todo.State
		if state != agency.TodoInProgress && state != agency.TodoCompleted {
			state = agency.TodoPending // also what a newer agent has
		}
		b.WriteString(string(state) + " " + todo.Text + "\n")
	}
	return b.String()
}

// showPlanned returns the list after an event on one line; empty when it is as before.
func (t *Talk) showPlanned(e *Event) string {
	after := steps(t.planned(e))
	if after == steps(t.Todos) {
		return ""
	}
	list := agency.ParseTodos(after)
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
