package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// Send types a text into a run's agent, for timers.
func (w workers) Send(ctx context.Context, id agency.RunID, text string) error {
	_, _, err := w.sup.Input.Send(ctx, string(id), text, "")
	return err
}

// Restarting reports whether a run is being restarted, for timers.
func (w workers) Restarting(ctx context.Context, id agency.RunID) (bool, error) {
	return w.sup.Query.Restarting(ctx, id)
}

func (o alertOperations) startTimer(ctx context.Context, req api.StartTimerRequest) (api.StartTimerResponse, error) {
	owner, err := o.policy.Caller(ctx)
	if err != nil {
		return api.StartTimerResponse{}, err
	}
	r, err := o.sup.Records.Resolve(ctx, req.Run)
	if err != nil {
		return api.StartTimerResponse{}, err
	}
	switch {
	case r.RemovedAt != nil || r.Attempt.State.Final():
		return api.StartTimerResponse{}, agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so it would not read the messages", r.Ref()).
			WithHint("agency resume %s", r.Ref())
	case r.Attempt.Headless:
		return api.StartTimerResponse{}, agency.Errorf(agency.CodeInvalidState, "%s is headless: it reads no messages", r.Ref()).
			WithHint("it can ask for its messages itself: agency messages poll --wait 10m")
	}
	t := &agency.Timer{Name: req.Name, RunID: r.ID, Owner: owner, Message: req.Message, Interval: time.Duration(req.IntervalMS) * time.Millisecond}
	if t.Name == "" {
		t.Name = r.Ref()
	}
	replaced, err := o.timers.Set(ctx, t)
	if err != nil {
		return api.StartTimerResponse{}, err
	}
	return api.StartTimerResponse{Timer: api.NewTimer(t, r.Ref()), Replaced: replaced}, nil
}

// stopTimers ends one timer by its name, or all that the caller may end: a run may end those that
// it started, the user all.
func (o alertOperations) stopTimers(ctx context.Context, req api.StopTimersRequest) (api.StopTimersResponse, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return api.StopTimersResponse{}, err
	}
	runs, err := o.runsOf(ctx, req.Dir)
	if err != nil {
		return api.StopTimersResponse{}, err
	}
	stopped, err := o.timers.End(ctx, func(t *agency.Timer) bool {
		return (req.Name == "" || t.Name == req.Name) && (who == agency.User || t.Owner == who) && runs(t.RunID)
	})
	if err == nil && req.Name != "" && len(stopped) == 0 {
		err = agency.Errorf(agency.CodeTimerNotFound, "there is no timer %q that you could end", req.Name).WithHint("agency watchdog status")
	}
	return api.StopTimersResponse{Stopped: stopped}, err
}

// runsOf returns a function that reports whether a run belongs to the repository of a directory;
// with an empty dir, all do.
func (o alertOperations) runsOf(ctx context.Context, dir string) (func(agency.RunID) bool, error) {
	if dir == "" {
		return func(agency.RunID) bool { return true }, nil
	}
	repo, err := o.repos.Discover(ctx, dir)
	return func(id agency.RunID) bool {
		r, err := o.store.Run(ctx, id)
		return err == nil && r.Repo.Fingerprint == repo.Fingerprint
	}, err
}

func (o alertOperations) listTimers(ctx context.Context, req api.ListTimersRequest) (api.ListTimersResponse, error) {
	timers, err := o.store.Timers(ctx)
	if err != nil {
		return api.ListTimersResponse{}, err
	}
	runs, err := o.runsOf(ctx, req.Dir)
	if err != nil {
		return api.ListTimersResponse{}, err
	}
	open, err := o.alertsOf(ctx, req.Dir, agency.AlertFilter{})
	if err != nil {
		return api.ListTimersResponse{}, err
	}
	resp := api.ListTimersResponse{Timers: make([]api.Timer, 0, len(timers)), TickedAt: o.tickedAt(), OpenAlerts: len(open)}
	for i := range timers {
		if !runs(timers[i].RunID) {
			continue
		}
		r, err := o.store.Run(ctx, timers[i].RunID)
		if err != nil {
			return api.ListTimersResponse{}, err
		}
		resp.Timers = append(resp.Timers, api.NewTimer(&timers[i], r.Ref()))
	}
	return resp, nil
}
