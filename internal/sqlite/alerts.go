package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"agency"
)

const alertColumns = `seq, id, kind, run_id, session, attempt, cause, payload, opened_at_ms, resolved_at_ms, acked_at_ms, acked_by,
	snoozed_until_ms, notify_count, level, notified_at_ms, recipients`

// ofHost chooses the alerts of the machine.
const ofHost = `(run_id IS NULL AND session IS NULL)`

func scanAlert(row scanner) (agency.Alert, error) {
	var a agency.Alert
	var payload string
	err := row.Scan(whole(&a.Seq), text(&a.ID), text(&a.Kind), text(&a.RunID), text(&a.Session), whole(&a.Attempt), text(&a.Cause), text(&payload),
		moment(&a.OpenedAt), optionalMoment(&a.ResolvedAt), optionalMoment(&a.AckedAt), text(&a.AckedBy),
		optionalMoment(&a.SnoozedUntil), whole(&a.NotifyCount), whole(&a.Level), optionalMoment(&a.NotifiedAt), toList(&a.Recipients))
	a.Payload = json.RawMessage(payload)
	return a, err
}

// Alerts returns the alerts that a filter chooses, oldest first.
func (s *alerts) Alerts(ctx context.Context, f agency.AlertFilter) ([]agency.Alert, error) {
	query, args := `SELECT `+alertColumns+` FROM alerts WHERE seq > ?`, []any{f.After}
	if len(f.IDs) > 0 {
		ids, err := list(f.IDs)
		if err != nil {
			return nil, err
		}
		query += ` AND id IN (SELECT value FROM json_each(?))`
		args = append(args, ids)
	}
	if f.Run != "" {
		query += ` AND run_id = ?`
		args = append(args, string(f.Run))
	}
	if f.Session != "" {
		query += ` AND session = ?`
		args = append(args, string(f.Session))
	}
	if f.Host {
		query += ` AND ` + ofHost
	}
	if f.Repo != "" {
		query += ` AND (run_id IN (SELECT id FROM runs WHERE repo = ?) OR session IN (SELECT id FROM sessions WHERE repo = ?) OR ` + ofHost + `)`
		args = append(args, f.Repo, f.Repo)
	}
	if !f.Resolved {
		query += ` AND resolved_at_ms IS NULL`
	}
	rows, err := s.db.query(ctx, query+` ORDER BY seq`, args...)
	if err != nil {
		return nil, problem("read alerts from", s.db.path, err)
	}
	alerts, err := collect(rows, scanAlert)
	return alerts, problem("read alerts from", s.db.path, err)
}

// Snoozed returns the runs whose open alerts were all postponed or acknowledged, at least one of
// them postponed, each with the time when the first one notifies again.
func (s *alerts) Snoozed(ctx context.Context) (map[agency.RunID]time.Time, error) {
	rows, err := s.db.query(ctx, `SELECT run_id, min(snoozed_until_ms) FROM alerts
		WHERE run_id IS NOT NULL AND resolved_at_ms IS NULL AND acked_at_ms IS NULL
		GROUP BY run_id HAVING count(*) = count(snoozed_until_ms)`)
	if err != nil {
		return nil, problem("read alerts from", s.db.path, err)
	}
	type snooze struct {
		run   agency.RunID
		until time.Time
	}
	snoozes, err := collect(rows, func(row scanner) (snooze, error) {
		var n snooze
		return n, row.Scan(text(&n.run), moment(&n.until))
	})
	snoozed := make(map[agency.RunID]time.Time, len(snoozes))
	for _, n := range snoozes {
		snoozed[n.run] = n.until
	}
	return snoozed, problem("read alerts from", s.db.path, err)
}

