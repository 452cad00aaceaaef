package watchdog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
)

// levels is the number of escalation levels of an alert: its owner, the orchestrator, the user.
const levels = 3

// renotify returns how long after the nth notification the next one follows.
func renotify(sent int) time.Duration {
	waits := []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour}
	return waits[min(max(sent, 1), len(waits))-1]
}

// lookAt updates the episodes of one run to its current state.
func (w *Watchdog) lookAt(ctx context.Context, id agency.RunID) error {
	s, now := w.current(), w.Now()
	open, err := w.Store.Alerts(ctx, agency.AlertFilter{Run: id})
	if err != nil {
		return err
	}
	worker, err := w.Runs.Worker(ctx, id)
	if err != nil {
		return err
	}
	gone := worker.Run.RemovedAt != nil
	landings, open := takeLandings(open)
	entries, err := w.Store.QueueEntries(ctx, agency.QueueFilter{Run: id})
	if err != nil {
		return err
	}
	conditions, err := w.addWaiting(ctx, LandingAlarms(worker.Run, worker.Status, entries), worker.Run, entries, now)
	if err != nil {
		return err
	}
	if conditions, err = w.oncePerBranch(ctx, conditions, now); err != nil {
		return err
	}
	landingNext, err := w.lookAtLandings(ctx, worker, conditions, landings, now)
	if err != nil {
		return err
	}
	var condition Condition
	var next time.Time
	if gone || !s.watches(worker.Run) {
		delete(w.inactivity, id)
	} else {
		condition, next = w.decide(ctx, &s, worker, open, now)
		if handledByQueue(worker.Run, &condition, entries) {
			condition = Condition{}
		}
	}
	var episode *agency.Alert
	for i := range open {
		if !gone && same(&open[i], worker, condition) {
			episode = &open[i]
		} else if err := w.resolve(ctx, &open[i]); err != nil {
			return err
		}
	}
	reminder, err := w.follow(ctx, &s, episode, worker, condition, now)
	if err != nil {
		return err
	}
	w.again(id, sooner(sooner(next, reminder), landingNext))
	return nil
}

// follow begins an episode for a condition that has none, brings the episode up to date, and
// returns when its next reminder is due.
func (w *Watchdog) follow(ctx context.Context, s *Settings, episode *agency.Alert, worker *Worker, condition Condition, now time.Time) (reminder time.Time, err error) {
	if episode == nil && condition.Kind != "" {
		if episode, err = w.alert(ctx, s, worker, condition, now); err != nil {
			return time.Time{}, err
		}
	}
	if episode == nil {
		return time.Time{}, nil
	}
	if episode, err = w.update(ctx, s, episode, worker, condition, now); err != nil {
		return time.Time{}, err
	}
	return w.remind(ctx, episode, now, func(notification *agency.Alert) ([]string, error) { return w.Sink.Deliver(ctx, notification, worker) })
}

// decide returns the current condition of a worker, and when it may change by time alone. A user
// who has its terminal open needs no alert about its content.
func (w *Watchdog) decide(ctx context.Context, s *Settings, worker *Worker, open []agency.Alert, now time.Time) (c Condition, next time.Time) {
	c, next = worker.condition(now), NextLook(worker.Status)
	if !next.After(now) {
		next = time.Time{}
	}
	if c.Class == agency.ErrorOutput {
		next = now.Add(s.Poll) // output that shows progress is not an event
	}
	if c.Kind == "" && Watchable(worker.Status.Label) {
		c, next = w.stuck(s, worker, open, now)
		if endless, at := w.retrying(s, worker, now); endless.Kind != "" {
			c = endless
		} else {
			next = sooner(next, at)
		}
	} else {
		delete(w.inactivity, worker.Run.ID)
	}
	if c.Kind != agency.AlertNeedsInput && c.Kind != agency.AlertStuck {
		return c, next
	}
	known := slices.ContainsFunc(open, func(a agency.Alert) bool { return same(&a, worker, c) })
	if !known && now.Before(c.FirmAt) {
		return Condition{}, c.FirmAt
	}
	if !known && w.Runs.Attached(ctx, worker) {
		if q := w.inactivity[worker.Run.ID]; q != nil {
			q.stuck = false // no notification now: what happens until the user detaches is measured first
		}
		return Condition{}, now.Add(s.Poll)
	}
	return c, next
}

