package sqlite

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"agency"
)

const dispatchColumns = `notice, channel, tries, due_at_ms, sent_at_ms, failed_at_ms, error, dead_at_ms`

const selectDispatches = `SELECT ` + dispatchColumns + ` FROM outbox WHERE `

// waiting matches dispatches that are neither sent nor dead.
const waiting = `sent_at_ms IS NULL AND dead_at_ms IS NULL`

func scanDispatch(row scanner) (agency.Dispatch, error) {
	var d agency.Dispatch
	var notice string
	err := row.Scan(text(&notice), text(&d.Channel), whole(&d.Tries), moment(&d.DueAt), optionalMoment(&d.SentAt),
		optionalMoment(&d.FailedAt), text(&d.Error), optionalMoment(&d.DeadAt))
	if err == nil {
		err = json.Unmarshal([]byte(notice), &d.Notice)
	}
	return d, err
}

// dispatches returns those that match a condition, followed by an order.
func (s *messages) dispatches(ctx context.Context, condition string, args ...any) ([]agency.Dispatch, error) {
	rows, err := s.db.readers.QueryContext(ctx, selectDispatches+condition, args...)
	if err != nil {
		return nil, problem("read outbox of", s.db.path, err)
	}
	found, err := collect(rows, scanDispatch)
	return found, problem("read outbox of", s.db.path, err)
}

