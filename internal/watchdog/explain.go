package watchdog

import (
	"context"
	"fmt"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/status"
)

// Verdict is the watchdog's judgement of a run, with reasons.
type Verdict struct {
	Watched bool
	Rules   []Rule // one for each kind, in their order
	Open    []agency.Alert
	NextAt  time.Time // when time alone may change the verdict; zero is never
}

// Rule is the result of one rule for a run.
type Rule struct {
	Kind  agency.AlertKind
	Holds bool
	Why   string
}

// Explain returns the result of each rule for a run now. It changes nothing and measures nothing.
func (w *Watchdog) Explain(ctx context.Context, id agency.RunID) (Verdict, error) {
	s, now := w.current(), w.Now()
	worker, err := w.Runs.Worker(ctx, id)
	if err == nil && worker.Run.RemovedAt != nil {
		err = agency.Errorf(agency.CodeRunNotFound, "%s was removed", worker.Run.Ref())
	}
	if err != nil {
		return Verdict{}, err
	}
	open, err := w.Store.Alerts(ctx, agency.AlertFilter{Run: id})
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Watched: s.watches(worker.Run), Open: open}
	w.mu.Lock()
	v.NextAt = w.due[id]
	w.mu.Unlock()
	c := worker.condition(now)
	label := fmt.Sprintf("it is %s", worker.Status.Label)
	if worker.Run.Flag != nil && worker.Status.Label != agency.NeedsAttention {
		label += ", and flagged"
	}
	if worker.Led {
		label += ", and its session handles its ends"
	}
	for _, kind := range agency.AlertKinds() {
		rule := Rule{Kind: kind, Holds: c.Kind == kind, Why: label}
		if kind == agency.AlertError {
			rule.Why += printedWhy(worker, rule.Holds, now)
		}
		if kind == agency.AlertStuck {
			rule.Holds, rule.Why = w.whyStuck(&s, worker, open, now)
		}
		v.Rules = append(v.Rules, rule)
	}
	return v, nil
}

// printedWhy returns what an error line adds to the explanation of the rule.
func printedWhy(worker *Worker, holds bool, now time.Time) string {
	a := &worker.Run.Attempt
	p := a.AgentState.Printed
	if p == nil {
		return ""
	}
	why := fmt.Sprintf("; it printed %q %s ago", p.Text, duration.Short(now.Sub(p.At)))
	switch {
	case holds:
		return why
	case status.ErrorStands(a, signsOf(worker).newest()):
		return why + ", and nothing newer follows it"
	default:
		return why + ", and went on"
	}
}

func (w *Watchdog) whyStuck(s *Settings, worker *Worker, open []agency.Alert, now time.Time) (holds bool, why string) {
	if !Watchable(worker.Status.Label) {
		return false, fmt.Sprintf("it is %s, so it does not work", worker.Status.Label)
	}
	for i := range open {
		if open[i].Kind == agency.AlertStuck {
			return true, fmt.Sprintf("no sign of life%s; the alert has been open since %s", retryingWhy(worker, now), open[i].OpenedAt.Format(time.RFC3339))
		}
	}
	last := lastActivity(worker)
	return false, fmt.Sprintf("its last sign of life was %s ago, and the limit is %s%s",
		duration.Short(now.Sub(last)), duration.Text(s.timeout(worker)), retryingWhy(worker, now))
}

// retryingWhy returns what an endlessly failing model adds to the explanation of the rule.
func retryingWhy(worker *Worker, now time.Time) string {
	retry := worker.Run.Attempt.AgentState.Retry
	if retry == nil {
		return ""
	}
	return fmt.Sprintf("; it has been trying again for %s, and the same limit applies: %q", duration.Short(now.Sub(retry.At)), retry.Text)
}
