package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
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

// task is an action on runs, one after the other. It continues after a failure.
type task struct {
	does, done string // "stopping", "stopped"
	runs       []api.Run
	at         int
	act        func(ctx context.Context, run string) error
	id         int   // of what the first row shows
	failed     int   // how many failed
	err        error // of the first of them
}

// steppedMsg is a task of which another run is done, or has failed.
type steppedMsg struct {
	task task
	err  error
}

// each begins an action on runs.
func (a *actions) each(runs []api.Run, does, done string, act func(ctx context.Context, run string) error) tea.Cmd {
	t := task{does: does, done: done, runs: runs, act: act}
	return a.next(&t)
}

// next acts on the run of a task that is next, or ends the task.
func (a *actions) next(t *task) tea.Cmd {
	if t.at == len(t.runs) {
		return func() tea.Msg { return t.ended() }
	}
	does := t.does + " " + t.runs[t.at].Ref()
	if n := len(t.runs); n > 1 {
		does += fmt.Sprintf(" (%d of %d)", t.at+1, n)
	}
	t.id = a.desk.Begin(t.id, does)
	ctx, step := a.desk.Ctx, *t
	return func() tea.Msg { return steppedMsg{step, step.act(ctx, string(step.runs[step.at].ID))} }
}

// stepped takes the mark from a run that is done. One that failed keeps it, to be tried again.
func (a *actions) stepped(msg steppedMsg) tea.Cmd {
	t := &msg.task
	r := &t.runs[t.at]
	t.at++
	if msg.err == nil {
		a.list.Unmark(r.ID)
		return a.next(t)
	}
	if t.failed++; t.failed == 1 {
		e := agency.AsError(msg.err)
		t.err = agency.Errorf(e.Code, "%s: %s", r.Ref(), e.Message).WithHint("%s", e.Hint)
	}
	return a.next(t)
}

// ended returns what came of a task.
func (t *task) ended() page.Acted {
	err := t.err
	if t.failed > 1 {
		e := agency.AsError(err)
		err = agency.Errorf(e.Code, "%d of %d failed, first %s", t.failed, len(t.runs), e.Message).WithHint("%s", e.Hint)
	}
	return page.Acted{Text: named(t.runs) + " " + t.done, Err: err, ID: t.id}
}

// none tells why there is no run to act on.
func (a *actions) none() tea.Cmd {
	if marked, _ := a.list.Marked(); marked > 0 {
		return a.desk.Say("the filter hides the marked runs: " + a.desk.Key("forget") + " ends it")
	}
	return a.desk.Say("there is no run")
}

// now begins an action on the marked runs, or on the one under the cursor.
func (a *actions) now(does, done string, act func(ctx context.Context, run string) error) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		runs := a.list.Targets()
		if len(runs) == 0 {
			return a.none()
		}
		return a.each(runs, does, done, act)
	}
}

// sure is now, after a question.
func (a *actions) sure(ask, does, done string, act func(ctx context.Context, run string) error) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		runs := a.list.Targets()
		if len(runs) == 0 {
			return a.none()
		}
		return a.desk.Confirm(fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return a.each(runs, does, done, act) })
	}
}

func (a *actions) stop(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.StopRun(ctx, api.RunRequest{Run: run})
	return err
}

func (a *actions) interrupt(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.InterruptRun(ctx, api.RunRequest{Run: run})
	return err
}

func (a *actions) remove(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
	return err
}

func (a *actions) resume(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.ResumeRun(ctx, api.ResumeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
	return err
}

func (a *actions) snapshot(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.TakeSnapshot(ctx, api.RunRequest{Run: run})
	return err
}

// merge lands the work of a run in its target, after the checks of the target.
func (a *actions) merge(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, page.LandTime)
	defer cancel()
	_, err := a.desk.Daemon.MergeRun(ctx, api.MergeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
	return err
}

// verify runs the checks of the target on the work of a run.
func (a *actions) verify(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, page.LandTime)
	defer cancel()
	resp, err := a.desk.Daemon.VerifyRun(ctx, api.VerifyRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
	if err == nil && !resp.Passed {
		return agency.Errorf(agency.CodeInvalidState, "the checks did not pass").WithHint("agency verify %s", resp.Run.Ref())
	}
	return err
}

// enqueue adds a run to the landing queue of its branch. In an empty one, it lands at once.
func (a *actions) enqueue(ctx context.Context, run string) error {
	_, err := a.desk.Daemon.AddToQueue(ctx, api.AddToQueueRequest{Runs: []string{run}, Env: a.desk.Env, Config: a.desk.Config})
	return err
}

// startSend begins a message to the marked runs, or to the one under the cursor.
func (b *board) startSend(string) tea.Cmd {
	runs := b.list.Targets()
	if len(runs) == 0 {
		return b.do.none()
	}
	b.targets, b.typing, b.field = runs, sending, field.New("")
	return nil
}

func (b *board) send(text string) tea.Cmd {
	return b.do.each(b.targets, "sending to", "got the message", func(ctx context.Context, run string) error {
		resp, err := b.desk.Daemon.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
		if err == nil && !resp.Confirmed {
			return agency.Errorf(agency.CodeInvalidState, "agency typed the message, but did not see the agent accept it")
		}
		return err
	})
}

// startMove begins the change of mode of the marked runs, or of the one under the cursor.
func (b *board) startMove(string) tea.Cmd {
	runs := b.list.Targets()
	if len(runs) == 0 {
		return b.do.none()
	}
	b.targets, b.typing, b.field = runs, moving, field.New(string(page.OtherMode(runs[0].Mode)))
	return nil
}

func (b *board) move(text string) tea.Cmd {
	return b.do.each(b.targets, "changing the mode of", "moved to another mode", func(ctx context.Context, run string) error {
		_, err := b.desk.Daemon.ResumeRun(ctx, page.ReadMode(run, text, b.desk.Env, b.desk.Config))
		return err
	})
}

// snooze puts off the open alerts of the marked runs, or of the one under the cursor: for an hour or,
// when those of the first of them are put off already, no longer.
func (a *actions) snooze(string) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.none()
	}
	if runs[0].SnoozedUntil != nil {
		return a.each(runs, "waking", "no longer snoozed", func(ctx context.Context, run string) error {
			return page.PutOff(ctx, &a.desk.Daemon, run, page.SnoozeOver)
		})
	}
	return a.each(runs, "snoozing", "snoozed for an hour", func(ctx context.Context, run string) error { return page.PutOff(ctx, &a.desk.Daemon, run, page.Snooze) })
}
