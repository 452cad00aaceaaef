package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"agency"
)

const timerColumns = `seq, name, run_id, owner, message, interval_ms, started_at_ms, next_at_ms, ticked_at_ms, ticks, sent, skipped, failed,
	outcome, stopped_at_ms, stop_reason`

func scanTimer(row scanner) (agency.Timer, error) {
	var t agency.Timer
	var interval int64
	err := row.Scan(whole(&t.Seq), text(&t.Name), text(&t.RunID), text(&t.Owner), text(&t.Message), whole(&interval), moment(&t.StartedAt),
		moment(&t.NextAt), optionalMoment(&t.TickedAt), whole(&t.Ticks), whole(&t.Sent), whole(&t.Skipped), whole(&t.Failed), text(&t.Outcome),
		optionalMoment(&t.StoppedAt), text(&t.StopReason))
	t.Interval = time.Duration(interval) * time.Millisecond
	return t, err
}

// Timers returns all timers by their names, including those that ended by themselves.
func (s *messages) Timers(ctx context.Context) ([]agency.Timer, error) {
	rows, err := s.db.query(ctx, `SELECT `+timerColumns+` FROM timers ORDER BY name`)
	if err != nil {
		return nil, problem("read timers from", s.db.path, err)
	}
	timers, err := collect(rows, scanTimer)
	return timers, problem("read timers from", s.db.path, err)
}

// PutTimer adds a timer, replacing one with its name, with its event, and fills in its Seq. The
// name of an active timer of another owner is E_NAME_EXISTS, except for the user.
func (s *messages) PutTimer(ctx context.Context, t *agency.Timer) (replaced bool, err error) {
	err = s.db.write(ctx, "start timer in", func(tx *transaction) error {
		if err := tx.mayReplace(ctx, t); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM timers WHERE name = ?`, t.Name)
		if err != nil {
			return err
		}
		gone, err := result.RowsAffected()
		if err != nil {
			return err
		}
		result, err = tx.ExecContext(ctx, `INSERT INTO timers (name, run_id, owner, message, interval_ms, started_at_ms, next_at_ms, ticks, sent,
			skipped, failed, outcome, stop_reason) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, '', '')`,
			t.Name, string(t.RunID), t.Owner, t.Message, t.Interval.Milliseconds(), t.StartedAt.UnixMilli(), t.NextAt.UnixMilli())
		if err != nil {
			return err
		}
		if t.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		replaced = gone > 0
		return tx.append(ctx, t.RunID, 0, agency.EventDraft{Type: agency.TimerStarted, Data: map[string]any{"timer": t.Name, "interval_ms": t.Interval.Milliseconds()}})
	})
	return replaced && err == nil, err
}

// mayReplace refuses a timer whose owner may not take its name.
func (tx *transaction) mayReplace(ctx context.Context, t *agency.Timer) error {
	var owner string
	err := tx.QueryRowContext(ctx, `SELECT owner FROM timers WHERE name = ? AND stopped_at_ms IS NULL`, t.Name).Scan(&owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil || owner == t.Owner || t.Owner == agency.User:
		return err
	case owner == agency.User:
		owner = "the user"
	}
	return agency.Errorf(agency.CodeNameExists, "%s started a timer %q, which is live", owner, t.Name).
		WithHint("agency watchdog start --run %s --name OTHER", t.RunID)
}

// ChangeTimer lets change edit the progress of a timer, and writes it, with an event if the timer
// ends by it. found is false when the timer no longer exists, or another one has taken its name.
func (s *messages) ChangeTimer(ctx context.Context, seq int64, change func(t *agency.Timer)) (found bool, err error) {
	err = s.db.write(ctx, "change timer in", func(tx *transaction) error {
		t, err := scanTimer(tx.QueryRowContext(ctx, `SELECT `+timerColumns+` FROM timers WHERE seq = ?`, seq))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		ran := t.StoppedAt == nil
		change(&t)
		_, err = tx.ExecContext(ctx, `UPDATE timers SET next_at_ms = ?, ticked_at_ms = ?, ticks = ?, sent = ?, skipped = ?, failed = ?, outcome = ?,
			stopped_at_ms = ?, stop_reason = ? WHERE seq = ?`, t.NextAt.UnixMilli(), millis(t.TickedAt), t.Ticks, t.Sent, t.Skipped, t.Failed,
			t.Outcome, millis(t.StoppedAt), t.StopReason, seq)
		if err != nil || !ran || t.StoppedAt == nil {
			return err
		}
		return tx.append(ctx, t.RunID, 0, agency.EventDraft{Type: agency.TimerStopped, Data: map[string]any{"timer": t.Name, "reason": t.StopReason}})
	})
	return found && err == nil, err
}

// DeleteTimer ends a timer on request, with its event.
func (s *messages) DeleteTimer(ctx context.Context, t *agency.Timer) error {
	return s.db.write(ctx, "stop timer in", func(tx *transaction) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM timers WHERE seq = ?`, t.Seq)
		if err != nil {
			return err
		}
		if gone, err := result.RowsAffected(); err != nil || gone == 0 || t.StoppedAt != nil {
			return err
		}
		return tx.append(ctx, t.RunID, 0, agency.EventDraft{Type: agency.TimerStopped, Data: map[string]any{"timer": t.Name, "reason": "it was asked for"}})
	})
}
