package observe

import (
	"context"
	"time"

	"agency"
	"agency/internal/status"
)

// Derive returns the current status of a run. It copies what is known about the agent into r; the
// record may be a moment behind.
func (ob *Observer) Derive(r *agency.Run) agency.Status {
	f := ob.facts(r)
	return status.Derive(f, ob.moment(f))
}

// moment returns the time to derive a status at. It checks an apparent stall again: a clock that
// was set forward, or a machine that slept, does not make the agent inactive.
func (ob *Observer) moment(f status.Facts) time.Time {
	now := ob.Now()
	if seems := status.Derive(f, now); seems.Label == agency.Stalled {
		return seems.Since.Add(ob.Elapsed(seems.Since))
	}
	return now
}

// facts returns everything that the status of a run is derived from.
func (ob *Observer) facts(r *agency.Run) status.Facts {
	f := status.Facts{Run: r, StallThreshold: time.Duration(ob.stall.Load()), SilentSince: ob.IdleSince(r)}
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if r.RemovedAt == nil {
		f.RecordProblem = ob.broken[r.ID]
	}
	if l := ob.live[r.ID]; l != nil && l.attempt == r.Attempt.Number {
		r.Attempt.AgentState, f.SessionGone = *l.agentState, l.unseen
		r.Attempt.LogLost = max(r.Attempt.LogLost, l.logLost)
	}
	return f
}

// Explain returns why a run has its status, with the newest lines of its evidence. attempts are all
// attempts of the run.
func (ob *Observer) Explain(r *agency.Run, attempts []agency.Attempt) (agency.Explanation, []agency.Evidence) {
	ob.CheckRecord(r)
	f := ob.facts(r)
	for i := range attempts {
		if attempts[i].Number < r.Attempt.Number {
			f.Earlier = append(f.Earlier, attempts[i])
		}
	}
	return status.Explain(f, ob.moment(f)), ob.outputs.newest(r)
}

// Finish reads the last evidence of an agent that ended, and writes the run's output.
func (ob *Observer) Finish(ctx context.Context, id agency.RunID) {
	ob.ReadState(ctx, id)
	ob.ReadEvidence(ctx, id)
	ob.outputs.write(ctx, id, true)
}
