package sqlite

import (
	"context"

	"agency"
)

const pushColumns = `run_id, url, branch, commit_id, created, done, at_ms`

func scanPush(row scanner) (agency.Push, error) {
	var p agency.Push
	err := row.Scan(text(&p.RunID), text(&p.URL), text(&p.Branch), text(&p.Commit), flag(&p.Created), flag(&p.Done), moment(&p.At))
	return p, err
}

// RecordPush writes that a commit is being pushed, or with Done that the remote has it, and fills
// in p.At. A push that is done is an event, once: the second time it writes nothing.
func (s *pushes) RecordPush(ctx context.Context, p *agency.Push) error {
	return s.db.write(ctx, "record a push in", func(tx *transaction) error {
		p.At = tx.now
		same := `run_id = ? AND url = ? AND branch = ? AND commit_id = ?`
		args := []any{string(p.RunID), p.URL, p.Branch, p.Commit}
		known, done := 0, 0
		if err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(max(done), 0) FROM pushes WHERE `+same, args...).Scan(&known, &done); err != nil {
			return err
		}
		if known == 0 {
			_, err := tx.ExecContext(ctx, `INSERT INTO pushes (`+pushColumns+`) VALUES (`+marks(columns(pushColumns))+`)`, append(args, p.Created, p.Done, tx.now.UnixMilli())...)
			if err != nil {
				return err
			}
		}
		if !p.Done || done == 1 {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE pushes SET done = 1, at_ms = ? WHERE `+same, append([]any{tx.now.UnixMilli()}, args...)...); err != nil {
			return err
		}
		return tx.append(ctx, p.RunID, 0, agency.EventDraft{Type: agency.RunPushed, Data: p})
	})
}

// Pushes returns what was pushed for a run, the oldest first.
func (s *pushes) Pushes(ctx context.Context, run agency.RunID) ([]agency.Push, error) {
	rows, err := s.db.query(ctx, `SELECT `+pushColumns+` FROM pushes WHERE run_id = ? ORDER BY seq`, string(run))
	if err != nil {
		return nil, problem("read pushes from", s.db.path, err)
	}
	all, err := collect(rows, scanPush)
	return all, problem("read pushes from", s.db.path, err)
}
