package sqlite

import (
	"context"
	"slices"

	"agency"
)

const commentColumns = `run_id, number, file, side, line, last, body, quote, hash, revision, state, created_at_ms, sent_at_ms`

func scanComment(row scanner) (agency.LineComment, error) {
	var c agency.LineComment
	err := row.Scan(text(&c.RunID), whole(&c.Number), text(&c.File), text(&c.Side), whole(&c.Line), whole(&c.Last), text(&c.Text),
		text(&c.Quote), text(&c.Hash), text(&c.Revision), text(&c.State), moment(&c.CreatedAt), optionalMoment(&c.SentAt))
	return c, err
}

// AddComments writes comments of one run with their event, and fills in Number, State and
// CreatedAt.
func (s *landings) AddComments(ctx context.Context, run agency.RunID, comments []agency.LineComment) error {
	added := slices.Clone(comments)
	err := s.db.write(ctx, "add comments to", func(tx *transaction) error {
		last := 0
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM comments WHERE run_id = ?`, string(run)).Scan(&last); err != nil {
			return err
		}
		for i := range added {
			c := &added[i]
			c.RunID, c.Number, c.State, c.CreatedAt, c.SentAt = run, last+i+1, agency.CommentOpen, tx.now, nil
			_, err := tx.ExecContext(ctx, `INSERT INTO comments (`+commentColumns+`) VALUES (`+marks(13)+`)`, string(run), c.Number, c.File, c.Side, c.Line,
				c.Last, c.Text, c.Quote, c.Hash, c.Revision, string(c.State), tx.now.UnixMilli(), nil)
			if err != nil {
				return err
			}
		}
		return tx.append(ctx, run, 0, commentEvent(added, agency.CommentOpen))
	})
	if err == nil {
		copy(comments, added)
	}
	return err
}

// MoveComments changes the state of those of the numbered comments of a run that have one of the
// states from, with the event, and returns them.
func (s *landings) MoveComments(ctx context.Context, run agency.RunID, numbers []int, from []agency.CommentState, to agency.CommentState) ([]agency.LineComment, error) {
	var moved []agency.LineComment
	err := s.db.write(ctx, "change comments in", func(tx *transaction) error {
		rows, err := tx.QueryContext(ctx, `SELECT `+commentColumns+` FROM comments WHERE run_id = ? ORDER BY number`, string(run))
		if err != nil {
			return err
		}
		if moved, err = collect(rows, scanComment); err != nil {
			return err
		}
		moved = slices.DeleteFunc(moved, func(c agency.LineComment) bool {
			return !slices.Contains(numbers, c.Number) || !slices.Contains(from, c.State)
		})
		if len(moved) == 0 {
			return nil
		}
		for i := range moved {
			c := &moved[i]
			if c.State, c.SentAt = to, nil; to == agency.CommentSent {
				c.SentAt = new(tx.now)
			}
			_, err := tx.ExecContext(ctx, `UPDATE comments SET state = ?, sent_at_ms = ? WHERE run_id = ? AND number = ?`,
				string(to), millis(c.SentAt), string(run), c.Number)
			if err != nil {
				return err
			}
		}
		return tx.append(ctx, run, 0, commentEvent(moved, to))
	})
	return moved, err
}

func commentEvent(comments []agency.LineComment, state agency.CommentState) agency.EventDraft {
	numbers := make([]int, 0, len(comments))
	for i := range comments {
		numbers = append(numbers, comments[i].Number)
	}
	return agency.EventDraft{Type: agency.CommentChanged, Data: map[string]any{"numbers": numbers, "state": state}}
}

// Comments returns the comments on the work of a run, without discarded ones, in their order.
func (s *landings) Comments(ctx context.Context, run agency.RunID) ([]agency.LineComment, error) {
	rows, err := s.db.query(ctx, `SELECT `+commentColumns+` FROM comments WHERE run_id = ? AND state != 'discarded' ORDER BY number`, string(run))
	if err != nil {
		return nil, problem("read comments from", s.db.path, err)
	}
	all, err := collect(rows, scanComment)
	return all, problem("read comments from", s.db.path, err)
}
