package queuer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/plain"
	"agency/internal/queue"
)

// ask asks the agent of an entry to resolve its conflict, or to fix what a check found, and records
// how it was asked. When only the user can act, it flags the run instead. After a crash between
// asking and recording, it asks again, unless the work for the first request has begun by then.
// When only the user can fix a failed check, the entry has failed.
func (l *line) ask(ctx context.Context, seen *look, a *queue.Action) error {
	e := &seen.entries[slices.IndexFunc(seen.entries, func(e agency.QueueEntry) bool { return e.Seq == a.Entry })]
	r := seen.runs[a.Entry]
	var task *task
	var err error
	if e.State == agency.EntryFixing {
		task, err = l.fixing(ctx, r, a.Source)
	} else {
		task = l.solving(seen, a)
	}
	if err != nil {
		return err
	}
	asked, words, err := l.reach(ctx, e, r, a.Source, task)
	if err != nil {
		return err
	}
	failed := e.State == agency.EntryFixing && asked == agency.AskedUser
	flag := l.FlagConflict
	if failed {
		flag = l.Flag
	}
	if asked == agency.AskedUser {
		if err := flag(ctx, r.ID, e.Reason); err != nil {
			return err
		}
	}
	killpoint.At("queue.asked")
	_, err = l.Store.ChangeQueueEntries(ctx, []int64{a.Entry}, func(now *agency.QueueEntry) bool {
		if now.State != e.State || now.Rounds != e.Rounds {
			return false // the user has changed it meanwhile
		}
		now.Asked, now.Reason = asked, now.Reason+"; "+words
		switch {
		case failed:
			now.State = agency.EntryFailed
		case asked == agency.AskedRun:
			now.State = agency.EntryDropped
		}
		return true
	})
	return err
}

// task is what an agent is asked to do about its work.
type task struct {
	about  agency.AlertKind
	text   string // for the agent
	do     string // in a few words, as the user can ask for it
	asked  string // what a live agent was asked to do
	does   string // what an agent that was resumed does
	byHand string // what the user of a script does instead
}

// solving returns the task to solve a conflict.
func (l *line) solving(seen *look, a *queue.Action) *task {
	link, target := seen.links[a.Entry], l.ref.Target
	files, _ := agency.AsError(link.Err).Details["files"].([]string)
	named := make([]string, 0, len(files))
	for _, file := range files {
		named = append(named, plain.Visible(file))
	}
	do := "Please merge " + target + " into your branch, solve the conflicts, commit, and report again."
	return &task{
		about: agency.AlertLandingConflict, text: "Your work at " + short(a.Source) + " conflicts with " + target + " at " + short(seen.chain.TargetOld) + " in " + strings.Join(named, ", ") + ". " + do,
		do: do, asked: "its agent was asked to solve it", does: "its agent solves it", byHand: "solve it",
	}
}

// outputLimit is how much of the output of a failed check an agent gets, in bytes.
const outputLimit = 2000

// fixing returns the task to fix what a check found in the work of a run.
func (l *line) fixing(ctx context.Context, r *agency.Run, source string) (*task, error) {
	target := l.ref.Target
	failed, output, err := l.Verifier.Failed(ctx, r.ID, source, outputLimit)
	if err != nil {
		return nil, err
	}
	do := "Please merge " + target + " into your branch, fix what the check found, commit, and report again."
	t := &task{about: agency.AlertLandingFailed, do: do, asked: "its agent was asked to fix it", does: "its agent fixes it", byHand: "fix it"}
	t.text = "Your work at " + short(source) + ", merged with " + target + ", does not pass the checks of " + target + ". " + do
	if failed != nil {
		t.text = fmt.Sprintf("Your work at %s, merged with %s, does not pass the check %s of %s: %s. %s Its output: agency verify %s --log %s",
			short(source), target, failed.Name, target, failed.Reason, do, r.Ref(), plain.ShellWord(failed.Name))
		if output != "" {
			t.text += "; it ends with:\n\n" + output
		}
	}
	return t, nil
}

// reach brings a task to the agent of an entry. A live agent gets it as a message, one that has
// ended by another attempt, and a new run gets it when the run was removed. words describes what
// was done, or why the user must act. An error means a failure of the machine.
func (l *line) reach(ctx context.Context, e *agency.QueueEntry, r *agency.Run, source string, t *task) (asked agency.Asked, words string, err error) {
	byUser := "ask its agent: agency resume " + r.Ref() + " --prompt " + plain.ShellWord(t.do)
	switch {
	case !r.Attempt.State.Final():
		return agency.AskedMessage, t.asked, l.tell(ctx, r, t)
	case r.RemovedAt != nil && (r.Runner.Kind == agency.Shell || e.By != agency.User && !l.Settings().Approve):
		return agency.AskedUser, "it is removed: " + t.byHand + " on its branch " + r.Branch, nil
	case r.RemovedAt != nil:
		return l.fixUp(ctx, e, r, source, t)
	case r.Runner.Kind == agency.Shell: // a script cannot read what to do
		return agency.AskedUser, "it is a script; " + t.byHand + ` in its worktree: cd "$(agency path ` + r.Ref() + `)" && git merge ` + plain.ShellWord(e.Target), nil
	case e.By != agency.User && !l.Settings().Approve: // an entry that an agent added must not cost tokens without approval
		return agency.AskedUser, byUser, nil
	}
	env, err := l.readEnv(l.ref.Repo)
	if err != nil {
		return "", "", err
	}
	if err := l.Resume(ctx, r, t.text, env); err != nil {
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		return agency.AskedUser, "its agent could not be asked: " + agency.AsError(err).Message + "; " + byUser, nil
	}
	return agency.AskedResume, t.does, nil
}

// tell gives a live agent a task: it types the task into its terminal or, when that is impossible,
// as for a script, puts it into its inbox.
func (l *line) tell(ctx context.Context, r *agency.Run, t *task) error {
	if r.Runner.Kind != agency.Shell {
		if _, _, err := l.Input.Send(ctx, string(r.ID), t.text, ""); err == nil {
			return nil
		}
	}
	payload, err := json.Marshal(map[string]string{"text": t.text})
	if err != nil {
		return err
	}
	_, _, err = l.Inbox.Send(ctx, &agency.Message{Type: string(t.about), From: agency.Daemon, To: agency.Target{Run: string(r.ID)}, Payload: payload})
	return err
}

func short(commit string) string { return commit[:min(len(commit), 12)] }

// times returns a number of repetitions in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
