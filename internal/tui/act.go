package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
	"agency/internal/tui/inbox"
	"agency/internal/tui/page"
)

// named returns the runs as a sentence names them.
func named(runs []api.Run) string {
	if len(runs) == 1 {
		return runs[0].Ref()
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// each acts on runs one after the other and goes on after a failure, which is what is said then.
func (b *board) each(runs []api.Run, done string, act func(ctx context.Context, run string) error) tea.Cmd {
	ctx := b.desk.Ctx
	b.list.Unmark()
	return tea.Batch(b.desk.Say(named(runs)+" …"), func() tea.Msg {
		var failed error
		for i := range runs {
			if err := act(ctx, string(runs[i].ID)); err != nil {
				e := agency.AsError(err)
				failed = agency.Errorf(e.Code, "%s: %s", runs[i].Ref(), e.Message).WithHint("%s", e.Hint)
			}
		}
		return page.Acted{Text: named(runs) + " " + done, Err: failed}
	})
}

// confirmed asks before an action on the marked runs, or on the one under the cursor.
func (b *board) confirmed(ask string, do func(runs []api.Run) tea.Cmd) tea.Cmd {
	runs := b.list.Targets()
	if len(runs) == 0 {
		return b.desk.Say("there is no run")
	}
	return b.desk.Confirm(fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return do(runs) })
}

func (b *board) stop(string) tea.Cmd {
	return b.confirmed("stop %s? the worktree stays", func(runs []api.Run) tea.Cmd {
		return b.each(runs, "stopped", func(ctx context.Context, run string) error {
			_, err := b.desk.Daemon.StopRun(ctx, api.RunRequest{Run: run})
			return err
		})
	})
}

func (b *board) remove(string) tea.Cmd {
	return b.confirmed("remove %s? unsaved work is saved first", func(runs []api.Run) tea.Cmd {
		return b.each(runs, "removed", func(ctx context.Context, run string) error {
			_, err := b.desk.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
			return err
		})
	})
}

func (b *board) resume(string) tea.Cmd {
	return b.confirmed("resume %s?", func(runs []api.Run) tea.Cmd {
		return b.each(runs, "resumed", func(ctx context.Context, run string) error {
			_, err := b.desk.Daemon.ResumeRun(ctx, api.ResumeRunRequest{Run: run, Env: b.desk.Env, Config: b.desk.Config})
			return err
		})
	})
}

func (b *board) snapshot(string) tea.Cmd {
	runs := b.list.Targets()
	if len(runs) == 0 {
		return b.desk.Say("there is no run")
	}
	return b.each(runs, "saved", func(ctx context.Context, run string) error {
		_, err := b.desk.Daemon.TakeSnapshot(ctx, api.RunRequest{Run: run})
		return err
	})
}

// startSend begins a message to the marked runs, or to the one under the cursor.
func (b *board) startSend(string) tea.Cmd {
	b.targets = b.list.Targets()
	if len(b.targets) == 0 {
		return b.desk.Say("there is no run")
	}
	b.typing, b.field = sending, field.New("")
	return nil
}

func (b *board) send(text string) tea.Cmd {
	return b.each(b.targets, "got the message", func(ctx context.Context, run string) error {
		resp, err := b.desk.Daemon.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
		if err == nil && !resp.Confirmed {
			return agency.Errorf(agency.CodeInvalidState, "the message was typed, but its agent was not seen to take it")
		}
		return err
	})
}

// snooze postpones the open alerts of the marked runs, or of the one under the cursor.
func (b *board) snooze() tea.Cmd {
	runs := b.list.Targets()
	if len(runs) == 0 {
		return b.desk.Say("there is no run")
	}
	return b.each(runs, "snoozed for an hour", func(ctx context.Context, run string) error {
		open, err := b.desk.Daemon.ListAlerts(ctx, api.ListAlertsRequest{Run: run})
		if err != nil {
			return err
		}
		ids := []string{}
		for i := range open.Alerts {
			ids = append(ids, open.Alerts[i].ID)
		}
		if len(ids) == 0 {
			return agency.Errorf(agency.CodeInvalidState, "there is no alert to snooze")
		}
		_, err = b.desk.Daemon.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: ids, ForMS: inbox.Snooze.Milliseconds()})
		return err
	})
}