func same(a *agency.Alert, worker *Worker, c Condition) bool {
	return (a.Attempt == worker.Run.Attempt.Number || c.carried(worker)) && a.Kind == c.Kind && a.Cause == c.Cause
}

// carried reports whether a condition is older than the attempt: what the agent reported in the attempt
// before still counts in one that continues in another mode.
func (c *Condition) carried(worker *Worker) bool { return c.Since.Before(worker.Run.Attempt.CreatedAt) }

// alert opens the episode of a condition. An episode that was open before, hidden behind another
// condition, reopens unchanged: its recipients are not notified again at once.
func (w *Watchdog) alert(ctx context.Context, s *Settings, worker *Worker, c Condition, now time.Time) (*agency.Alert, error) {
	if c.carried(worker) {
		before, err := w.reopen(ctx, worker.Run.ID, func(past *agency.Alert) bool { return same(past, worker, c) })
		if err != nil || before != nil {
			return before, err
		}
	}
	data, err := json.Marshal(payload(worker, c, w.Runs.Detail(ctx, worker, s.PreviewLines), s, now))
	if err != nil {
		return nil, fmt.Errorf("encode alert of %s: %w", worker.Run.Ref(), err)
	}
	a := &agency.Alert{
		ID: w.NewID(), Kind: c.Kind, RunID: worker.Run.ID, Attempt: worker.Run.Attempt.Number, Cause: c.Cause, Payload: data, OpenedAt: now,
		Recipients: []string{},
	}
	return w.open(ctx, a)
}

// open opens an episode of a run, or reopens it unchanged when it was open before.
func (w *Watchdog) open(ctx context.Context, a *agency.Alert) (*agency.Alert, error) {
	added, err := w.Store.OpenAlert(ctx, a)
	if err != nil || added {
		return a, err
	}
	return w.reopen(ctx, a.RunID, func(past *agency.Alert) bool {
		return past.Attempt == a.Attempt && past.Kind == a.Kind && past.Cause == a.Cause
	})
}

// reopen opens an episode of a run again; nil when there is none.
func (w *Watchdog) reopen(ctx context.Context, run agency.RunID, wanted func(past *agency.Alert) bool) (*agency.Alert, error) {
	past, err := w.Store.Alerts(ctx, agency.AlertFilter{Run: run, Resolved: true})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(past, func(p agency.Alert) bool { return wanted(&p) })
	if at < 0 {
		return nil, nil
	}
	return w.Store.ChangeAlert(ctx, past[at].ID, func(a *agency.Alert) (agency.EventType, error) {
		a.ResolvedAt = nil
		return agency.AlertReopened, nil
	})
}

// update updates the text of an alert about a request to what is now known about it.
func (w *Watchdog) update(ctx context.Context, s *Settings, a *agency.Alert, worker *Worker, c Condition, now time.Time) (*agency.Alert, error) {
	if c.Kind != agency.AlertNeedsInput || worker.Status.Request == nil {
		return a, nil
	}
	data, err := json.Marshal(payload(worker, c, Detail{}, s, now))
	if err != nil {
		return nil, fmt.Errorf("encode alert of %s: %w", worker.Run.Ref(), err)
	}
	if bytes.Equal(data, a.Payload) {
		return a, nil
	}
	return w.Store.ChangeAlert(ctx, a.ID, func(a *agency.Alert) (agency.EventType, error) {
		a.Payload = data
		return agency.AlertUpdated, nil
	})
}

