package watchdog

import (
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// SessionCondition is why a user or an agent must act on a session now. The same kind and cause,
// without an end in between, is one episode.
type SessionCondition struct {
	Kind   agency.AlertKind
	Cause  string
	Agents []string // ids of the agents that wait
	Text   string   // untrusted
}

// SessionAlarms returns the conditions of a session. Only agents that failed, whose work was
// refused when it was to land, or that wait in the queue with an error, matter. An external
// executor knows the state of its agents itself, and a user knows of a pause that they requested.
func SessionAlarms(s *agency.Session, agents []agency.SessionAgent) []SessionCondition {
	switch {
	case s.External, s.CancelAt != nil:
		return nil
	case s.Status.Final():
		refused := slices.ContainsFunc(agents, func(a agency.SessionAgent) bool { return a.Landing.State == agency.WorkRefused })
		cause := ""
		switch {
		case !s.Reported:
		case s.Status == agency.SessionFailed:
			cause = "failed"
		case s.Status == agency.SessionComplete && refused:
			cause = "not landed"
		}
		if cause != "" {
			return []SessionCondition{{Kind: agency.AlertSessionFailed, Cause: cause, Agents: []string{}, Text: s.Ending(agents)}}
		}
		return nil
	}
	conditions := []SessionCondition{}
	if s.Paused != "" && s.Paused != agency.PausedByHand {
		why := plain.OneLine(s.Paused)
		conditions = append(conditions, SessionCondition{Kind: agency.AlertSessionPaused, Cause: why, Agents: []string{}, Text: why})
	}
	for i := range agents {
		a := &agents[i]
		why := a.WaitReason()
		if why == "" {
			continue
		}
		// Agents that wait for the same reason need one action.
		same := slices.IndexFunc(conditions, func(c SessionCondition) bool { return c.Kind == agency.AlertSessionWaiting && c.Cause == why })
		if same < 0 {
			same = len(conditions)
			conditions = append(conditions, SessionCondition{Kind: agency.AlertSessionWaiting, Cause: why})
		}
		c := &conditions[same]
		c.Agents = append(c.Agents, a.ID)
		c.Text = strings.Join(c.Agents, ", ") + ": " + why
	}
	return conditions
}

// ends reports whether this event ends the session's pause for a reason, or the agent's wait for
// it, whatever came later.
func ends(t *agency.SessionTurn, kind agency.AlertKind, cause string) bool {
	switch {
	case kind == agency.AlertSessionPaused && t.Type == agency.SessionChanged:
		return plain.OneLine(t.Paused) != cause
	case kind == agency.AlertSessionWaiting && t.Type == agency.SessionAgentEvent:
		a := agency.SessionAgent{Status: t.Status, Error: t.Error}
		return a.WaitReason() != cause
	}
	return false
}
