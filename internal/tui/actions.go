package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
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
	desk  *page.Desk
	list  *list.List
	tasks []*task // that have not ended
}

// deed is what is done with one run. It returns what the user has to know of it, if anything.
type deed func(ctx context.Context, run string) (caveat string, err error)

// task is an action on runs, one after the other. It continues after a failure.
type task struct {
	does, done string // "stopping", "stopped"
	runs       []api.Run
	at         int
	act        deed
	id         int // of what the first row shows
	ended      bool
	caveats    int // how many runs have one
	caveat     string
	failed     []*agency.Error
}

// mostReasons is how many failures of a task are told.
const mostReasons = 3

// steppedMsg is a task of which another run is done, or has failed.
type steppedMsg struct {
	task   *task
	caveat string
	err    error
}

// each begins an action on runs.
func (a *actions) each(runs []api.Run, does, done string, act deed) tea.Cmd {
	t := &task{does: does, done: done, runs: runs, act: act}
	a.tasks = append(a.tasks, t)
	return a.next(t)
}

// next acts on the run of a task that is next, or ends the task.
func (a *actions) next(t *task) tea.Cmd {
	if t.at == len(t.runs) || t.ended {
		a.tasks = slices.DeleteFunc(a.tasks, func(other *task) bool { return other == t })
		acted := t.result()
		return func() tea.Msg { return acted }
	}
	r := &t.runs[t.at]
	does := t.does + " " + r.Ref()
	if n := len(t.runs); n > 1 {
		does += fmt.Sprintf(" (%d of %d)", t.at+1, n)
	}
	t.id = a.desk.Begin(t.id, does)
	ctx, act, run := a.desk.Ctx, t.act, string(r.ID)
	return func() tea.Msg {
		caveat, err := act(ctx, run)
		return steppedMsg{t, caveat, err}
	}
}

// stepped takes the mark from a run that is done. One that failed keeps it, to be tried again.
func (a *actions) stepped(msg steppedMsg) tea.Cmd {
	t := msg.task
	r := &t.runs[t.at]
	t.at++
	switch {
	case msg.err != nil:
		e := agency.AsError(msg.err)
		t.failed = append(t.failed, agency.Errorf(e.Code, "%s: %s", r.Ref(), e.Message).WithHint("%s", e.Hint))
	case msg.caveat != "":
		t.caveats, t.caveat = t.caveats+1, msg.caveat
		fallthrough
	default:
		a.list.Unmark(r.ID)
	}
	return a.next(t)
}

// end ends the tasks that have runs left, after the present one, and reports whether there are any.
func (a *actions) end() bool {
	found := false
	for _, t := range a.tasks {
		if t.at < len(t.runs)-1 {
			t.ended, found = true, true
		}
	}
	return found
}

// result returns what came of a task.
func (t *task) result() page.Acted {
	acted := page.Acted{ID: t.id}
	switch n := len(t.failed); {
	case n == 1:
		acted.Err = t.failed[0]
	case n > 1:
		reasons := []string{}
		for _, e := range t.failed[:min(n, mostReasons)] {
			reasons = append(reasons, e.Message)
		}
		if n > mostReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more", n-mostReasons))
		}
		acted.Err = agency.Errorf(t.failed[0].Code, "%d of %d failed: %s", n, len(t.runs), strings.Join(reasons, "; "))
	case t.caveats > 0 && len(t.runs) > 1:
		acted.Text = fmt.Sprintf("%d of %d: %s", t.caveats, len(t.runs), t.caveat)
	case t.caveats > 0:
		acted.Text = t.runs[0].Ref() + ": " + t.caveat
	case t.at < len(t.runs):
		acted.Text = fmt.Sprintf("ended after %d of %d runs", t.at, len(t.runs))
	default:
		acted.Text = named(t.runs) + " " + t.done
	}
	return acted
}

// none tells the user why the action has no run.
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
		return a.each(runs, does, done, plainly(act))
	}
}

// plainly returns a deed of which the user has to know nothing.
func plainly(act func(ctx context.Context, run string) error) deed {
	return func(ctx context.Context, run string) (string, error) { return "", act(ctx, run) }
}

// sure is now, after a question.
func (a *actions) sure(ask, does, done string, act func(ctx context.Context, run string) error) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		runs := a.list.Targets()
		if len(runs) == 0 {
			return a.none()
		}
		return a.desk.Confirm(fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return a.each(runs, does, done, plainly(act)) })
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

// snooze puts off the open alerts of the marked runs, or of the one under the cursor: for an hour or,
// when those of the first of them are put off already, no longer.
func (a *actions) snooze(string) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.none()
	}
	if runs[0].SnoozedUntil != nil {
		return a.each(runs, "waking", "no longer snoozed", plainly(func(ctx context.Context, run string) error {
			return page.SnoozeRun(ctx, &a.desk.Daemon, run, page.SnoozeOver)
		}))
	}
	return a.each(runs, "snoozing", "snoozed for an hour", plainly(func(ctx context.Context, run string) error { return page.SnoozeRun(ctx, &a.desk.Daemon, run, page.Snooze) }))
}
