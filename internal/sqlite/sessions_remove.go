package sqlite

import (
	"context"
	"fmt"
	"time"

	"agency"
)

// RemoveSession removes a settled session from the record, with the event session.removed; its
// earlier events stay. The place of its status files is kept until ForgetSession; the time until which it
// led its runs is kept for ever. The error for a running session is E_INVALID_STATE, for a missing one
// E_SESSION_NOT_FOUND.
func (s *sessions) RemoveSession(ctx context.Context, id agency.SessionID) error {
	return s.db.write(ctx, "remove session from", func(tx *transaction) error {
		session, err := readSession(ctx, tx.StmtContext(ctx, s.db.writerSession), id)
		if err != nil {
			return err
		}
		if !session.Status.Final() {
			return agency.Errorf(agency.CodeInvalidState, "session %s is running", id).WithHint("agency session cancel %s", id)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO led_runs (run, until_ms) SELECT run, ? FROM session_agents WHERE session = ? AND run <> ''
			ON CONFLICT DO UPDATE SET until_ms = max(until_ms, excluded.until_ms)`, session.CompletedAt.UnixMilli(), session.Seq); err != nil {
			return fmt.Errorf("keep until when it led its runs: %w", err)
		}
		for _, table := range []string{"session_agents", "session_plans", "session_results"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE session = ?`, session.Seq); err != nil {
				return fmt.Errorf("empty %s: %w", table, err)
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE seq = ?`, session.Seq); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO removed_sessions (id, root, status_dir, dir) VALUES (?, ?, ?, ?)`,
			string(id), session.Repo.Root, session.StatusDir, session.Dir); err != nil {
			return err
		}
		return tx.append(ctx, "", 0, session.EventDraft(agency.SessionRemoved))
	})
}

// LedUntil returns until when a session that was removed led a run; zero when none did.
func (s *sessions) LedUntil(ctx context.Context, id agency.RunID) (until time.Time, err error) {
	row, err := s.db.queryRow(ctx, `SELECT max(until_ms) FROM led_runs WHERE run = ?`, string(id))
	if err != nil {
		return until, problem("read session from", s.db.path, err)
	}
	var at *time.Time
	if err = row.Scan(optionalMoment(&at)); at != nil {
		until = *at
	}
	return until, problem("read session from", s.db.path, err)
}

// RemovedSessions returns the removed sessions whose status files may still exist, with their ids
// and places only.
func (s *sessions) RemovedSessions(ctx context.Context) ([]agency.Session, error) {
	rows, err := s.db.readers.QueryContext(ctx, `SELECT id, root, status_dir, dir FROM removed_sessions ORDER BY id`)
	if err != nil {
		return nil, problem("read sessions from", s.db.path, err)
	}
	sessions, err := collect(rows, func(row scanner) (agency.Session, error) {
		var session agency.Session
		err := row.Scan(text(&session.ID), text(&session.Repo.Root), text(&session.StatusDir), text(&session.Dir))
		return session, err
	})
	return sessions, problem("read sessions from", s.db.path, err)
}

// ForgetSession records that nothing is left of a removed session.
func (s *sessions) ForgetSession(ctx context.Context, id agency.SessionID) error {
	return s.db.write(ctx, "remove session from", func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM removed_sessions WHERE id = ?`, string(id))
		return err
	})
}
