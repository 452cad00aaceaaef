package observe

import (
	"context"
	"errors"
	"time"

	"agency"
	"agency/internal/status"
)

// Derive returns the current status of a run. It copies what is known about the agent into r; the
// record may be a moment behind.
func (ob *Observer) Derive(r *agency.Run) agency.Status {
	now, s := ob.Status(r)
	*r = *now
	return s
}

// Status is Derive for a run that others read too: it returns a copy of r where more is known than
// the record holds, and r itself otherwise.
func (ob *Observer) Status(r *agency.Run) (*agency.Run, agency.Status) {
	f := ob.facts(r)
	return f.Run, ob.derive(f)
}

// derive returns the status that follows from facts now. It checks an apparent stall again: a clock
// that was set forward, or a machine that slept, does not make the agent inactive.
func (ob *Observer) derive(f status.Facts) agency.Status {
	s := status.Derive(f, ob.Now())
	if s.Label == agency.Stalled {
		s = status.Derive(f, ob.quiet(s))
	}
	return s
}

// moment returns the time to explain a status at, with the same check of a stall.
func (ob *Observer) moment(f status.Facts) time.Time {
	now := ob.Now()
	if s := status.Derive(f, now); s.Label == agency.Stalled {
		return ob.quiet(s)
	}
	return now
}

// quiet returns the present time for an agent that seems stalled, as it would be if the clock had only
// counted the time that really passed since the agent's last sign of activity.
func (ob *Observer) quiet(s agency.Status) time.Time { return s.Since.Add(ob.Elapsed(s.Since)) }

// facts returns everything that the status of a run is derived from. It does not write to r: where
// more is known than r holds, the run of the facts is a copy.
func (ob *Observer) facts(r *agency.Run) status.Facts {
	f := status.Facts{Run: r, StallThreshold: time.Duration(ob.stall.Load()), UnresponsiveSince: ob.IdleSince(r)}
	ob.mu.Lock()
	defer ob.mu.Unlock()
	if r.RemovedAt == nil {
		f.RecordProblem = ob.broken[r.ID]
	}
	if l := ob.live[r.ID]; l != nil && l.attempt == r.Attempt.Number {
		own := *r
		own.Attempt.AgentState, f.SessionGone = *l.agentState, l.unseen
		own.Attempt.LogLost = max(r.Attempt.LogLost, l.logLost)
		f.Run = &own
	}
	return f
}

// Explain returns why a run has its status, with the newest lines of its evidence. attempts are all
// attempts of the run.
func (ob *Observer) Explain(r *agency.Run, attempts []agency.Attempt) (agency.Explanation, []agency.Evidence) {
	ob.CheckRecord(r)
	f := ob.facts(r)
	*r = *f.Run
	for i := range attempts {
		if attempts[i].Number < r.Attempt.Number {
			f.Earlier = append(f.Earlier, attempts[i])
		}
	}
	return status.Explain(f, ob.moment(f)), ob.outputs.newest(r)
}

// Finish reads the last evidence of an agent that ended, and writes the run's output. It returns an
// error when the system fails to read a file, and then its caller must try again: an attempt that has
// ended in the record is never read again. Whatever the agent wrote is not an error.
func (ob *Observer) Finish(ctx context.Context, id agency.RunID) error {
	contract, reports := ob.readContract(ctx, id), ob.readReports(ctx, id)
	_, evidence := ob.readEvidence(ctx, id)
	if err := errors.Join(contract, reports, evidence); err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "read what the agent of %s wrote last: %w", id, err).
			WithHint("agency tries again; if the disk has lost the file, delete it")
	}
	ob.outputs.write(ctx, id, true)
	return nil
}
