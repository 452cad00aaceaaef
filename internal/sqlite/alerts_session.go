package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"agency"
)

// WatchedSessions returns the sessions that a watchdog must check when it starts: agency's own
// running ones, and those that failed, or whose work was refused when it was to land, without an
// alert, because no watchdog ran.
func (s *alerts) WatchedSessions(ctx context.Context) ([]agency.SessionID, error) {
	rows, err := s.db.readers.QueryContext(ctx, `SELECT id FROM sessions AS s WHERE external = 0 AND (status = 'running'
		OR (status = 'failed' OR status = 'complete' AND EXISTS (SELECT 1 FROM session_agents a WHERE a.session = s.seq AND a.land_state = 'refused'))
		AND NOT EXISTS (SELECT 1 FROM alerts WHERE session = s.id AND kind = 'session.failed')) ORDER BY seq`)
	if err != nil {
		return nil, problem("read sessions from", s.db.path, err)
	}
	ids, err := collect(rows, func(row scanner) (agency.SessionID, error) {
		var id agency.SessionID
		err := row.Scan(text(&id))
		return id, err
	})
	return ids, problem("read sessions from", s.db.path, err)
}

// OpenedSeq returns the number before the event that opened the oldest open alert of a session. It
// ignores alerts about failures, which no change of the session ends. Without such an alert it is
// the number of the newest event.
func (s *alerts) OpenedSeq(ctx context.Context) (int64, error) {
	var oldest string
	err := s.db.readers.QueryRowContext(ctx, `SELECT id FROM alerts WHERE session IS NOT NULL AND resolved_at_ms IS NULL AND kind <> 'session.failed'
		ORDER BY seq LIMIT 1`).Scan(&oldest)
	var seq int64
	if err == nil { // from the newest event backwards, because the record may be long
		err = s.db.readers.QueryRowContext(ctx, `SELECT seq - 1 FROM events WHERE type = 'alert.opened' AND data ->> '$.alert' = ?
			ORDER BY seq DESC LIMIT 1`, oldest).Scan(&seq)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return s.db.LastSeq(ctx)
	}
	return seq, problem("read events from", s.db.path, err)
}

// SessionTurns returns the changes of agency's own sessions and of their alerts by the events after
// the sequence number since, in order, and the newest number.
func (s *alerts) SessionTurns(ctx context.Context, since int64) (turns []agency.SessionTurn, newest int64, err error) {
	if newest, err = s.db.LastSeq(ctx); err != nil || newest <= since {
		return nil, since, err
	}
	rows, err := s.db.query(ctx, `SELECT e.type, e.session, coalesce(e.data ->> '$.alert', ''), coalesce(e.data ->> '$.agent', ''),
		coalesce(e.data ->> '$.status', ''), coalesce(e.data ->> '$.error', ''), coalesce(e.data ->> '$.paused', '')
		FROM (SELECT seq, type, data, data ->> '$.session' AS session FROM events WHERE seq > ? AND seq <= ?
			AND (type GLOB 'session.*' OR type GLOB 'alert.*')) e
		LEFT JOIN sessions s ON s.id = e.session WHERE e.session IS NOT NULL AND coalesce(s.external, 0) = 0 ORDER BY e.seq`, since, newest)
	if err != nil {
		return nil, since, problem("read events from", s.db.path, err)
	}
	turns, err = collect(rows, func(row scanner) (agency.SessionTurn, error) {
		var t agency.SessionTurn
		err := row.Scan(text(&t.Type), text(&t.Session), text(&t.Alert), text(&t.Agent), text(&t.Status), text(&t.Error), text(&t.Paused))
		return t, err
	})
	if err != nil {
		return nil, since, problem("read events from", s.db.path, err)
	}
	return turns, newest, nil
}

// Troubled returns a session with those of its agents that failed or wait in the queue with an
// error, and whether another session took over from it, all from the same moment. A missing session
// is E_SESSION_NOT_FOUND.
func (s *alerts) Troubled(ctx context.Context, id agency.SessionID) (session *agency.Session, agents []agency.SessionAgent, retried bool, err error) {
	session, agents, retried, err = s.troubled(ctx, id)
	if err != nil {
		return nil, nil, false, problem("read session from", s.db.path, err)
	}
	return session, agents, retried, nil
}

func (s *alerts) troubled(ctx context.Context, id agency.SessionID) (*agency.Session, []agency.SessionAgent, bool, error) {
	tx, err := s.db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, nil, false, err
	}
	defer func() { _ = tx.Rollback() }()
	session, err := readSession(ctx, tx.StmtContext(ctx, s.db.readerSession), id)
	if err != nil {
		return nil, nil, false, err
	}
	var retried bool
	if session.Status.Final() {
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sessions WHERE retry_of = ?)`, string(id)).Scan(&retried)
		if err != nil {
			return nil, nil, false, err
		}
	}
	rows, err := tx.QueryContext(ctx, selectAgents+`WHERE a.status = 'failed' OR a.land_state = 'refused' OR a.status = 'queued' AND a.error <> '' ORDER BY a.position`, string(id))
	if err != nil {
		return nil, nil, false, err
	}
	agents, err := collect(rows, scanAgent)
	return &session, agents, retried, err
}
