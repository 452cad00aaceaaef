package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"agency"
)

// agentColumns are the columns that a change may write, in the order of agentValues and scanAgent.
const agentColumns = `position, name, prompt_path, wave, status, started_at_ms, completed_at_ms, exit_code, pid, log_file, model, error,
	run, tries, losses, attempt, not_before_ms, absent, extra, waits, stopping, stop_reason, land_state, land_note`

func agentValues(a *agency.SessionAgent) ([]any, error) {
	absent, err := list(a.Absent)
	return []any{
		a.Position, a.Name, a.PromptPath, a.Wave, string(a.Status), millis(a.StartedAt), millis(a.CompletedAt), number(a.ExitCode),
		number(a.PID), a.LogFile, a.Model, a.Error, string(a.Run), a.Tries, a.Losses, a.Attempt, millis(a.NotBefore), absent, object(a.Extra),
		a.Waits, a.Stopping, a.StopReason, string(a.Landing.State), a.Landing.Note,
	}, err
}

const (
	selectAgents = `SELECT s.id, a.id, ` + agentColumns + ` FROM session_agents a JOIN
		(SELECT seq, id FROM sessions WHERE id = ?) s ON s.seq = a.session `
	selectAgent = `SELECT '', id, ` + agentColumns + ` FROM session_agents WHERE session = ? AND id = ?`
)

func scanAgent(row scanner) (agency.SessionAgent, error) {
	var a agency.SessionAgent
	err := row.Scan(text(&a.Session), text(&a.ID), whole(&a.Position), text(&a.Name), text(&a.PromptPath), whole(&a.Wave), text(&a.Status),
		optionalMoment(&a.StartedAt), optionalMoment(&a.CompletedAt), optional(&a.ExitCode), optional(&a.PID), text(&a.LogFile),
		text(&a.Model), text(&a.Error), text(&a.Run), whole(&a.Tries), whole(&a.Losses), whole(&a.Attempt), optionalMoment(&a.NotBefore),
		toList(&a.Absent), toObject(&a.Extra), whole(&a.Waits), whole(&a.Stopping), text(&a.StopReason), text(&a.Landing.State), text(&a.Landing.Note))
	if len(a.Absent) == 0 {
		a.Absent = nil
	}
	return a, err
}

