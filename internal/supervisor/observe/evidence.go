package observe

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"agency"
	"agency/internal/status"
)

// ReadEvidence merges what was appended to an attempt's evidence file into its agent state, and
// records what changes the agent's status. The file is read in order, each part once; the place
// where reading stopped is part of the agent state. all is false when the file was not read to its
// end.
func (ob *Observer) ReadEvidence(ctx context.Context, id agency.RunID) (all bool) {
	all, _ = ob.readEvidence(ctx, id) // which logs the error
	return all
}

// readEvidence is ReadEvidence. The error is that of a system that fails to read the file.
func (ob *Observer) readEvidence(ctx context.Context, id agency.RunID) (all bool, unread error) {
	unlock, err := ob.locks.Lock(ctx, "state "+string(id))
	if err != nil {
		return false, nil //nolint:nilerr // ctx has ended
	}
	defer unlock()
	for {
		l, ok := ob.copyOf(id)
		if !ok {
			return false, nil
		}
		path := filepath.Join(AttemptDir(l.dir, l.attempt), agency.EventsFile)
		evidence, next, err := ob.Spool.Tail(path, l.agentState.Offset)
		if err != nil {
			ob.Log.Warn("read evidence", "run", id, "err", err)
			if agency.Unproven(err) {
				unread = err
			}
			return false, unread
		}
		if next == l.agentState.Offset {
			return true, nil
		}
		agentState := l.agentState.Clone()
		now := ob.Now()
		var noted notes
		for _, e := range evidence {
			if e.At.IsZero() {
				e.At = now
			}
			ob.apply(agentState, &e)
			noted.take(&e, agentState)
			if e.Event == agency.EventLost && agentState.Unknown[e.Event] == 1 {
				ob.Log.Warn("evidence was dropped before it was read", "run", id)
			}
		}
		agentState.Offset = next
		if err := ob.recordAgentState(ctx, &l, agentState, &noted); err != nil {
			if ctx.Err() == nil {
				ob.Log.Error("record agent state", "run", id, "err", err)
			}
			return false, nil
		}
	}
}

// apply applies a piece of evidence to an agent's state, and converts its time to the daemon's clock.
// Only the statistics of its source keep the time of the system's clock: the agent's own files, whose
// lines are compared with that time, have times of the same clock.
func (ob *Observer) apply(s *agency.AgentState, e *agency.Evidence) {
	stamp, count := e.At, s.Sources[e.Source].Count
	e.At = ob.Convert(stamp)
	status.Observe(s, *e)
	if seen := s.Sources[e.Source]; seen.Count > count && stamp.Before(e.At) {
		seen.At = stamp
		s.Sources[e.Source] = seen
	}
}

// notes are what evidence adds to the record beside the agent's state.
type notes struct {
	events []agency.EventDraft
	input  time.Time // when the user last gave the agent a message in its terminal
}

func (n *notes) take(e *agency.Evidence, agentState *agency.AgentState) {
	switch {
	case e.Signal == agency.SignalRefused && agentState.Unknown[e.Event] == 1:
		n.events = append(n.events, agency.EventDraft{Type: agency.RequestRefused, Data: map[string]any{"name": e.Event, "id": e.ID}})
	case e.Signal == agency.SignalSaid && e.Source == agency.FromProtocol && e.Said != nil:
		n.events = append(n.events, agency.EventDraft{Type: agency.InputDelivered, Data: *e.Said})
		if e.Said.Kind == agency.SaysMessage {
			n.input = e.At
		}
	}
}

// recordAgentState sets the agent state of a run. It is written to the record when it changes what
// a user sees, or with notes; counters and times are in the evidence file already.
func (ob *Observer) recordAgentState(ctx context.Context, l *liveRun, agentState *agency.AgentState, noted *notes) error {
	kind := agency.RunnerKind("")
	var process *agency.Process
	set := func(now *liveRun) { now.agentState = agentState }
	changed := !status.SameMeaning(agentState, l.agentState)
	if changed || len(noted.events) > 0 {
		if agentState.Turn == agency.TurnEnded && l.agentState.Turn != agency.TurnEnded {
			ob.outputs.answered(ctx, l.id, agentState)
		}
		r, err := ob.Store.ChangeRun(ctx, l.id, func(r *agency.Run) ([]agency.EventDraft, error) {
			a := &r.Attempt
			if a.Number != l.attempt || a.State.Final() {
				return nil, nil
			}
			a.AgentState = *agentState
			if agentState.Conversation != "" {
				a.ConversationID = agentState.Conversation
			}
			ob.change(l, set) // before the commit, so that the clients that it wakes find it
			if !noted.input.IsZero() && (a.InputAt == nil || a.InputAt.Before(noted.input)) {
				a.InputAt = &noted.input
			}
			if !changed {
				return noted.events, nil
			}
			return append(slices.Clip(noted.events), agency.EventDraft{Type: agency.AgentStateChanged, Data: stateDraft(agentState)}), nil
		})
		if err != nil {
			ob.change(l, func(now *liveRun) { now.agentState = l.agentState })
			return err
		}
		kind, process = r.Runner.Kind, r.Attempt.RunnerProcess
	}
	ob.change(l, set)
	if kind != "" {
		ob.followFiles(l.id, kind, agentState, process)
		if status.Vague(agentState) {
			ob.lookSoon(l.id)
		}
	}
	return nil
}

// stateDraft returns the data of the event for a changed agent state.
func stateDraft(agentState *agency.AgentState) map[string]any {
	data := map[string]any{"turn": agentState.Turn}
	if len(agentState.Requests) > 0 {
		data["request"] = agentState.Requests[0]
	}
	if t := agentState.Failure; t != nil {
		data["error_class"], data["error"] = t.Class, t.Text
	}
	if t := agentState.Retry; t != nil {
		data["retrying"] = t.Class
	}
	if r := agentState.Reported; r != nil {
		data["report"], data["text"] = r.Report, r.Text
	}
	if agentState.Interrupted {
		data["interrupted"] = true
	}
	return data
}

// keep appends evidence that the daemon found to the evidence file, and reads it from there. kept
// reports whether the file has it.
func (ob *Observer) keep(ctx context.Context, l *liveRun, evidence []agency.Evidence) (kept bool) {
	if len(evidence) == 0 {
		return true
	}
	now := time.Now() // by the system's clock, as all times in the file
	for i := range evidence {
		if evidence[i].At.IsZero() || evidence[i].At.After(now) {
			evidence[i].At = now
		}
	}
	if err := ob.Spool.Append(filepath.Join(AttemptDir(l.dir, l.attempt), agency.EventsFile), evidence...); err != nil {
		ob.Log.Warn("keep evidence", "run", l.id, "err", err)
		return false
	}
	ob.ReadEvidence(ctx, l.id)
	return true
}

// evidenceWaits reports whether the evidence file may have something new.
func evidenceWaits(l *liveRun) bool {
	return stampOf(filepath.Join(AttemptDir(l.dir, l.attempt), agency.EventsFile)).size != l.agentState.Offset
}

// observedAt returns when a file got its content: the kernel's change time, which a runner cannot
// set, unless the clock was changed since.
func observedAt(path string, begun, now time.Time) time.Time {
	at := ChangeTime(path)
	if at.Before(begun) || at.After(now) {
		return now
	}
	return at
}