// payload returns the payload of an alert, in the words of its kind.
func payload(worker *Worker, c Condition, d Detail, s *Settings, now time.Time) map[string]any {
	r := worker.Run
	p := map[string]any{"worker_id": r.ID, "worker_name": r.Ref(), "attempt": r.Attempt.Number, "repo": r.Repo.Root}
	switch c.Kind {
	case agency.AlertLost:
		p["last_activity"], p["output_tail"], p["error_context"] = lastActivity(worker), d.Output, c.Text
	case agency.AlertError:
		p["error_context"], p["error_class"], p["output_tail"] = c.Text, c.Class, d.Output
	case agency.AlertNeedsInput:
		p["prompt_type"], p["prompt_preview"], p["prompt_id"] = c.PromptType, c.Text, c.PromptID
		p["questions"], p["blockers"] = []string{}, []string{}
		if word := r.Attempt.OwnReport(); word != nil {
			p["questions"], p["blockers"] = word.Questions, word.Blockers
		}
	case agency.AlertComplete:
		outcome := "success"
		if worker.Status.Label == agency.ReadyForReview && !reportedComplete(worker) {
			outcome = "ready_for_review"
		}
		p["outcome"], p["completion_message"], p["dirty"], p["commits"] = outcome, c.Text, d.Dirty, d.Commits
	case agency.AlertStuck:
		silent := now.Sub(c.Since)
		p["last_activity"], p["duration_secs"], p["last_output_preview"] = c.Since, int(silent.Seconds()), strings.Join(d.Output, "\n")
		p["intervals_stuck"] = int(silent / s.Poll)
		if c.Class != "" { // it is active, but in a loop
			p["last_activity"], p["error_class"], p["error_context"] = lastActivity(worker), c.Class, c.Text
		}
	default: // about a session, not a worker
	}
	return p
}

// reportedComplete reports whether a worker's offer is its own report that all is done.
func reportedComplete(worker *Worker) bool {
	rep := worker.Run.Attempt.AgentState.Reported
	return worker.Status.Decided == agency.DecidedBy(agency.FromReport) && rep != nil && rep.Report == agency.ReportsComplete
}

// lastActivity returns the newest sign of life.
func lastActivity(worker *Worker) time.Time {
	last := signsOf(worker).newest()
	if created := worker.Run.Attempt.CreatedAt; created.After(last) {
		return created
	}
	return last
}

// resolve ends an episode.
func (w *Watchdog) resolve(ctx context.Context, a *agency.Alert) error {
	now := w.Now()
	_, err := w.Store.ChangeAlert(ctx, a.ID, func(a *agency.Alert) (agency.EventType, error) {
		if a.ResolvedAt != nil {
			return "", nil
		}
		a.ResolvedAt = &now
		return agency.AlertResolved, nil
	})
	return err
}

// remind sends the first notification of an open episode, and repeats it at higher levels until it
// is acknowledged. It returns when the next one is due.
func (w *Watchdog) remind(ctx context.Context, a *agency.Alert, now time.Time, notify func(a *agency.Alert) ([]string, error)) (time.Time, error) {
	next := due(a, now)
	if next.IsZero() || next.After(now) {
		return next, nil
	}
	level := a.Level
	if a.NotifyCount > 0 {
		level = min(level+1, levels-1)
	}
	notification := *a
	notification.Level = level
	recipients, err := notify(&notification)
	if err != nil {
		return time.Time{}, fmt.Errorf("notify of %s: %w", a.ID, err)
	}
	if recipients == nil {
		recipients = []string{}
	}
	changed, err := w.Store.ChangeAlert(ctx, a.ID, func(stored *agency.Alert) (agency.EventType, error) {
		stored.NotifyCount, stored.NotifiedAt, stored.Level, stored.Recipients = stored.NotifyCount+1, &now, level, recipients
		if until := stored.SnoozedUntil; until != nil && a.SnoozedUntil != nil && until.Equal(*a.SnoozedUntil) {
			stored.SnoozedUntil = nil // a snooze that came meanwhile puts off the next notification
		}
		return agency.AlertNotified, nil
	})
	if err != nil {
		return time.Time{}, err
	}
	return due(changed, now), nil
}

// due returns when the next notification of an episode is due; zero is never. A time later than the
// longest possible delay was written when the clock was ahead, and is due now.
func due(a *agency.Alert, now time.Time) time.Time {
	at, longest := now, time.Duration(0)
	switch {
	case a.AckedAt != nil || a.ResolvedAt != nil:
		return time.Time{}
	case a.NotifyCount == 0:
	case a.SnoozedUntil != nil:
		at, longest = *a.SnoozedUntil, agency.LongestSnooze
	case a.Kind == agency.AlertComplete:
		return time.Time{} // it was acknowledged
	default:
		longest = renotify(a.NotifyCount)
		at = a.NotifiedAt.Add(longest)
	}
	if at.After(now.Add(longest + time.Minute)) { // the margin covers a snooze that came after now was read
		return now
	}
	return at
}
