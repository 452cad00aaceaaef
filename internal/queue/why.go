package queue

import (
	"fmt"

	"agency"
	"agency/internal/plain"
)

// Why returns, in words, why an entry is where it is; empty when its state explains it. moving are
// the entries that its queue works on, in the order of landing, and position is its place among
// them, from 1.
func Why(e *agency.QueueEntry, position int, q *agency.Queue, moving []agency.QueueEntry) string {
	switch {
	case e.State.Moving() && q.Paused:
		return "the queue is paused; continue: agency queue resume --into " + plain.ShellWord(q.Target)
	case e.Reason != "":
		return e.Reason
	case e.State.Moving() && q.Note != "":
		return q.Note
	case e.State == agency.EntryChecking && position > 1:
		return fmt.Sprintf("the checks of %s run on it and on what is before it", q.Target)
	case e.State == agency.EntryChecking:
		return fmt.Sprintf("the checks of %s run", q.Target)
	case e.State == agency.EntryQueued && position == 1:
		return "it is the next"
	case e.State == agency.EntryQueued && position > 1:
		before := &moving[position-2]
		return fmt.Sprintf("%d before it, the last is %s, which is %s", position-1, before.Run, before.State)
	default:
		return ""
	}
}
