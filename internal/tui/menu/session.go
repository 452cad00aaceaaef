package menu

import (
	"context"
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
	return m.browse(ctx, "number of a session", "no session yet; n starts one from a plan", func() ([]string, func(int) error, error) {
		resp, err := m.o.Daemon.ListSessions(ctx, api.ListSessionsRequest{Limit: mostSessions})
		rows := make([]string, len(resp.Sessions))
		for i := range resp.Sessions {
			s := &resp.Sessions[i]
			rows[i] = session.Name(s) + ", " + view.SessionStatus(s) + ": " + view.Counts(s.Summary, s.Waiting)
			if s.Paused != "" && !s.Status.Final() {
				rows[i] += "; paused: " + s.Paused
			}
		}
		return rows, func(i int) error { return m.session(ctx, string(resp.Sessions[i].ID)) }, err
	})
}

// session tells what the agents of a session do and wait for, and does what the user chooses.
func (m *Menu) session(ctx context.Context, id string) error {
	resp, err := m.o.Daemon.ShowSession(ctx, api.SessionRequest{Session: id})
	if err != nil {
		return m.fail(err)
	}
	for i := range resp.Agents {
		m.say("%s", agentText(&resp.Agents[i]))
	}
	return m.act(ctx, m.sessionActions(&resp))
}

// agentText returns what is to be said of an agent.
func agentText(a *api.SessionAgent) string {
	parts := []string{a.ID + ", " + view.AgentStatus(a)}
	if note := view.AgentNote(a); note != "" {
		parts = append(parts, note)
	} else if len(a.After) > 0 && a.Status == agency.AgentQueued {
		parts = append(parts, "after "+strings.Join(a.After, ", "))
	}
	if landed := view.LandedWord(a.Landed); landed != "" {
		parts = append(parts, "landed: "+landed)
	}
	return strings.Join(parts, "; ")
}

// sessionActions returns what can be done with a session, and the runs of its agents.
func (m *Menu) sessionActions(resp *api.ShowSessionResponse) []action {
	d, s, id := &m.o.Daemon, &resp.Session, string(resp.Session.ID)
	name := session.Name(s)
	actions := []action{}
	for i := range resp.Agents {
		if a := &resp.Agents[i]; a.RunID != "" {
			actions = append(actions, action{does: "the run of " + a.ID, do: func(ctx context.Context, _ string) (string, error) {
				return "", m.runWithID(ctx, a.RunID)
			}})
		}
	}
	if s.Status.Final() {
		return append(actions, action{does: "try what is not complete again, in a new session", sure: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.RetrySession(ctx, api.RetrySessionRequest{Session: id, Env: m.o.Env, Config: m.o.Config})
			return name + " continues in a new session", err
		}})
	}
	if s.Paused != "" {
		actions = append(actions, action{does: "continue after the pause", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.ResumeSession(ctx, api.ResumeSessionRequest{Session: id})
			return name + " continues", err
		}})
	} else {
		actions = append(actions, action{does: "pause: no more agents start", do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.PauseSession(ctx, api.SessionRequest{Session: id})
			return name + " is paused", err
		}})
	}
	return append(actions, action{does: "cancel it", sure: true, do: func(ctx context.Context, _ string) (string, error) {
		_, err := d.CancelSession(ctx, api.SessionRequest{Session: id})
		return name + " is cancelled", err
	}})
}

// runWithID shows a run, also one that is not in the list.
func (m *Menu) runWithID(ctx context.Context, id agency.RunID) error {
	resp, err := m.o.Daemon.ListRuns(ctx, api.ListRunsRequest{RunIDs: []agency.RunID{id}})
	switch {
	case err != nil:
		return err
	case len(resp.Runs) == 0:
		return agency.Errorf(agency.CodeRunNotFound, "its run was removed").WithHint("agency ls --all")
	default:
		return m.run(ctx, &resp.Runs[0])
	}
}
