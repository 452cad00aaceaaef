package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"agency"
)

const landingColumns = `seq, id, run_id, target, method, source, target_old, candidate, move_from, move_to, worktree, state, error, cleanup, created_at_ms, ended_at_ms`

func scanLanding(row scanner) (agency.Landing, error) {
	var l agency.Landing
	err := row.Scan(whole(&l.Seq), text(&l.ID), text(&l.RunID), text(&l.Target), text(&l.Method), text(&l.Source), text(&l.TargetOld),
		text(&l.Candidate), text(&l.MoveFrom), text(&l.MoveTo), text(&l.Worktree), text(&l.State), text(&l.Error), flag(&l.Cleanup), moment(&l.CreatedAt), optionalMoment(&l.EndedAt))
	return l, err
}

// CreateLanding writes a new landing with its event, and fills in its Seq and CreatedAt.
func (s *landings) CreateLanding(ctx context.Context, l *agency.Landing) error {
	created := *l
	err := s.db.write(ctx, "create landing in", func(tx *transaction) error {
		created.CreatedAt = tx.now
		result, err := tx.ExecContext(ctx, `INSERT INTO landings (id, run_id, target, method, source, target_old, candidate, move_from, move_to, worktree, state, error, cleanup, created_at_ms)
			VALUES (`+marks(14)+`)`, string(l.ID), string(l.RunID), l.Target, string(l.Method), l.Source, l.TargetOld, l.Candidate,
			l.MoveFrom, l.MoveTo, l.Worktree,
			string(l.State), l.Error, l.Cleanup, tx.now.UnixMilli())
		if err != nil {
			return err
		}
		if created.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		return tx.append(ctx, l.RunID, 0, agency.EventDraft{Type: agency.LandingBegun, Data: created})
	})
	if err == nil {
		*l = created
	}
	return err
}

// SettleLanding gives a landing another state than LandingMoving, and the reason when it failed,
// with the event; an empty event means none. It returns the landing, with the time of the change as
// EndedAt. A second call writes nothing.
func (s *landings) SettleLanding(ctx context.Context, id agency.LandingID, state agency.LandingState, reason string, event agency.EventType) (*agency.Landing, error) {
	var l agency.Landing
	err := s.db.write(ctx, "change landing in", func(tx *transaction) error {
		var err error
		if l, err = scanLanding(tx.QueryRowContext(ctx, `SELECT `+landingColumns+` FROM landings WHERE id = ?`, string(id))); errors.Is(err, sql.ErrNoRows) {
			return noLanding(id)
		}
		if err != nil {
			return err
		}
		if l.State == state {
			return nil
		}
		l.State, l.Error = state, reason
		l.EndedAt = new(tx.now)
		_, err = tx.ExecContext(ctx, `UPDATE landings SET state = ?, error = ?, ended_at_ms = ? WHERE id = ?`, string(state), reason, millis(l.EndedAt), string(id))
		if err != nil || event == "" {
			return err
		}
		return tx.append(ctx, l.RunID, 0, agency.EventDraft{Type: event, Data: l})
	})
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// CleanedUp records that nothing is left to remove because of a landing.
func (s *landings) CleanedUp(ctx context.Context, id agency.LandingID) error {
	return s.db.write(ctx, "change landing in", func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, `UPDATE landings SET cleanup = 0 WHERE id = ?`, string(id))
		return err
	})
}

// LandingsToCleanUp returns the landings whose run is still to be removed, the oldest first.
func (s *landings) LandingsToCleanUp(ctx context.Context) ([]agency.Landing, error) {
	return s.query(ctx, `SELECT `+landingColumns+` FROM landings WHERE cleanup = 1 AND state = 'landed' ORDER BY seq`)
}

// Landing returns one landing. One that does not exist is E_LANDING_NOT_FOUND.
func (s *landings) Landing(ctx context.Context, id agency.LandingID) (*agency.Landing, error) {
	l, err := scanLanding(s.db.readers.QueryRowContext(ctx, `SELECT `+landingColumns+` FROM landings WHERE id = ?`, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, noLanding(id)
	}
	return &l, problem("read landings from", s.db.path, err)
}

func noLanding(id agency.LandingID) error {
	return agency.Errorf(agency.CodeLandingNotFound, "there is no landing %q", id).WithHint("the landings of a run: agency review RUN")
}

// Landings returns the landings of a run, the oldest first.
func (s *landings) Landings(ctx context.Context, run agency.RunID) ([]agency.Landing, error) {
	return s.query(ctx, `SELECT `+landingColumns+` FROM landings WHERE run_id = ? ORDER BY seq`, string(run))
}

// LandedIn returns the newest landings in a repository that were not taken back, the newest first,
// and at most the given number.
func (s *landings) LandedIn(ctx context.Context, fingerprint string, most int) ([]agency.Landing, error) {
	return s.query(ctx, `SELECT `+landingColumns+` FROM landings WHERE state = 'landed' AND run_id IN (SELECT id FROM runs WHERE repo = ?)
		ORDER BY seq DESC LIMIT ?`, fingerprint, most)
}

// ofSession chooses the runs of the agents of a session, and those that continue the work of one
// that was removed.
const ofSession = `run_id IN (WITH RECURSIVE theirs (run) AS (
	SELECT a.run FROM session_agents a JOIN sessions s ON s.seq = a.session WHERE s.id = ? AND a.run <> ''
	UNION SELECT e.run_id FROM queue_entries e JOIN theirs ON e.instead_of = theirs.run WHERE e.instead_of <> ''
	) SELECT run FROM theirs)`

// SessionLandings returns the landings of the runs of a session that moved their target, the oldest
// first.
func (s *landings) SessionLandings(ctx context.Context, id agency.SessionID) ([]agency.Landing, error) {
	return s.query(ctx, `SELECT `+landingColumns+` FROM landings WHERE `+ofSession+` AND state IN ('landed', 'undone') ORDER BY seq`, string(id))
}

// OpenLandings returns the landings that are moving or undoing, the oldest first.
func (s *landings) OpenLandings(ctx context.Context) ([]agency.Landing, error) {
	return s.query(ctx, `SELECT `+landingColumns+` FROM landings WHERE state IN ('moving', 'undoing') ORDER BY seq`)
}

func (s *landings) query(ctx context.Context, query string, args ...any) ([]agency.Landing, error) {
	rows, err := s.db.query(ctx, query, args...)
	if err != nil {
		return nil, problem("read landings from", s.db.path, err)
	}
	all, err := collect(rows, scanLanding)
	return all, problem("read landings from", s.db.path, err)
}
