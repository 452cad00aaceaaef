package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"agency"
)

// UnreportedSessions returns agency's own sessions without a call of ReportSession, oldest first,
// including all running ones.
func (s *sessions) UnreportedSessions(ctx context.Context) ([]agency.Session, error) {
	return s.querySessions(ctx, `WHERE s.reported = 0 AND s.external = 0 ORDER BY s.seq`)
}

// ReportSession records that everything that follows the end of a settled session is done, with the
// event session.reported. A second call does nothing.
func (s *sessions) ReportSession(ctx context.Context, id agency.SessionID) error {
	return s.db.write(ctx, "change session in", func(tx *transaction) error {
		result, err := tx.ExecContext(ctx, `UPDATE sessions SET reported = 1 WHERE id = ? AND status <> 'running' AND reported = 0`, string(id))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		session, err := readSession(ctx, tx.StmtContext(ctx, s.db.writerSession), id)
		if err != nil {
			return err
		}
		return tx.append(ctx, "", 0, session.EventDraft(agency.SessionReported))
	})
}

// AddResult stores the result of an agent. A second call does nothing, and neither does one for a
// removed session.
func (s *sessions) AddResult(ctx context.Context, id agency.SessionID, agent string, r *agency.AgentResult) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the result of %s in session %s: %w", agent, id, err)
	}
	return s.db.write(ctx, "change session in", func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO session_results (session, agent, result) SELECT seq, ?, ? FROM sessions WHERE id = ?
			ON CONFLICT DO NOTHING`, agent, string(data), string(id))
		return err
	})
}

// inheritResults copies the results of runs that a new session takes over from the session that it
// retries.
func (tx *transaction) inheritResults(ctx context.Context, s *agency.Session) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO session_results (session, agent, result)
		SELECT a.session, a.id, r.result FROM session_agents a
			JOIN sessions o ON o.id = ?
			JOIN session_agents b ON b.session = o.seq AND b.id = a.id AND b.run = a.run
			JOIN session_results r ON r.session = o.seq AND r.agent = b.id
		WHERE a.session = ? AND a.run <> ''`, string(s.RetryOf), s.Seq)
	return err
}

// SessionResults returns the known results of the agents of a session, by their ids.
func (s *sessions) SessionResults(ctx context.Context, id agency.SessionID) (map[string]agency.AgentResult, error) {
	rows, err := s.db.query(ctx, `SELECT r.agent, r.result FROM session_results r JOIN sessions s ON s.seq = r.session WHERE s.id = ?`, string(id))
	if err != nil {
		return nil, problem("read session from", s.db.path, err)
	}
	type row struct {
		agent  string
		result agency.AgentResult
	}
	found, err := collect(rows, func(scan scanner) (row, error) {
		var r row
		var data string
		if err := scan.Scan(text(&r.agent), text(&data)); err != nil {
			return r, err
		}
		return r, json.Unmarshal([]byte(data), &r.result)
	})
	if err != nil {
		return nil, problem("read session from", s.db.path, err)
	}
	results := make(map[string]agency.AgentResult, len(found))
	for i := range found {
		results[found[i].agent] = found[i].result
	}
	return results, nil
}
