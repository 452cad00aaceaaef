package session

import (
	"context"
	"slices"
	"time"

	"agency"
	"agency/internal/api"
)

const (
	// reportTimeout is how long a wait continues after a session has settled, for the results of
	// its agents and for its report.
	reportTimeout = 30 * time.Second
	// waitPause is the minimum time between two checks of a wait.
	waitPause = 100 * time.Millisecond
)

// Wait waits until a session has settled and its results are known; with Attention also until an
// agent needs the user, with Paused also until it is paused for the user. When the time of the
// request is up, it returns the session as it is. When ctx ends, it returns the cause.
func (all *Sessions) Wait(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
	var none api.ShowSessionResponse
	timeout, err := api.Milliseconds("timeout_ms", req.TimeoutMS)
	if err != nil {
		return none, err
	}
	found, err := all.Finder.LookUp(ctx, req.Session, req.Dir)
	if err != nil {
		return none, err
	}
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	clock := time.NewTicker(all.Poll())
	defer clock.Stop()
	w := &wait{Sessions: all, id: found.ID, attention: req.Attention, paused: req.Paused}
	for timedOut := false; ; {
		changed, began := all.Store.Changed(), time.Now()
		over, err := w.over(ctx)
		if err != nil {
			return none, err
		}
		if over || timedOut {
			resp, err := all.show(ctx, w.id)
			if err != nil || timedOut || resp.Session.Status.Final() || req.Attention && resp.Session.NeedsUser() || req.Paused && resp.Session.Stopped() {
				return resp, err
			}
			w.stale = true // the user has acted meanwhile
		}
		// Waiting for a session that changes all the time must not keep the daemon busy.
		rested := time.After(max(waitPause, 5*time.Since(began)))
		select {
		case <-changed:
		case <-clock.C:
			w.stale = true // some statuses change by time alone, without an event
		case <-w.timeout:
			w.noReport = true
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

// wait is one wait for a session.
type wait struct {
	*Sessions
	id        agency.SessionID
	attention bool
	paused    bool

	timeout  <-chan time.Time // for the report; nil until the session has settled
	noReport bool

	seq    int64 // the newest event that was processed
	seen   time.Time
	agents []agency.SessionAgent // as of seen, an UpdatedAt of the session
	stale  bool                  // the agents' states must be read again
}

// over reports whether the session has reached the state that the client waits for. Events of other
// sessions cost it almost nothing.
func (w *wait) over(ctx context.Context) (bool, error) {
	s, err := w.Store.Session(ctx, w.id)
	if err != nil {
		return false, err
	}
	if s.Status.Final() {
		if w.timeout == nil {
			w.timeout = time.After(reportTimeout)
		}
		return s.External || s.Reported || w.noReport, nil
	}
	if w.paused && s.Paused != "" && s.Paused != agency.PausedByHand {
		return true, nil
	}
	if !w.attention || s.Paused != "" {
		return w.attention, nil
	}
	return w.needed(ctx, s)
}

// needed reports whether an agent needs the user. It checks only after events of the session or one
// of its runs.
func (w *wait) needed(ctx context.Context, s *agency.Session) (bool, error) {
	changed, seq, err := w.Store.ChangedRuns(ctx, w.seq)
	if err != nil {
		return false, err
	}
	if !s.UpdatedAt.Equal(w.seen) {
		if w.agents, err = w.Store.SessionAgents(ctx, w.id); err != nil {
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
