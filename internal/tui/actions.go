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

// named returns the name of a run, or how many runs there are.
func named(runs []api.Run) string {
	if len(runs) == 1 {
		return runs[0].Ref()
	}
	return fmt.Sprintf("%d runs", len(runs))
}

// actions acts on the marked runs, or on the one at the cursor.
type actions struct {
	desk  *page.Desk
	list  *list.List
	tasks []*task // those that have not ended
}

// runFunc does something with one run. caveat is what the user must know about a success, or empty.
type runFunc func(ctx context.Context, run string) (caveat string, err error)

// task is an action on several runs, one after the other. It continues after a failure.
type task struct {
	does, done string // "stopping", "stopped"
	runs       []api.Run
	at         int // the run that the task acts on now
	act        runFunc
	message    string // what the task sends; empty if it sends nothing
	id         int    // of page.Desk.Begin
	ended      bool   // the user ended it before its last run
	caveats    int    // how many runs have a caveat
	caveat     string // the last one
	failed     []*agency.Error
}

// mostReasons is how many failures of a task the user sees.
const mostReasons = 3

// steppedMsg is the end of a task for one of its runs.
type steppedMsg struct {
	task   *task
	caveat string
	err    error
}

// each begins an action on runs.
func (a *actions) each(runs []api.Run, does, done string, act runFunc) tea.Cmd {
	return a.begin(&task{does: does, done: done, runs: runs, act: act})
}

// begin begins a task.
func (a *actions) begin(t *task) tea.Cmd {
	a.tasks = append(a.tasks, t)
	return a.next(t)
}

// next acts on the next run of a task, or ends the task.
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

// stepped continues a task after one of its runs. It takes the mark from the run, unless the run failed:
// then the user can try again.
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

// end ends the tasks that have runs left, each after its present run, and reports whether there are any.
func (a *actions) end() bool {
	found := false
	for _, t := range a.tasks {
		if t.at < len(t.runs)-1 {
			t.ended, found = true, true
		}
	}
	return found
}

// complete reports whether a task has acted on all of its runs, and has not failed for any of them.
func (t *task) complete() bool { return t.at == len(t.runs) && len(t.failed) == 0 }

// result returns the result of a task.
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

// none tells the user why there is no run to act on.
func (a *actions) none() tea.Cmd {
	if marked, _ := a.list.Marked(); marked > 0 {
		return a.desk.Say("the filter hides the marked runs: " + a.desk.Key("forget") + " ends it")
	}
	return a.desk.Say("there is no run")
}

// now returns the action of a key that acts at once on the marked runs, or on the one at the cursor.
func (a *actions) now(does, done string, act runFunc) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		runs := a.list.Targets()
		if len(runs) == 0 {
			return a.none()
		}
		return a.each(runs, does, done, act)
	}
}

// sure returns the action of a key that acts like that of now, but after a question.
func (a *actions) sure(ask, does, done string, act runFunc) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		runs := a.list.Targets()
		if len(runs) == 0 {
			return a.none()
		}
		return a.desk.Confirm(fmt.Sprintf(ask, named(runs)), func() tea.Cmd { return a.each(runs, does, done, act) })
	}
}

// stop stops a run.
func (a *actions) stop(ctx context.Context, run string) (caveat string, err error) {
	_, err = a.desk.Daemon.StopRun(ctx, api.RunRequest{Run: run})
	return "", err
}

// interrupt interrupts the agent of a run.
func (a *actions) interrupt(ctx context.Context, run string) (caveat string, err error) {
	return page.InterruptRun(ctx, &a.desk.Daemon, run)
}

// remove removes a run.
func (a *actions) remove(ctx context.Context, run string) (caveat string, err error) {
	resp, err := a.desk.Daemon.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
	return page.Warned("removed", resp.Warnings), err
}

// resume resumes a run.
func (a *actions) resume(ctx context.Context, run string) (caveat string, err error) {
	return page.ResumeRun(ctx, &a.desk.Daemon, api.ResumeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
}

// snapshot saves the work of a run.
func (a *actions) snapshot(ctx context.Context, run string) (caveat string, err error) {
	return page.SaveRun(ctx, &a.desk.Daemon, run)
}

// merge lands the work of a run in its target, after the checks of the target.
func (a *actions) merge(ctx context.Context, run string) (caveat string, err error) {
	resp, err := a.desk.Daemon.MergeRun(ctx, api.MergeRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
	return page.Warned("merged", resp.Warnings), err
}

// verify runs the checks of the target on the work of a run.
func (a *actions) verify(ctx context.Context, run string) (caveat string, err error) {
	resp, err := a.desk.Daemon.VerifyRun(ctx, api.VerifyRunRequest{Run: run, Env: a.desk.Env, Config: a.desk.Config})
	if err == nil && !resp.Passed {
		return "", agency.Errorf(agency.CodeInvalidState, "the checks did not pass").WithHint("agency verify %s", resp.Run.Ref())
	}
	return "", err
}

// enqueue adds a run to the landing queue of its branch. In an empty queue it lands at once.
func (a *actions) enqueue(ctx context.Context, run string) (caveat string, err error) {
	_, err = a.desk.Daemon.AddToQueue(ctx, api.AddToQueueRequest{Runs: []string{run}, Env: a.desk.Env, Config: a.desk.Config})
	return "", err
}

// snooze snoozes the open alerts of the marked runs, or of the one at the cursor, for an hour. It ends the
// snooze instead if the first of the runs is snoozed already.
func (a *actions) snooze(string) tea.Cmd {
	runs := a.list.Targets()
	if len(runs) == 0 {
		return a.none()
	}
	does, done, wait := "snoozing", "snoozed for an hour", page.Snooze
	if runs[0].SnoozedUntil != nil {
		does, done, wait = "waking", "no longer snoozed", page.SnoozeOver
	}
	return a.each(runs, does, done, func(ctx context.Context, run string) (string, error) {
		return "", page.SnoozeRun(ctx, &a.desk.Daemon, run, wait)
	})
}
