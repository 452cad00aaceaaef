package sqlite

import (
	"context"

	"agency"
)

// MarkReviewed keeps files of one run as reviewed, or takes that back, with the event. When the run
// would have too many, those that were reviewed first are dropped.
func (s *landings) MarkReviewed(ctx context.Context, run agency.RunID, files []agency.ReviewedFile, reviewed bool) error {
	statement := `DELETE FROM reviewed WHERE run_id = ?1 AND path = ?2 AND object = ?3`
	if reviewed {
		statement = `INSERT INTO reviewed (run_id, path, object, at_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET at_ms = ?4`
	}
	return s.db.write(ctx, "mark files as reviewed in", func(tx *transaction) error {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
			if _, err := tx.ExecContext(ctx, statement, string(run), f.Path, f.Object, tx.now.UnixMilli()); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM reviewed WHERE run_id = ?1 AND (path, object) IN
			(SELECT path, object FROM reviewed WHERE run_id = ?1 ORDER BY at_ms DESC LIMIT -1 OFFSET ?2)`, string(run), agency.ReviewedLimit)
		if err != nil {
			return err
		}
		return tx.append(ctx, run, 0, agency.EventDraft{Type: agency.ReviewChanged, Data: map[string]any{"files": paths, "reviewed": reviewed}})
	})
}

// Reviewed returns the files of a run that the user has reviewed.
func (s *landings) Reviewed(ctx context.Context, run agency.RunID) ([]agency.ReviewedFile, error) {
	rows, err := s.db.query(ctx, `SELECT path, object FROM reviewed WHERE run_id = ?`, string(run))
	if err != nil {
		return nil, problem("read what was reviewed from", s.db.path, err)
	}
	files, err := collect(rows, func(row scanner) (f agency.ReviewedFile, err error) {
		return f, row.Scan(text(&f.Path), text(&f.Object))
	})
	return files, problem("read what was reviewed from", s.db.path, err)
}
