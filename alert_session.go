package agency

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The kinds of alerts about sessions. Several can be open at once.
const (
	AlertSessionPaused  AlertKind = "session.paused"  // agency paused it, and somebody must say how it goes on
	AlertSessionWaiting AlertKind = "session.waiting" // an agent of it cannot start without a person
	AlertSessionFailed  AlertKind = "session.failed"  // it has settled, and an agent failed
)

// SessionAlertKinds are all kinds about sessions.
func SessionAlertKinds() []AlertKind {
	return []AlertKind{AlertSessionPaused, AlertSessionWaiting, AlertSessionFailed}
}

// SessionCondition is why somebody must act on a session now. What has the same kind and cause, without an end in between, is one
// episode.
type SessionCondition struct {
	Kind   AlertKind
	Cause  string
	Agents []string // that wait
	Text   string   // untrusted
}

// SessionAlarms are the conditions of a session. Of its agents those count that wait in the queue with an error, and those that
// failed. Whoever runs the agents of an outside session knows how they do, and who paused a session by hand knows that.
func SessionAlarms(s *Session, agents []SessionAgent) []SessionCondition {
	switch {
	case s.Outside, s.CancelAt != nil:
		return nil
	case s.Status.Final():
		if s.Status == SessionFailed && s.Reported {
			return []SessionCondition{{Kind: AlertSessionFailed, Cause: "failed", Agents: []string{}, Text: s.Ending(agents)}}
		}
		return nil
	}
	conditions := []SessionCondition{}
	if s.Paused != "" && s.Paused != PausedByHand {
		why := OneLine(s.Paused)
		conditions = append(conditions, SessionCondition{Kind: AlertSessionPaused, Cause: why, Agents: []string{}, Text: why})
	}
	for i := range agents {
		a := &agents[i]
		why := a.waits()
		if why == "" {
			continue
		}
		// What many agents wait for is one thing to do.
		same := slices.IndexFunc(conditions, func(c SessionCondition) bool { return c.Kind == AlertSessionWaiting && c.Cause == why })
		if same < 0 {
			same = len(conditions)
			conditions = append(conditions, SessionCondition{Kind: AlertSessionWaiting, Cause: why})
		}
		c := &conditions[same]
		c.Agents = append(c.Agents, a.ID)
		c.Text = strings.Join(c.Agents, ", ") + ": " + why
	}
	return conditions
}

// waits is what a queued agent needs a person for; empty when it does not.
func (a *SessionAgent) waits() string {
	if a.Status != AgentQueued {
		return ""
	}
	return OneLine(a.Error)
}

// OneLine is a text with each run of white space in it as one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// SessionTurn is what one event told of a session that agency runs.
type SessionTurn struct {
	Type    EventType
	Session SessionID
	Alert   string // of events about alerts
	Agent   string // of session.agent, with its status and its error
	Status  AgentStatus
	Error   string
	Paused  string // of session.changed
}

// Ends says that by this turn the session is no longer paused for a reason, or that the agent no longer waits for it, whatever
// came after.
func (t *SessionTurn) Ends(kind AlertKind, cause string) bool {
	switch {
	case kind == AlertSessionPaused && t.Type == SessionChanged:
		return OneLine(t.Paused) != cause
	case kind == AlertSessionWaiting && t.Type == SessionAgentNews:
		a := SessionAgent{Status: t.Status, Error: t.Error}
		return a.waits() != cause
	}
	return false
}

// AlertSessionName is the name of the session that an alert is about, from its payload, which outlives the session; empty when
// it has none.
func AlertSessionName(payload json.RawMessage) string {
	var p struct {
		Name string `json:"session_name"`
	}
	_ = json.Unmarshal(payload, &p) // none is no name
	return p.Name
}

// Ending is what a settled session came to, in a line. Of its agents those that failed count.
func (s *Session) Ending(agents []SessionAgent) string {
	text := s.Tally.String()
	for i := range agents {
		if a := &agents[i]; a.Status == AgentFailed {
			return fmt.Sprintf("%s; %s: %s", text, a.ID, a.Error)
		}
	}
	return text
}

// ReportPath is the file beside status.json that holds the report of a settled session.
func (s *Session) ReportPath() string { return filepath.Join(s.Dir, "report.md") }
