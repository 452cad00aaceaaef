package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"agency"
)

const checkColumns = `c.id, c.name, c.verdict, c.reason, c.runs, c.commit_id, c.tree, c.began_at_ms, c.ended_at_ms, c.log`

func checkDest(c *agency.CheckResult) []any {
	return []any{
		text(&c.ID), text(&c.Name), text(&c.Verdict), text(&c.Reason), whole(&c.Runs), text(&c.Commit), text(&c.Tree),
		moment(&c.Began), moment(&c.Ended), text(&c.Log),
	}
}

// KnownCheck returns the newest result for a key; nil when there is none.
func (s *checks) KnownCheck(ctx context.Context, key agency.CheckKey) (*agency.CheckResult, error) {
	var c agency.CheckResult
	err := s.db.readers.QueryRowContext(ctx, `SELECT `+checkColumns+` FROM checks c
		WHERE c.repo = ? AND c.tree = ? AND c.check_hash = ? AND c.env_hash = ? ORDER BY c.seq DESC LIMIT 1`,
		key.Repo, key.Tree, key.Check, key.Env).Scan(checkDest(&c)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is known
	}
	return &c, problem("read checks from", s.db.path, err)
}

// RecordCheck records the result of a check that ended, unless it is cached, and that it is the
// newest one for the work of a run, with the event check.ended. It fills in v.At. Without a run
// only the result is recorded.
func (s *checks) RecordCheck(ctx context.Context, key agency.CheckKey, run agency.RunID, v *agency.CheckResult) error {
	return s.db.write(ctx, "record a check in", func(tx *transaction) error {
		if !v.Cached {
			_, err := tx.ExecContext(ctx, `INSERT INTO checks (id, repo, tree, check_hash, env_hash, name, verdict, reason, runs, commit_id, log, began_at_ms, ended_at_ms)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				v.ID, key.Repo, key.Tree, key.Check, key.Env, v.Name, string(v.Verdict), v.Reason, v.Runs, v.Commit, v.Log, v.Began.UnixMilli(), v.Ended.UnixMilli())
			if err != nil {
				return err
			}
		}
		v.At = tx.now
		if run == "" {
			return nil
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO run_checks (run_id, name, check_seq, source, target, merged, cached, verified_at_ms)
			VALUES (?, ?, (SELECT seq FROM checks WHERE id = ?), ?, ?, ?, ?, ?)
			ON CONFLICT (run_id, name) DO UPDATE SET check_seq = excluded.check_seq, source = excluded.source, target = excluded.target,
			merged = excluded.merged, cached = excluded.cached, verified_at_ms = excluded.verified_at_ms`,
			string(run), v.Name, v.ID, v.Source, v.Target, v.Merged, v.Cached, tx.now.UnixMilli())
		if err != nil {
			return err
		}
		return tx.append(ctx, run, 0, agency.EventDraft{Type: agency.CheckEnded, Data: map[string]any{
			"check": v.Name, "verdict": v.Verdict, "reason": v.Reason, "commit": v.Source, "tree": v.Tree, "target": v.Target, "merged": v.Merged, "cached": v.Cached,
		}})
	})
}

// ChecksOf returns the newest result of each check of a run's work, by name.
func (s *checks) ChecksOf(ctx context.Context, run agency.RunID) ([]agency.CheckResult, error) {
	rows, err := s.db.query(ctx, `SELECT `+checkColumns+`, v.source, v.target, v.merged, v.cached, v.verified_at_ms
		FROM run_checks v JOIN checks c ON c.seq = v.check_seq WHERE v.run_id = ? ORDER BY v.name`, string(run))
	if err != nil {
		return nil, problem("read checks from", s.db.path, err)
	}
	found, err := collect(rows, func(row scanner) (agency.CheckResult, error) {
		var v agency.CheckResult
		err := row.Scan(append(checkDest(&v), text(&v.Source), text(&v.Target), flag(&v.Merged), flag(&v.Cached), moment(&v.At))...)
		return v, err
	})
	return found, problem("read checks from", s.db.path, err)
}

// ShownLogs returns the paths of the logs of the newest result of each check of each run that is
// not removed.
func (s *checks) ShownLogs(ctx context.Context) (map[string]bool, error) {
	rows, err := s.db.query(ctx, `SELECT DISTINCT c.log FROM run_checks v
		JOIN checks c ON c.seq = v.check_seq JOIN runs r ON r.id = v.run_id WHERE r.removed_at_ms IS NULL`)
	if err != nil {
		return nil, problem("read checks from", s.db.path, err)
	}
	paths, err := collect(rows, func(row scanner) (path string, err error) { return path, row.Scan(&path) })
	shown := make(map[string]bool, len(paths))
	for _, path := range paths {
		shown[path] = true
	}
	return shown, problem("read checks from", s.db.path, err)
}
