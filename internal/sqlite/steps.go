package sqlite

import (
	"context"

	"agency"
)

// planSteps records steps to come.
func (tx *transaction) planSteps(ctx context.Context, id agency.RunID, attempt int, names []string) error {
	for _, name := range names {
		_, err := tx.ExecContext(ctx, `INSERT INTO steps (run_id, attempt, name) VALUES (?, ?, ?)`, string(id), attempt, name)
		if err != nil {
			return err
		}
	}
	return nil
}

// FinishSteps records that steps are done, each with the event run.step. The second time it writes
// nothing. A step that was not planned is added behind the others.
func (s *runs) FinishSteps(ctx context.Context, id agency.RunID, attempt int, names ...string) error {
	return s.db.write(ctx, "record steps in", func(tx *transaction) error {
		var known bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attempts WHERE run_id = ? AND number = ?)`,
			string(id), attempt).Scan(&known)
		if err != nil {
			return err
		}
		if !known {
			return notFound(id)
		}
		for _, name := range names {
			if err := tx.finishStep(ctx, id, attempt, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// finishStep records a step with its event, unless it is done already.
func (tx *transaction) finishStep(ctx context.Context, id agency.RunID, attempt int, name string) error {
	result, err := tx.ExecContext(ctx, `INSERT INTO steps (run_id, attempt, name, done_at_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (run_id, attempt, name) DO UPDATE SET done_at_ms = excluded.done_at_ms WHERE done_at_ms IS NULL`,
		string(id), attempt, name, tx.now.UnixMilli())
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return tx.append(ctx, id, attempt, agency.StepDone(name))
}

// appendChange appends the events of a changed run. One of a step marks that step as done too.
func (tx *transaction) appendChange(ctx context.Context, id agency.RunID, attempt int, drafts []agency.EventDraft) error {
	for _, draft := range drafts {
		var err error
		if step, ok := draft.Data.(agency.StepData); ok {
			err = tx.finishStep(ctx, id, attempt, step.Step)
		} else {
			err = tx.append(ctx, id, attempt, draft)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Steps returns the steps of an attempt in their order.
func (s *runs) Steps(ctx context.Context, id agency.RunID, attempt int) ([]agency.Step, error) {
	rows, err := s.db.query(ctx, `SELECT name, done_at_ms FROM steps WHERE run_id = ? AND attempt = ? ORDER BY seq`,
		string(id), attempt)
	if err != nil {
		return nil, problem("read steps from", s.db.path, err)
	}
	steps, err := collect(rows, func(row scanner) (agency.Step, error) {
		var step agency.Step
		err := row.Scan(&step.Name, optionalMoment(&step.DoneAt))
		return step, err
	})
	return steps, problem("read steps from", s.db.path, err)
}
