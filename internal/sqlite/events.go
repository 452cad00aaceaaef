package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"agency"
)

// Append writes events that belong to no run.
func (s *database) Append(ctx context.Context, drafts ...agency.EventDraft) error {
	return s.write(ctx, "append events to", func(tx *transaction) error {
		return tx.append(ctx, "", 0, drafts...)
	})
}

const insertEvent = `INSERT INTO events (at_ms, type, run_id, attempt, data) VALUES (?, ?, nullif(?, ''), ?, ?)`

// append adds events to the record, in the transaction of the change that they describe.
func (tx *transaction) append(ctx context.Context, run agency.RunID, attempt int, drafts ...agency.EventDraft) error {
	for _, n := range drafts {
		data := []byte("{}")
		if n.Data != nil {
			var err error
			if data, err = json.Marshal(n.Data); err != nil {
				return fmt.Errorf("encode event %s: %w", n.Type, err)
			}
			if data[0] != '{' {
				return fmt.Errorf("encode event %s: its data is not an object", n.Type)
			}
		}
		_, err := tx.exec(ctx, tx.db.writerInsertEvent, tx.now.UnixMilli(), string(n.Type), string(run), attempt, string(data))
		if err != nil {
			return err
		}
		tx.appended = true
		tx.sessions = tx.sessions || n.Type.OfSession()
	}
	return nil
}

// Events returns the events after the sequence number since, in order: of one run, or of everything
// when run is empty. A limit of 0 is none.
func (s *database) Events(ctx context.Context, since int64, run agency.RunID, limit int) ([]agency.Event, error) {
	query, args := `SELECT e.seq, e.at_ms, e.type, coalesce(e.run_id, ''), coalesce(nullif(r.name, ''), r.handle, ''), e.attempt, e.data
		FROM events e LEFT JOIN runs r ON r.id = e.run_id WHERE e.seq > ?`, []any{since}
	if run != "" {
		query += ` AND e.run_id = ?`
		args = append(args, string(run))
	}
	rows, err := s.readers.QueryContext(ctx, query+` ORDER BY e.seq LIMIT ?`, append(args, atMost(limit))...)
	if err != nil {
		return nil, problem("read events from", s.path, err)
	}
	events, err := collect(rows, func(row scanner) (agency.Event, error) {
		var e agency.Event
		var at int64
		var data []byte
		err := row.Scan(&e.Seq, &at, &e.Type, &e.RunID, &e.Run, &e.Attempt, &data)
		e.At, e.Data = fromMillis(at), data
		return e, err
	})
	return events, problem("read events from", s.path, err)
}

// LastSeq returns the sequence number of the newest event, 0 when there is none.
func (s *database) LastSeq(ctx context.Context) (int64, error) {
	var seq int64
	row, err := s.queryRow(ctx, `SELECT coalesce(max(seq), 0) FROM events`)
	if err == nil {
		err = row.Scan(&seq)
	}
	return seq, problem("read events from", s.path, err)
}

// Changed is closed at the next commit that appends an event; call it again for the one after. A
// caller that takes the channel before reading never misses an event.
func (s *database) Changed() <-chan struct{} { return s.changed.next() }

// SessionsChanged is Changed for the events of sessions alone.
func (s *database) SessionsChanged() <-chan struct{} { return s.sessionsChanged.next() }