// AddDispatches writes a notice for each of the channels, first due at the given time. A channel's
// existing dispatch of the same notice stays as it is. An alert is repeated by notices with its id,
// a dash and a number: the new one replaces those delayed beyond that time, so that the user does
// not get them all at the end of the night.
func (s *messages) AddDispatches(ctx context.Context, n *agency.Notice, channels []string, due time.Time) error {
	notice, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return s.db.write(ctx, "write outbox of", func(tx *transaction) error {
		for _, channel := range channels {
			if alert := strings.LastIndexByte(n.ID, '-'); alert >= 0 {
				_, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE channel = ? AND `+waiting+` AND due_at_ms > ? AND notice_id GLOB ? AND notice_id <> ?`,
					channel, due.UnixMilli(), n.ID[:alert]+"-*", n.ID)
				if err != nil {
					return err
				}
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO outbox (notice_id, channel, notice, tries, due_at_ms, error) VALUES (?, ?, ?, 0, ?, '')
				ON CONFLICT (notice_id, channel) DO NOTHING`, n.ID, channel, string(notice), due.UnixMilli())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// NextDispatch returns a channel's next dispatch; nil when none waits. It considers those that are
// due by now, and those that are postponed beyond latest, which count as due. The one with the
// fewest tries comes first, so that one that never succeeds delays no other's first try.
func (s *messages) NextDispatch(ctx context.Context, channel string, now, latest time.Time) (*agency.Dispatch, error) {
	found, err := s.dispatches(ctx, `channel = ? AND `+waiting+` ORDER BY max(iif(due_at_ms > ?, 0, due_at_ms), ?), tries, seq LIMIT 1`,
		channel, latest.UnixMilli(), now.UnixMilli())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// RecordDispatch writes the state of a dispatch, with the event notice.sent or notice.dead when
// that settles it. A settled dispatch stays as it is.
func (s *messages) RecordDispatch(ctx context.Context, d *agency.Dispatch) error {
	return s.db.write(ctx, "write outbox of", func(tx *transaction) error {
		result, err := tx.ExecContext(ctx, `UPDATE outbox SET tries = ?, due_at_ms = ?, sent_at_ms = ?, failed_at_ms = ?, error = ?, dead_at_ms = ?
			WHERE notice_id = ? AND channel = ? AND `+waiting, d.Tries, d.DueAt.UnixMilli(), millis(d.SentAt), millis(d.FailedAt), d.Error,
			millis(d.DeadAt), d.Notice.ID, d.Channel)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil || n == 0 || !d.Settled() {
			return err
		}
		return tx.settled(ctx, d)
	})
}

// settled appends the event of a dispatch to which nothing more will happen.
func (tx *transaction) settled(ctx context.Context, d *agency.Dispatch) error {
	data := map[string]any{"notice": d.Notice.ID, "msg_type": d.Notice.Kind, "channel": d.Channel, "tries": d.Tries}
	event := agency.NoticeSent
	if d.DeadAt != nil {
		event, data["error"] = agency.NoticeDead, d.Error
	}
	return tx.append(ctx, "", 0, agency.EventDraft{Type: event, Data: data})
}

// TidyOutbox gives up dispatches for channels that are not among those given, and deletes those
// settled before a time.
func (s *messages) TidyOutbox(ctx context.Context, channels []string, now, before time.Time) error {
	kept, err := list(channels)
	if err != nil {
		return err
	}
	return s.db.write(ctx, "write outbox of", func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE coalesce(sent_at_ms, dead_at_ms) < ?`, before.UnixMilli())
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `UPDATE outbox SET dead_at_ms = ?, failed_at_ms = ?, error = 'the channel is no longer configured'
			WHERE `+waiting+` AND channel NOT IN (SELECT value FROM json_each(?)) RETURNING `+dispatchColumns, now.UnixMilli(), now.UnixMilli(), kept)
		if err != nil {
			return err
		}
		buried, err := collect(rows, scanDispatch)
		if err != nil {
			return err
		}
		for i := range buried {
			if err := tx.settled(ctx, &buried[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReleaseDispatches moves dispatches that are due after now to the time that due returns, if that
// is earlier.
func (s *messages) ReleaseDispatches(ctx context.Context, now time.Time, due func(d *agency.Dispatch) time.Time) error {
	return s.db.write(ctx, "write outbox of", func(tx *transaction) error {
		rows, err := tx.QueryContext(ctx, selectDispatches+waiting+` AND due_at_ms > ?`, now.UnixMilli())
		if err != nil {
			return err
		}
		later, err := collect(rows, scanDispatch)
		if err != nil {
			return err
		}
		for i := range later {
			d := &later[i]
			at := due(d)
			if !at.Before(d.DueAt) {
				continue
			}
			_, err := tx.ExecContext(ctx, `UPDATE outbox SET due_at_ms = ? WHERE notice_id = ? AND channel = ?`, at.UnixMilli(), d.Notice.ID, d.Channel)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Dispatches returns the dispatches of one notice, by channel.
func (s *messages) Dispatches(ctx context.Context, noticeID string) ([]agency.Dispatch, error) {
	return s.dispatches(ctx, `notice_id = ? ORDER BY channel`, noticeID)
}

// DeadDispatches returns the newest dispatches that were given up, newest first.
func (s *messages) DeadDispatches(ctx context.Context, limit int) ([]agency.Dispatch, error) {
	return s.dispatches(ctx, `dead_at_ms IS NOT NULL ORDER BY dead_at_ms DESC, seq DESC LIMIT ?`, atMost(limit))
}

// ChannelStates returns the state of every channel that ever had a dispatch, by name.
func (s *messages) ChannelStates(ctx context.Context) ([]agency.ChannelState, error) {
	rows, err := s.db.readers.QueryContext(ctx, `SELECT channel, count(*) FILTER (WHERE `+waiting+`), count(dead_at_ms),
		min(due_at_ms) FILTER (WHERE `+waiting+`), max(sent_at_ms), max(failed_at_ms), coalesce((SELECT error FROM outbox o
		WHERE o.channel = outbox.channel AND failed_at_ms IS NOT NULL ORDER BY failed_at_ms DESC, seq DESC LIMIT 1), '')
		FROM outbox GROUP BY channel ORDER BY channel`)
	if err != nil {
		return nil, problem("read outbox of", s.db.path, err)
	}
	states, err := collect(rows, func(row scanner) (agency.ChannelState, error) {
		var c agency.ChannelState
		err := row.Scan(text(&c.Channel), whole(&c.Waiting), whole(&c.Dead), optionalMoment(&c.DueAt), optionalMoment(&c.SentAt),
			optionalMoment(&c.FailedAt), text(&c.Error))
		return c, err
	})
	return states, problem("read outbox of", s.db.path, err)
}
