package menu

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/session"
	"agency/internal/view"
)

// mostSessions is how many sessions are listed, the newest.
const mostSessions = 100

// sessions lists the sessions, and opens those that the user chooses.
func (m *Menu) sessions(ctx context.Context) error {
	return m.console.browse(ctx, "number of a session", "no session yet; n starts one from a plan", func() (rows, error) {
		resp, err := m.o.Daemon.ListSessions(ctx, api.ListSessionsRequest{Limit: mostSessions})
		texts := make([]string, len(resp.Sessions))
		for i := range resp.Sessions {
			texts[i] = sessionText(&resp.Sessions[i])
		}
		return rows{texts: texts, open: func(c choice) error { return m.session(ctx, string(resp.Sessions[c.rows[0]].ID)) }}, err
	})
}

// sessionText returns the row of a session.
func sessionText(s *api.Session) string {
	text := session.Name(s) + ", " + view.SessionStatus(s) + ": " + view.Counts(s.Summary, s.Waiting)
	if s.Paused != "" && !s.Status.Final() {
		text += "; paused: " + s.Paused
	}
	return text
}

// session prints a session and its agents, those that need the user first, and does what the user
// chooses, until the user goes back.
func (m *Menu) session(ctx context.Context, id string) error {
	return m.console.browse(ctx, "number of an agent or an action", "the session has no agents", func() (rows, error) {
		resp, err := m.o.Daemon.ShowSession(ctx, api.SessionRequest{Session: id})
		if err != nil {
			return rows{}, err
		}
		m.console.say("%s", sessionText(&resp.Session))
		agents := slices.Clone(resp.Agents)
		slices.SortStableFunc(agents, func(a, b api.SessionAgent) int { return cmp.Compare(view.Urgency(&a), view.Urgency(&b)) })
		actions := []action{}
		for i := range agents {
			actions = append(actions, m.agent(&agents[i]))
		}
		actions = append(actions, m.sessionActions(&resp)...)
		return rows{texts: titles(actions), open: func(c choice) error {
			_, err := m.console.do(ctx, session.Name(&resp.Session), &actions[c.rows[0]])
			return err
		}}, nil
	})
}

// agent returns the action that opens the run of an agent.
func (m *Menu) agent(a *api.SessionAgent) action {
	return action{does: agentText(a), do: func(ctx context.Context, _ string) (string, error) {
		if a.RunID == "" {
			return a.ID + " has not begun", nil
		}
		return "", m.run(ctx, a.RunID)
	}}
}

// agentText returns the row of an agent.
func agentText(a *api.SessionAgent) string {
	text := a.ID + ", " + view.AgentStatus(a)
	if note := view.AgentNote(a); note != "" {
		text += ": " + note
	} else if len(a.After) > 0 && a.Status == agency.AgentQueued {
		text += ", after " + strings.Join(a.After, ", ")
	}
	if landed := view.LandedWord(a.Landed); landed != "" {
		text += "; landed: " + landed
	}
	return text
}

// sessionActions returns the actions that a session allows now: none for a session that another program
// runs, because only that program starts and stops its agents.
func (m *Menu) sessionActions(resp *api.ShowSessionResponse) []action {
	d, s, id := &m.o.Daemon, &resp.Session, string(resp.Session.ID)
	name := session.Name(s)
	actions := []action{}
	switch {
	case s.External || s.Cancelling || s.Status.Final() && s.Summary.Complete == s.Summary.Total:
		return actions
	case s.Status.Final():
		return append(actions, action{does: "try again what is not complete, in a new session", sure: "try what is not complete of %s again?", says: "retrying", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.RetrySession(ctx, api.RetrySessionRequest{Session: id, Env: m.o.Env, Config: m.o.Config})
			return name + " continues in a new session", err
		}})
	}
	if s.Paused != "" || slices.ContainsFunc(resp.Agents, delayed) {
		actions = append(actions, action{does: "let it continue", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.ResumeSession(ctx, api.ResumeSessionRequest{Session: id})
			return name + " continues", err
		}})
	}
	if s.Paused == "" {
		actions = append(actions, action{does: "pause it: no more agents start", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.PauseSession(ctx, api.SessionRequest{Session: id})
			return name + " is paused", err
		}})
	}
	return append(actions, action{does: "cancel it", sure: "cancel %s? its agents are stopped", do: func(ctx context.Context, _ string) (string, error) {
		_, err := d.CancelSession(ctx, api.SessionRequest{Session: id})
		return name + " is being cancelled", err
	}})
}

// delayed reports whether an agent waits for the user before it begins, or for a time between two
// attempts. The session can continue with it at once.
func delayed(a api.SessionAgent) bool {
	return a.Status == agency.AgentQueued && a.Error != "" || a.Status == agency.AgentRunning && a.NotBefore != nil
}