func (tx *transaction) insertAgents(ctx context.Context, s *agency.Session, agents []agency.SessionAgent) error {
	if len(agents) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO session_agents (`+agentColumns+`, session, id, updated_at_ms)
		VALUES (`+marks(columns(agentColumns)+3)+`)`)
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }()
	for i := range agents {
		values, err := agentValues(&agents[i])
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, append(values, s.Seq, agents[i].ID, s.UpdatedAt.UnixMilli())...); err != nil {
			return err
		}
	}
	return nil
}

// SessionAgents returns the agents of a session in the order of the plan, or none if the session
// does not exist.
func (s *sessions) SessionAgents(ctx context.Context, id agency.SessionID) ([]agency.SessionAgent, error) {
	rows, err := s.db.query(ctx, selectAgents+`ORDER BY a.position`, string(id))
	if err != nil {
		return nil, problem("read session from", s.db.path, err)
	}
	agents, err := collect(rows, scanAgent)
	return agents, problem("read session from", s.db.path, err)
}

// SessionSince returns a session and those of its agents that changed after since, which is an
// UpdatedAt of the session; the zero time returns all agents. Both come from one transaction.
func (s *sessions) SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error) {
	session, agents, err := s.sessionSince(ctx, id, since)
	if err != nil {
		return nil, nil, problem("read session from", s.db.path, err)
	}
	return &session, agents, nil
}

func (s *sessions) sessionSince(ctx context.Context, id agency.SessionID, since time.Time) (agency.Session, []agency.SessionAgent, error) {
	tx, err := s.db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return agency.Session{}, nil, err
	}
	defer func() { _ = tx.Rollback() }()
	session, err := readSession(ctx, tx.StmtContext(ctx, s.db.readerSession), id)
	if err != nil {
		return session, nil, err
	}
	after := int64(0)
	if !since.IsZero() {
		after = since.UnixMilli()
	}
	rows, err := tx.QueryContext(ctx, selectAgents+`WHERE a.updated_at_ms > ? ORDER BY a.position`, string(id), after)
	if err != nil {
		return session, nil, err
	}
	agents, err := collect(rows, scanAgent)
	return session, agents, err
}

// SessionRuns returns the runs of a session's agents by their ids; with running, only those of
// running agents. Other results share the pointers: do not write to the runs.
func (s *runs) SessionRuns(ctx context.Context, id agency.SessionID, running bool) (map[agency.RunID]*agency.Run, error) {
	facts := s.db.unwritten.all()
	versions, err := s.queryVersions(ctx, `SELECT r.seq, r.updated_at_ms FROM sessions s JOIN session_agents a ON a.session = s.seq
		JOIN runs r ON r.id = a.run WHERE s.id = ? AND (NOT ? OR a.status = 'running') ORDER BY r.seq`, string(id), running)
	if err != nil {
		return nil, err
	}
	runs, err := s.runsOf(ctx, versions)
	byID := make(map[agency.RunID]*agency.Run, len(runs))
	for _, r := range runs {
		own := *r
		overlayRun(facts, &own)
		byID[r.ID] = &own
	}
	return byID, err
}

// AgentOfRun returns the agent whose run this is; found is false if the run belongs to no session.
func (s *sessions) AgentOfRun(ctx context.Context, id agency.RunID) (session agency.SessionID, agent string, found bool, err error) {
	row, err := s.db.queryRow(ctx, `SELECT s.id, a.id FROM session_agents a JOIN sessions s ON s.seq = a.session
		WHERE a.run = ? AND a.run <> '' ORDER BY s.seq DESC LIMIT 1`, string(id))
	if err != nil {
		return "", "", false, problem("read session from", s.db.path, err)
	}
	err = row.Scan(&session, &agent)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", false, nil
	}
	return session, agent, err == nil, problem("read session from", s.db.path, err)
}

// SessionsOfRuns returns the sessions that the runs with these ids are agents of, or those of all runs
// when there are none. A run without a session is not in the map.
func (s *sessions) SessionsOfRuns(ctx context.Context, ids []agency.RunID) (map[agency.RunID]agency.Membership, error) {
	query, args := `SELECT a.run, s.id, s.name, a.id FROM session_agents a JOIN sessions s ON s.seq = a.session WHERE a.run <> ''`, []any{}
	if len(ids) > 0 {
		chosen, err := json.Marshal(ids)
		if err != nil {
			return nil, err
		}
		query, args = query+` AND a.run IN (SELECT value FROM json_each(?))`, append(args, string(chosen))
	}
	rows, err := s.db.query(ctx, query+` ORDER BY s.seq`, args...) // of several sessions, the newest counts
	if err != nil {
		return nil, problem("read sessions from", s.db.path, err)
	}
	type member struct {
		run agency.RunID
		in  agency.Membership
	}
	members, err := collect(rows, func(row scanner) (member, error) {
		var m member
		return m, row.Scan(text(&m.run), text(&m.in.Session), text(&m.in.Name), text(&m.in.Agent))
	})
	sessions := make(map[agency.RunID]agency.Membership, len(members))
	for _, m := range members {
		sessions[m.run] = m.in
	}
	return sessions, problem("read sessions from", s.db.path, err)
}

// AgentAddresses returns how the agents of agency's own sessions are named, those of the newest
// session first and at most limit of them.
func (s *sessions) AgentAddresses(ctx context.Context, limit int) ([]agency.AgentAddress, error) {
	rows, err := s.db.query(ctx, `SELECT s.id, s.name, s.status = 'running', a.id, a.status, a.run FROM sessions s
		JOIN session_agents a ON a.session = s.seq WHERE s.external = 0 ORDER BY s.seq DESC, a.position LIMIT ?`, atMost(limit))
	if err != nil {
		return nil, problem("read sessions from", s.db.path, err)
	}
	all, err := collect(rows, func(row scanner) (agency.AgentAddress, error) {
		var a agency.AgentAddress
		err := row.Scan(text(&a.Session), text(&a.Name), flag(&a.Running), text(&a.Agent), text(&a.Status), text(&a.Run))
		return a, err
	})
	return all, problem("read sessions from", s.db.path, err)
}

func noAgent(session agency.SessionID, agent string) error {
	return agency.Errorf(agency.CodeAgentNotFound, "session %s has no agent %q", session, agent).WithHint("agency session show %s", session)
}
