package menu

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// queues lists what waits to land, and opens the entries that the user chooses.
func (m *Menu) queues(ctx context.Context) error {
	return m.console.browse(ctx, "number of an entry", "no work waits to land", func() (rows, error) {
		resp, err := m.o.Daemon.ListQueue(ctx, api.ListQueueRequest{})
		texts := make([]string, len(resp.Entries))
		for i := range resp.Entries {
			e := &resp.Entries[i]
			state := string(e.Entry.State)
			texts[i] = fmt.Sprintf("%s to %s, %s: %s", e.Entry.Run, e.Entry.Target, state, strings.TrimPrefix(e.Why, state+": "))
		}
		return rows{texts: texts, open: func(c choice) error {
			e := &resp.Entries[c.rows[0]]
			m.console.say("%s", texts[c.rows[0]])
			q := page.QueueOf(&resp, &e.Entry)
			if q.Paused {
				m.console.say("the queue of %s is paused", q.Target)
			}
			if q.Note != "" {
				m.console.say("%s", q.Note)
			}
			return m.console.act(ctx, e.Entry.Run, m.entryActions(&e.Entry, q.Paused))
		}}, err
	})
}

// entryActions returns the actions that an entry and its queue allow now.
func (m *Menu) entryActions(e *agency.QueueEntry, paused bool) []action {
	// The id names the run: another one may get its name meanwhile.
	change := func(does, change, done, sure string) action {
		return action{does: does, sure: sure, do: func(ctx context.Context, _ string) (string, error) {
			_, err := m.o.Daemon.ChangeQueue(ctx, api.ChangeQueueRequest{Change: change, Runs: []string{string(e.RunID)}, Into: e.Target, Env: m.o.Env, Config: m.o.Config})
			return e.Run + " " + done, err
		}}
	}
	actions := []action{{does: "its run", do: func(ctx context.Context, _ string) (string, error) { return "", m.run(ctx, e.RunID) }}}
	if e.State == agency.EntryHeld {
		actions = append(actions, change("let it continue", "resume", "continues", ""))
	}
	if e.State.WithAgent() {
		actions = append(actions, change("try it again", "retry", "is tried again", ""))
	}
	if !e.Held() {
		actions = append(actions, change("hold it", "hold", "is held", ""))
	}
	actions = append(actions, change("take it out of the queue", "remove", "is out of the queue", "take %s out of the queue of "+e.Target+"?"))
	if paused {
		return append(actions, m.pause(e, "let the whole queue of "+e.Target+" continue", true, "continues"))
	}
	return append(actions, m.pause(e, "pause the whole queue of "+e.Target, false, "is paused"))
}

// pause returns the action that pauses the queue of an entry or, with resume, continues it.
func (m *Menu) pause(e *agency.QueueEntry, does string, resume bool, done string) action {
	return action{does: does, do: func(ctx context.Context, _ string) (string, error) {
		return "the queue of " + e.Target + " " + done, m.o.Daemon.PauseQueueOf(ctx, e, resume, m.o.Env, m.o.Config)
	}}
}
