package daemon

import (
	"context"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
)

const (
	// reportPatience is how long a wait goes on after a session has settled, for what its agents came to and for its report.
	reportPatience = 5 * time.Second
	// waitPause is the least time between two looks of a wait, however much happens.
	waitPause = 100 * time.Millisecond
)

// waitSession waits until a session has settled and its results are known, or with attention until somebody is needed, or with paused until it is paused for somebody. What it
// returns when the time is up may be running, and then needed nobody until now.
func (d *Daemon) waitSession(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
	var none api.ShowSessionResponse
	timeout, err := milliseconds("timeout_ms", req.TimeoutMS)
	if err != nil {
		return none, err
	}
	found, err := d.finder.LookUp(ctx, req.Session, req.Dir)
	if err != nil {
		return none, err
	}
	ctx, cancel := d.untilStop(ctx)
	defer cancel()
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	clock := time.NewTicker(d.active.config().Watchdog.PollInterval)
	defer clock.Stop()
	w := &sessionWait{Daemon: d, id: found.ID, attention: req.Attention, paused: req.Paused}
	for timedOut := false; ; {
		changed, began := d.store.Changed(), time.Now()
		over, err := w.over(ctx)
		if err != nil {
			return none, err
		}
		if over || timedOut {
			resp, err := d.showOf(ctx, w.id)
			if err != nil || timedOut || resp.Session.Status.Final() || req.Attention && resp.Session.NeedsPerson() || req.Paused && resp.Session.Stopped() {
				return resp, err
			}
			w.stale = true // somebody has helped meanwhile
		}
		// Who waits for a session that changes all the time must not keep the daemon busy with it.
		rested := time.After(max(waitPause, 5*time.Since(began)))
		select {
		case <-changed:
		case <-clock.C:
			w.stale = true // some statuses come with time alone, without an event
		case <-w.patience:
			w.impatient = true
		case <-late:
			timedOut = true
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
		select {
		case <-rested:
		case <-late:
			timedOut = true
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
}

// sessionWait is somebody who waits for a session.
type sessionWait struct {
	*Daemon
	id        agency.SessionID
	attention bool
	paused    bool

	patience  <-chan time.Time // for the report; nil until the session has settled
	impatient bool

	seq    int64 // the newest event that was taken into account
	seen   time.Time
	agents []agency.SessionAgent // as of seen, an UpdatedAt of the session
	stale  bool                  // how the agents stand has to be looked at
}

// over says whether the session is where its waiter wants it. Events of other sessions cost it next to nothing.
func (w *sessionWait) over(ctx context.Context) (bool, error) {
	s, err := w.store.Session(ctx, w.id)
	if err != nil {
		return false, err
	}
	if s.Status.Final() {
		if w.patience == nil {
			w.patience = time.After(reportPatience)
		}
		return s.Outside || s.Reported || w.impatient, nil
	}
	if w.paused && s.Paused != "" && s.Paused != agency.PausedByHand {
		return true, nil
	}
	if !w.attention || s.Paused != "" {
		return w.attention, nil
	}
	return w.needed(ctx, s)
}

// needed says whether an agent needs a person. It looks only when something happened to the session or one of its runs.
func (w *sessionWait) needed(ctx context.Context, s *agency.Session) (bool, error) {
	changed, seq, err := w.store.ChangedRuns(ctx, w.seq)
	if err != nil {
		return false, err
	}
	if !s.UpdatedAt.Equal(w.seen) {
		if w.agents, err = w.store.SessionAgents(ctx, w.id); err != nil {
			return false, err
		}
		w.stale = true
	}
	w.seq, w.seen = seq, s.UpdatedAt
	stale := w.stale || slices.ContainsFunc(w.agents, func(a agency.SessionAgent) bool {
		return a.Status == agency.AgentRunning && slices.Contains(changed, a.Run)
	})
	w.stale = false
	if !stale {
		return false, nil
	}
	waiting, err := w.waiting(ctx, s, w.agents)
	return waiting > 0, err
}
