package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agency"
	"agency/internal/file"
)

// lookAtSessions looks at each session with new events once, and at more.
func (w *Watchdog) lookAtSessions(ctx context.Context, turns []agency.SessionTurn, more []agency.SessionID) {
	ids := more
	for _, t := range turns {
		ids = append(ids, t.Session)
		w.turns[t.Session] = append(w.turns[t.Session], t)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if ctx.Err() != nil {
			return
		}
		err := w.lookAtSession(ctx, id, w.turns[id])
		if err == nil {
			delete(w.turns, id)
		} else if ctx.Err() == nil {
			w.Log.Error("look at session", "session", id, "err", err)
			w.againSession(id, w.Now().Add(w.current().Poll))
		}
	}
	w.tick()
}

// lookAtSession updates the episodes of one session to its current state and to its events since
// the last look.
func (w *Watchdog) lookAtSession(ctx context.Context, id agency.SessionID, turns []agency.SessionTurn) error {
	now := w.Now()
	open, err := w.Store.Alerts(ctx, agency.AlertFilter{Session: id})
	if err != nil {
		return err
	}
	s, agents, retried, err := w.Store.Troubled(ctx, id)
	gone := agency.IsCode(err, agency.CodeSessionNotFound)
	if err != nil && !gone {
		return err
	}
	var conditions []SessionCondition
	if !gone && !retried { // a retry is the required action
		conditions = SessionAlarms(s, agents)
	}
	var next time.Time
	remind := func(a *agency.Alert) error {
		at, err := w.remind(ctx, a, now, func(notifying *agency.Alert) ([]string, error) { return w.Sink.DeliverSession(ctx, notifying, s) })
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
		return err
	}
	for i := range open {
		a := &open[i]
		at := slices.IndexFunc(conditions, func(c SessionCondition) bool { return a.Kind == c.Kind && a.Cause == c.Cause })
		if at < 0 || seen(a) || interrupted(a, turns) {
			if err := w.resolve(ctx, a); err != nil {
				return err
			}
			continue
		}
		conditions = slices.Delete(conditions, at, at+1)
		if err := remind(a); err != nil {
			return err
		}
	}
	for i := range conditions {
		a, err := w.alertSession(ctx, s, &conditions[i], now)
		if err != nil {
			return err
		}
		if a == nil {
			continue // this episode was open before and is over
		}
		if err := remind(a); err != nil {
			return err
		}
	}
	w.againSession(id, next)
	if gone || s.RetryOf == "" || !slices.ContainsFunc(turns, func(t agency.SessionTurn) bool { return t.Type == agency.SessionCreated }) {
		return nil
	}
	return w.lookAtSession(ctx, s.RetryOf, nil)
}

// seen reports whether an alert is over because it was acknowledged: nothing in the session waits.
func seen(a *agency.Alert) bool { return a.Kind == agency.AlertSessionFailed && a.AckedAt != nil }

// interrupted reports whether the reason of an open alert ended after the alert was opened, even if
// it came again. Events from before do not count: the look that opened the alert may have been
// ahead of them.
func interrupted(a *agency.Alert, turns []agency.SessionTurn) bool {
	wait := map[string]bool{}
	for _, id := range alertAgents(a) {
		wait[id] = true
	}
	ended := false
	waiting := len(wait)
	for i := range turns {
		t := &turns[i]
		switch {
		case t.Type == agency.AlertOpened && t.Alert == a.ID:
			for id := range wait {
				wait[id] = true
			}
			ended, waiting = false, len(wait)
		case !ends(t, a.Kind, a.Cause):
		case t.Agent == "":
			ended = true
		case wait[t.Agent]:
			wait[t.Agent] = false
			waiting--
			ended = waiting == 0
		}
	}
	return ended
}

// alertAgents returns the agents for which an alert was opened.
func alertAgents(a *agency.Alert) []string {
	var p struct {
		Agents []string `json:"agents"`
	}
	_ = json.Unmarshal(a.Payload, &p) // an invalid payload has no agents
	return p.Agents
}

// alertSession opens the episode of a condition; nil when it was open before.
func (w *Watchdog) alertSession(ctx context.Context, s *agency.Session, c *SessionCondition, now time.Time) (*agency.Alert, error) {
	p := map[string]any{
		"session_id": s.ID, "session_name": s.Name, "status": s.Status, "repo": s.Repo.Root, "summary": s.Counts, "text": c.Text, "agents": c.Agents,
	}
	if report := s.ReportPath(); c.Kind == agency.AlertSessionFailed && file.IsRegular(report) {
		p["report_path"] = report
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode alert of session %s: %w", s.ID, err)
	}
	a := &agency.Alert{ID: w.NewID(), Kind: c.Kind, Session: s.ID, Cause: c.Cause, Payload: data, OpenedAt: now, Recipients: []string{}}
	added, err := w.Store.OpenAlert(ctx, a)
	if err != nil || !added {
		return nil, err
	}
	return a, nil
}

// againSession schedules a look at a session; zero is never.
func (w *Watchdog) againSession(id agency.SessionID, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	put(w.dueSessions, id, at)
}
