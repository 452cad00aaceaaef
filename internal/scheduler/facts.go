package scheduler

import (
	"cmp"
	"time"

	"agency"
	"agency/internal/schedule"
)

// factsOf returns what an outcome means for a session.
func factsOf(o *Outcome, now time.Time) schedule.RunFacts {
	a := &o.Run.Attempt
	f := schedule.RunFacts{
		Made: true, Attempt: a.Number, State: a.State, Turn: a.AgentState.Turn, Headless: a.Headless, ExitCode: a.ExitCode,
		Code: a.ErrorCode, Reason: reasonOf(a), SignalAt: o.SignalAt, QuietUntil: a.AgentState.QuietUntil,
		Ran: a.StartedAt != nil, Restarting: a.Restarting,
	}
	if !a.State.Final() && a.RunnerProcess != nil {
		f.PID = a.RunnerProcess.PID
	}
	if a.EndedAt != nil {
		f.EndedAt = *a.EndedAt
	}
	switch o.Status.Label {
	case agency.NeedsInput, agency.Blocked, agency.Waiting, agency.NeedsAttention:
		f.Asks = true
	case agency.ReadyForReview:
		f.ReadyAt = readyAt(o.Status.Since, now)
	default:
	}
	if trouble := a.AgentState.Failure; trouble != nil && (trouble.Class == agency.ErrorRateLimit || trouble.Class == agency.ErrorOverloaded) {
		f.LimitedAt, f.ResetAt = trouble.At, resetIn(trouble.Text, trouble.At)
	}
	return f
}

func readyAt(since, now time.Time) time.Time {
	if since.IsZero() {
		return now
	}
	return since
}

// reasonOf returns in words how an attempt ended.
func reasonOf(a *agency.Attempt) string {
	if trouble := a.AgentState.Failure; trouble != nil && trouble.Text != "" && a.Error == "" {
		return trouble.Text
	}
	return cmp.Or(a.Error, string(a.ErrorCode), "it failed")
}