// OpenAlert adds an episode with its event and fills in its Seq. It does not add the same episode
// again. The episode of a run, and a session's failure, count even when they are over; all others
// of a session, and those of the machine, only while they are open.
func (s *alerts) OpenAlert(ctx context.Context, a *agency.Alert) (added bool, err error) {
	err = s.db.write(ctx, "open alert in", func(tx *transaction) error {
		recipients, err := list(a.Recipients)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO alerts (id, kind, run_id, session, attempt, cause, payload, opened_at_ms, acked_by, notify_count, level, recipients)
			VALUES (?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?, ?, '', 0, ?, ?) ON CONFLICT DO NOTHING`,
			a.ID, string(a.Kind), string(a.RunID), string(a.Session), a.Attempt, a.Cause, string(a.Payload), a.OpenedAt.UnixMilli(), a.Level, recipients)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if added = n > 0; err != nil || !added {
			return err
		}
		if a.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		return tx.append(ctx, a.RunID, a.Attempt, alertDraft(a, agency.AlertOpened, "payload", a.Payload))
	})
	return added && err == nil, err
}

// alertDraft returns the event about an alert, with one more value. Like all events of a session,
// the events of its alerts have the session's id.
func alertDraft(a *agency.Alert, event agency.EventType, key string, value any) agency.EventDraft {
	data := map[string]any{"alert": a.ID, "msg_type": a.Kind, key: value}
	if a.Session != "" {
		data["session"] = a.Session
	}
	return agency.EventDraft{Type: event, Data: data}
}

// ChangeAlert lets change edit an alert's state, and writes it with the event that it returns;
// without an event nothing is written. An error of change is returned as it is. An alert that does
// not exist is E_ALERT_NOT_FOUND.
func (s *alerts) ChangeAlert(ctx context.Context, id string, change func(a *agency.Alert) (agency.EventType, error)) (*agency.Alert, error) {
	changed, err := s.ChangeAlerts(ctx, []string{id}, change)
	if err != nil {
		return nil, err
	}
	return &changed[0], nil
}

// ChangeAlerts is ChangeAlert of several, all or none.
func (s *alerts) ChangeAlerts(ctx context.Context, ids []string, change func(a *agency.Alert) (agency.EventType, error)) ([]agency.Alert, error) {
	changed := make([]agency.Alert, 0, len(ids))
	err := s.db.write(ctx, "change alert in", func(tx *transaction) error {
		for _, id := range ids {
			a, err := tx.changeAlert(ctx, id, change)
			if err != nil {
				return err
			}
			changed = append(changed, a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

func (tx *transaction) changeAlert(ctx context.Context, id string, change func(a *agency.Alert) (agency.EventType, error)) (agency.Alert, error) {
	a, err := scanAlert(tx.QueryRowContext(ctx, `SELECT `+alertColumns+` FROM alerts WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return a, agency.Errorf(agency.CodeAlertNotFound, "there is no alert %q", id).WithHint("agency alerts --all")
	}
	if err != nil {
		return a, err
	}
	event, err := change(&a)
	if err != nil || event == "" {
		return a, err
	}
	recipients, err := list(a.Recipients)
	if err != nil {
		return a, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE alerts SET resolved_at_ms = ?, acked_at_ms = ?, acked_by = ?, snoozed_until_ms = ?, notify_count = ?,
		level = ?, notified_at_ms = ?, recipients = ?, payload = ? WHERE id = ?`, millis(a.ResolvedAt), millis(a.AckedAt), a.AckedBy,
		millis(a.SnoozedUntil), a.NotifyCount, a.Level, millis(a.NotifiedAt), recipients, string(a.Payload), id)
	if err != nil {
		return a, err
	}
	if event == agency.AlertResolved {
		// "." is the character behind "-": these are the ids that sendAlert makes.
		if err := tx.clearInbox(ctx, `id > ? || '-' AND id < ? || '.'`, a.ID, a.ID); err != nil {
			return a, err
		}
	}
	if event == agency.AlertUpdated {
		return a, tx.append(ctx, a.RunID, a.Attempt, alertDraft(&a, event, "payload", a.Payload))
	}
	return a, tx.append(ctx, a.RunID, a.Attempt, alertDraft(&a, event, "recipients", a.Recipients))
}

// WatchedRuns returns the runs that a watchdog must check when it starts: those that are not final,
// those that are in a landing queue, removed or not, and those whose end could need action. It does
// not check whether an alert reported that end: an alert may be over because the run was not
// watched for a while, or be about another cause.
func (s *alerts) WatchedRuns(ctx context.Context) ([]agency.RunID, error) {
	rows, err := s.db.readers.QueryContext(ctx, `SELECT r.id FROM runs r JOIN attempts a ON a.run_id = r.id AND a.number = r.attempt
		WHERE r.removed_at_ms IS NULL AND a.state IN ('queued', 'running')
		OR r.merged_at_ms IS NULL AND r.abandoned = 0 AND (r.removed_at_ms IS NULL AND (a.state <> 'killed' OR r.flag <> '')
			OR r.id IN (SELECT run_id FROM queue_entries WHERE `+openEntry+`)) ORDER BY r.seq`)
	if err != nil {
		return nil, problem("read runs from", s.db.path, err)
	}
	ids, err := collect(rows, func(row scanner) (agency.RunID, error) {
		var id agency.RunID
		err := row.Scan(&id)
		return id, err
	})
	return ids, problem("read runs from", s.db.path, err)
}

// ChangedRuns returns the runs with events after the sequence number since, each once, and the
// newest number.
func (s *alerts) ChangedRuns(ctx context.Context, since int64) (ids []agency.RunID, newest int64, err error) {
	rows, err := s.db.query(ctx, `SELECT coalesce(run_id, ''), max(seq) FROM events WHERE seq > ? GROUP BY run_id`, since)
	if err != nil {
		return nil, since, problem("read events from", s.db.path, err)
	}
	newest = since
	ids, err = collect(rows, func(row scanner) (agency.RunID, error) {
		var id agency.RunID
		var seq int64
		err := row.Scan(&id, &seq)
		newest = max(newest, seq)
		return id, err
	})
	if err != nil {
		return nil, since, problem("read events from", s.db.path, err)
	}
	if len(ids) > 0 && ids[0] == "" { // events that belong to no run come first
		ids = ids[1:]
	}
	return ids, newest, nil
}
