package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agency"
)

// LandingCondition is why a user or an agent must act on the landing of a run now. The same kind
// and cause is one episode.
type LandingCondition struct {
	Kind    agency.AlertKind
	Cause   string
	Entry   *agency.QueueEntry
	Command string    // the command that lets the landing continue
	At      time.Time // when it begins to hold; zero is at once
}

// LandingAlarms returns the conditions of the entries of a run in landing queues, the oldest first.
// An agent that was asked to mend its work has TurnEndedTimeout to begin, and the queue has as long to
// see what it did. There are no conditions for what users know: entries that they held by hand, and
// entries that have not changed since they removed the run.
func LandingAlarms(r *agency.Run, s agency.Status, entries []agency.QueueEntry) []LandingCondition {
	conditions := []LandingCondition{}
	if r.MergedAt != nil || r.Abandoned {
		return conditions
	}
	for i := range entries {
		e := &entries[i]
		later := func(other agency.QueueEntry) bool { return other.Target == e.Target }
		c := LandingCondition{Cause: fmt.Sprintf("entry %d %s", e.Seq, stamp(e.ChangedAt)), Entry: e}
		switch {
		case slices.ContainsFunc(entries[i+1:], later): // it was added again
		case r.RemovedAt != nil && e.ChangedAt.Before(*r.RemovedAt):
		case e.State == agency.EntryFailed && r.Flag != nil:
			c.Kind, c.Command = agency.AlertLandingFailed, "agency queue retry "+r.Ref()
		case e.State == agency.EntryHeld && e.HeldFor == agency.HeldForConflict:
			c.Kind, c.Command = agency.AlertLandingConflict, "agency queue retry "+r.Ref()
		case e.State == agency.EntryHeld && e.HeldFor == agency.HeldForApproval:
			c.Kind, c.Command = agency.AlertLandingHeld, "agency queue add "+r.Ref()+" --approve"
		case e.State == agency.EntryHeld && e.HeldFor == agency.HeldForTarget:
			c.Kind, c.Command = agency.AlertLandingHeld, "agency queue explain "+r.Ref()
		case e.State == agency.EntryHeld && e.HeldFor == agency.HeldForWork:
			c.Kind, c.Command = agency.AlertLandingHeld, "agency queue resume "+r.Ref()
		case e.State == agency.EntryConflict:
			c.Kind, c.Command, c.At = unsolved(r, s, e, agency.AlertLandingConflict)
		case e.State == agency.EntryFixing:
			c.Kind, c.Command, c.At = unsolved(r, s, e, agency.AlertLandingFailed)
		}
		if c.Kind != "" {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// unsolved returns the condition of an entry whose agent is asked to mend its work: of the kind wanted, or
// without a kind while the agent is at work or about to begin.
func unsolved(r *agency.Run, s agency.Status, e *agency.QueueEntry, wanted agency.AlertKind) (kind agency.AlertKind, command string, at time.Time) {
	command = "agency attach " + r.Ref()
	if r.Attempt.State.Final() {
		command = "agency queue explain " + r.Ref()
	}
	switch e.Asked {
	case agency.AskedNot, agency.AskedRun:
		return "", "", at
	case agency.AskedUser:
		return wanted, command, at
	case agency.AskedMessage, agency.AskedResume:
	}
	switch s.Label {
	case agency.Working, agency.Active, agency.LabelQueued, agency.Stalled, agency.NeedsInput, agency.Blocked:
		return "", "", at // at work, or with an alert as a worker
	default:
	}
	at = e.ChangedAt
	for _, began := range []*time.Time{&s.Since, r.Attempt.EndedAt} {
		if began != nil && began.After(at) {
			at = *began
		}
	}
	return wanted, command, at.Add(TurnEndedTimeout)
}

// lookAtLandings updates the episodes about the landings of a run, and returns when a condition or
// a notification of one is due; zero is never. open are the open ones.
func (w *Watchdog) lookAtLandings(ctx context.Context, worker *Worker, conditions []LandingCondition, open []agency.Alert, now time.Time) (next time.Time, err error) {
	for i := range conditions {
		c := &conditions[i]
		if c.At.After(now) {
			next = sooner(next, c.At)
			continue
		}
		is := func(a agency.Alert) bool { return a.Kind == c.Kind && a.Cause == c.Cause }
		if at := slices.IndexFunc(open, is); at >= 0 {
			at, err := w.remindLanding(ctx, &open[at], worker, now)
			if err != nil {
				return next, err
			}
			next = sooner(next, at)
			open = slices.DeleteFunc(slices.Clone(open), is)
			continue
		}
		a, err := w.alertLanding(ctx, worker, c, now)
		if err != nil {
			return next, err
		}
		if a == nil {
			continue // removed meanwhile
		}
		at, err := w.remindLanding(ctx, a, worker, now)
		if err != nil {
			return next, err
		}
		next = sooner(next, at)
	}
	for i := range open {
		if err := w.resolve(ctx, &open[i]); err != nil {
			return next, err
		}
	}
	return next, nil
}

// addWaiting adds the conditions of entries whose queue has waited for the user since
// TurnEndedTimeout: for a file in the way, checks that are not trusted, or a branch that does not pass
// its own checks. The note of a queue changes without an event of a run, so addWaiting also adds a
// condition without a kind, which makes the watchdog look again.
func (w *Watchdog) addWaiting(ctx context.Context, conditions []LandingCondition, r *agency.Run, entries []agency.QueueEntry, now time.Time) ([]LandingCondition, error) {
	if r.MergedAt != nil || r.Abandoned {
		return conditions, nil
	}
	for i := range entries {
		e := entries[i]
		if !e.State.Moving() || r.RemovedAt != nil && e.ChangedAt.Before(*r.RemovedAt) {
			continue
		}
		q, err := w.Store.Queue(ctx, agency.QueueRef{Repo: e.Repo, Target: e.Target})
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, LandingCondition{Entry: &e, At: now.Add(w.current().Poll)}) // look again
		if q.Note != "" && !q.Paused {
			e.Reason = q.Note
			conditions = append(conditions, LandingCondition{
				Kind: agency.AlertLandingHeld, Cause: fmt.Sprintf("entry %d %s", e.Seq, stamp(e.ChangedAt)), Entry: &e,
				Command: "agency queue explain " + r.Ref(), At: e.ChangedAt.Add(TurnEndedTimeout),
			})
		}
	}
	return conditions, nil
}

// oncePerBranch puts off the conditions of entries that wait for their branch while another entry of
// the same queue has an alert about that.
func (w *Watchdog) oncePerBranch(ctx context.Context, conditions []LandingCondition, now time.Time) ([]LandingCondition, error) {
	for i := range conditions {
		e := conditions[i].Entry
		if !waitsForBranch(e) || conditions[i].Kind == "" {
			continue
		}
		entries, err := w.Store.QueueEntries(ctx, agency.QueueFilter{Repo: e.Repo, Target: e.Target, Open: true})
		if err != nil {
			return nil, err
		}
		open, err := w.Store.Alerts(ctx, agency.AlertFilter{})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(entries, func(other agency.QueueEntry) bool {
			return other.RunID != e.RunID && waitsForBranch(&other) && slices.ContainsFunc(open, func(a agency.Alert) bool {
				return a.RunID == other.RunID && a.Kind == agency.AlertLandingHeld
			})
		}) {
			conditions[i].At = now.Add(w.current().Poll)
		}
	}
	return conditions, nil
}

// waitsForBranch reports whether an entry waits because of its branch, as all entries of its queue do.
func waitsForBranch(e *agency.QueueEntry) bool {
	return e.State.Moving() || e.State == agency.EntryHeld && e.HeldFor == agency.HeldForTarget
}

func (w *Watchdog) remindLanding(ctx context.Context, a *agency.Alert, worker *Worker, now time.Time) (time.Time, error) {
	return w.remind(ctx, a, now, func(notifying *agency.Alert) ([]string, error) { return w.Sink.Deliver(ctx, notifying, worker) })
}

// alertLanding opens the episode of a condition, or reopens it when the agent worked meanwhile.
// A condition that only a user may end goes to the user at once.
func (w *Watchdog) alertLanding(ctx context.Context, worker *Worker, c *LandingCondition, now time.Time) (*agency.Alert, error) {
	r := worker.Run
	data, err := json.Marshal(map[string]any{
		"worker_id": r.ID, "worker_name": r.Ref(), "repo": r.Repo.Root, "target": c.Entry.Target, "source": c.Entry.Source, "text": c.Entry.Reason, "command": c.Command,
	})
	if err != nil {
		return nil, fmt.Errorf("encode alert of %s: %w", r.Ref(), err)
	}
	a := &agency.Alert{ID: w.NewID(), Kind: c.Kind, RunID: r.ID, Cause: c.Cause, Payload: data, OpenedAt: now, Recipients: []string{}}
	if c.Kind == agency.AlertLandingHeld {
		a.Level = levels - 1
	}
	return w.open(ctx, a)
}

// handledByQueue reports whether a landing queue acts on the condition of a run: it lands what is
// done, and has an alert of its own about work whose checks do not pass or that conflicts.
func handledByQueue(r *agency.Run, c *Condition, entries []agency.QueueEntry) bool {
	if len(entries) == 0 || r.MergedAt != nil || r.Abandoned {
		return false
	}
	entry := &entries[len(entries)-1]
	last := entry.State
	switch {
	case c.Kind == agency.AlertComplete:
		return !last.Final()
	case c.PromptType == agency.PromptAttention && r.Flag != nil && (r.Flag.By == agency.FlaggedByChecks || r.Flag.By == agency.FlaggedByLanding):
		return last.Moving() || last.WithAgent() || last == agency.EntryFailed || last == agency.EntryHeld && entry.HeldFor == agency.HeldForConflict
	}
	return false
}

// takeLandings removes the alerts about landings from those of a run, and returns them.
func takeLandings(alerts []agency.Alert) (landings, others []agency.Alert) {
	for i := range alerts {
		if slices.Contains(agency.LandingAlertKinds(), alerts[i].Kind) {
			landings = append(landings, alerts[i])
		} else {
			others = append(others, alerts[i])
		}
	}
	return landings, others
}
