package menu

import (
	"context"
	"fmt"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// queues lists what waits to land, and opens the entries that the user chooses.
func (m *Menu) queues(ctx context.Context) error {
	return m.browse(ctx, "number of an entry", "no work waits to land", func() ([]string, func(int) error, error) {
		resp, err := m.o.Daemon.ListQueue(ctx, api.ListQueueRequest{})
		rows := make([]string, len(resp.Entries))
		for i := range resp.Entries {
			e := &resp.Entries[i]
			rows[i] = fmt.Sprintf("%s to %s, %s: %s", e.Entry.Run, e.Entry.Target, e.Entry.State, e.Why)
		}
		return rows, func(i int) error {
			return m.act(ctx, m.entryActions(&resp.Entries[i].Entry, page.QueueOf(&resp, &resp.Entries[i].Entry).Paused))
		}, err
	})
}

// entryActions returns what can be done with an entry, and with its queue.
func (m *Menu) entryActions(e *agency.QueueEntry, paused bool) []action {
	change := func(change, done string) func(context.Context, string) (string, error) {
		return func(ctx context.Context, _ string) (string, error) {
			_, err := m.o.Daemon.ChangeQueue(ctx, api.ChangeQueueRequest{Change: change, Runs: []string{string(e.RunID)}, Into: e.Target, Env: m.o.Env, Config: m.o.Config})
			return e.Run + " " + done, err
		}
	}
	held := action{does: "hold it", do: change("hold", "is held")}
	if e.Held() {
		held = action{does: "let it continue", do: change("resume", "continues")}
	}
	queue := action{does: "pause the whole queue of " + e.Target, do: m.pause(e, false, "is paused")}
	if paused {
		queue = action{does: "let the whole queue of " + e.Target + " continue", do: m.pause(e, true, "continues")}
	}
	return []action{
		{does: "its run", do: func(ctx context.Context, _ string) (string, error) { return "", m.runWithID(ctx, e.RunID) }},
		held,
		{does: "try it again", do: change("retry", "is tried again")},
		{does: "take it out of the queue", sure: true, do: change("remove", "is out of the queue")},
		queue,
	}
}

// pause pauses the queue of an entry, or has it continue.
func (m *Menu) pause(e *agency.QueueEntry, resume bool, done string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		return "the queue of " + e.Target + " " + done, m.o.Daemon.PauseQueueOf(ctx, e, resume, m.o.Env, m.o.Config)
	}
}
