package tui

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
	"agency/internal/tui/inbox"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
)

// named returns the runs as a sentence names them.
func named(runs []api.Run) string {
	if len(runs) == 1 {
		return runs[0].Ref()
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// actions act on the marked runs, or on the one under the cursor.
type actions struct {
	desk *page.Desk
	list *list.List
}

// each acts on runs one after the other and continues after a failure, which is what is said then.
func (a *actions) each(runs []api.Run, done string, act func(ctx context.Context, run string) error) tea.Cmd {
	ctx := a.desk.Ctx
	a.list.Unmark()
	return tea.Batch(a.desk.Say(named(runs)+" …"), func() tea.Msg {
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
func (a *actions) confirmed(ask string, do func(runs []api.Run) tea.Cmd) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.desk.Say("there is no run")
	}
	return a.desk.Confirm(fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return do(runs) })
}

func (a *actions) stop(string) tea.Cmd {
	return a.confirmed("stop %s? the worktree stays", func(runs []api.Run) tea.Cmd {
		return a.each(runs, "stopped", func(ctx context.Context, run string) error {
			_, err := a.desk.Daemon.StopRun(ctx, api.RunRequest{Run: run})
			return err
		})
	})
}

func (a *actions) remove(string) tea.Cmd {
	return a.confirmed("remove %s? unsaved work is saved first", func(runs []api.Run) tea.Cmd {
		return a.each(runs, "removed", func(ctx context.Context, run string) error {
			_, err := a.desk.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
			return err
		})
	})
}

func (a *actions) resume(string) tea.Cmd {
	return a.confirmed("resume %s?", func(runs []api.Run) tea.Cmd {
		return a.each(runs, "resumed", func(ctx context.Context, run string) error {
			_, err := a.desk.Daemon.ResumeRun(ctx, api.ResumeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
			return err
		})
	})
}

func (a *actions) snapshot(string) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.desk.Say("there is no run")
	}
	return a.each(runs, "saved", func(ctx context.Context, run string) error {
		_, err := a.desk.Daemon.TakeSnapshot(ctx, api.RunRequest{Run: run})
		return err
	})
}

// merge lands the work of runs, each in its target, after the checks of the target.
func (a *actions) merge(string) tea.Cmd {
	return a.confirmed("merge %s into its branch?", func(runs []api.Run) tea.Cmd {
		return a.each(runs, "merged", func(ctx context.Context, run string) error {
			ctx, cancel := context.WithTimeout(ctx, landTime)
			defer cancel()
			_, err := a.desk.Daemon.MergeRun(ctx, api.MergeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
			return err
		})
	})
}

// verify runs the checks of the target on the work of runs.
func (a *actions) verify(string) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.desk.Say("there is no run")
	}
	return a.each(runs, "passed the checks", func(ctx context.Context, run string) error {
		ctx, cancel := context.WithTimeout(ctx, landTime)
		defer cancel()
		resp, err := a.desk.Daemon.VerifyRun(ctx, api.VerifyRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
		if err == nil && !resp.Passed {
			return agency.Errorf(agency.CodeInvalidState, "the checks did not pass").WithHint("agency verify %s", resp.Run.Ref())
		}
		return err
	})
}

// enqueue adds runs to the landing queue of their branch. In an empty one, a run lands at once.
func (a *actions) enqueue(string) tea.Cmd {
	return a.confirmed("queue %s to land in its branch?", func(runs []api.Run) tea.Cmd {
		return a.each(runs, "waits to land: Q", func(ctx context.Context, run string) error {
			_, err := a.desk.Daemon.AddToQueue(ctx, api.AddToQueueRequest{Runs: []string{run}, Env: a.desk.Env, Config: a.desk.Config})
			return err
		})
	})
}

// landTime is how long a landing or checks may take, as for agency merge.
const landTime = 5 * time.Minute

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
	return b.do.each(b.targets, "got the message", func(ctx context.Context, run string) error {
		resp, err := b.desk.Daemon.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
		if err == nil && !resp.Confirmed {
			return agency.Errorf(agency.CodeInvalidState, "agency typed the message, but did not see the agent accept it")
		}
		return err
	})
}

// startMove begins the change of mode of the marked runs, or of the one under the cursor.
func (b *board) startMove(string) tea.Cmd {
	b.targets = b.list.Targets()
	if len(b.targets) == 0 {
		return b.desk.Say("there is no run")
	}
	b.typing, b.field = moving, field.New(string(page.OtherMode(b.targets[0].Mode)))
	return nil
}

func (b *board) move(text string) tea.Cmd {
	return b.do.each(b.targets, "continues in another mode", func(ctx context.Context, run string) error {
		_, err := b.desk.Daemon.ResumeRun(ctx, page.ReadMode(run, text, b.desk.Env, b.desk.Config))
		return err
	})
}

// snooze postpones the open alerts of the marked runs, or of the one under the cursor.
func (a *actions) snooze() tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.desk.Say("there is no run")
	}
	return a.each(runs, "snoozed for an hour", func(ctx context.Context, run string) error {
		open, err := a.desk.Daemon.ListAlerts(ctx, api.ListAlertsRequest{Run: run})
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
		_, err = a.desk.Daemon.SnoozeAlerts(ctx, api.SnoozeAlertRequest{Alerts: ids, ForMS: inbox.Snooze.Milliseconds()})
		return err
	})
}
