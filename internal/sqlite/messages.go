package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"agency"
)

// SendMessage writes a message for its recipients together with its event, and sets Seq, CreatedAt
// and, if no recipient is left, Dead. A message with a known id is not written again. The message
// that it answers is named by its id, or the end of its id, and must have reached the sender;
// otherwise the error is E_MESSAGE_NOT_FOUND. A message without recipients is a dead letter with
// the reason dead; a message to a run that was removed meanwhile is a dead letter too. The error is
// E_LIMIT after too many messages of a sender in the last minute, or with too many waiting for a
// recipient.
func (s *messages) SendMessage(ctx context.Context, m *agency.Message, recipients []string, dead string) error {
	return s.db.write(ctx, "send message in", func(tx *transaction) error {
		var known int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM messages WHERE id = ?`, m.ID).Scan(&known); err != nil || known > 0 {
			return err
		}
		if err := tx.checkLimits(ctx, m, recipients); err != nil {
			return err
		}
		if m.ReplyTo != "" {
			answered, err := tx.inboxID(ctx, m.From, m.ReplyTo)
			if err != nil {
				return err
			}
			m.ReplyTo = answered
		}
		target, err := json.Marshal(m.To)
		if err != nil {
			return err
		}
		m.CreatedAt = tx.now
		result, err := tx.ExecContext(ctx, `INSERT INTO messages (id, type, sender, target, payload, created_at_ms, reply_to) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			m.ID, m.Type, m.From, string(target), string(m.Payload), tx.now.UnixMilli(), m.ReplyTo)
		if err != nil {
			return err
		}
		if m.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		if m.Dead, err = tx.deliver(ctx, m, recipients, dead); err != nil {
			return err
		}
		if m.Seq%sweepEvery == 0 {
			if err := tx.forgetMessages(ctx); err != nil {
				return err
			}
		}
		if len(recipients) == 0 {
			recipients = []string{""}
		}
		return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.MessageSent, Data: map[string]any{
			"message": m.ID, "msg_type": m.Type, "from": m.From, "recipients": recipients, "dead": m.Dead,
		}})
	})
}

// deliver puts a message into the inboxes of its recipients. It returns why the message reaches
// none of them, or ""; without recipients the reason is dead.
func (tx *transaction) deliver(ctx context.Context, m *agency.Message, recipients []string, dead string) (string, error) {
	const insert = `INSERT INTO deliveries (message, recipient, dead) VALUES (?, ?, ?)`
	if len(recipients) == 0 {
		_, err := tx.ExecContext(ctx, insert, m.Seq, "", dead)
		return dead, err
	}
	reached, dead := false, ""
	for _, r := range recipients {
		gone, err := tx.removedRun(ctx, r)
		if err != nil {
			return "", err
		}
		if m.Type == agency.StatusUpdate && gone == "" {
			if err := tx.supersede(ctx, m, r); err != nil {
				return "", err
			}
		}
		if _, err := tx.ExecContext(ctx, insert, m.Seq, r, gone); err != nil {
			return "", err
		}
		reached, dead = reached || gone == "", gone
	}
	if reached {
		return "", nil
	}
	return dead, nil
}

// removedRun returns why a recipient gets no more messages, namely that its run was removed; "" for
// all others.
func (tx *transaction) removedRun(ctx context.Context, recipient string) (string, error) {
	var r agency.Run
	err := tx.QueryRowContext(ctx, `SELECT name, handle FROM runs WHERE id = ? AND removed_at_ms IS NOT NULL`, recipient).Scan(text(&r.Name), text(&r.Handle))
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return wasRemoved(&r), err
}

// wasRemoved returns the reason for dead letters to a removed run.
func wasRemoved(r *agency.Run) string { return r.Ref() + " was removed" }

// sweepEvery is the number of messages between two deletions of old ones.
const sweepEvery = 100

// forgetMessages deletes messages past their keeping time, except those that still wait for a
// recipient. The newest message stays, so no number is used twice.
func (tx *transaction) forgetMessages(ctx context.Context) error {
	// Messages are numbered in the order of their times, so the search ends at the first recent
	// one.
	const old = `SELECT seq FROM messages WHERE seq < (SELECT seq FROM messages WHERE created_at_ms >= ? ORDER BY seq LIMIT 1)`
	before := tx.now.Add(-agency.MessageAge).UnixMilli()
	_, err := tx.ExecContext(ctx, `DELETE FROM deliveries WHERE (acked_at_ms IS NOT NULL OR dead <> '') AND message IN (`+old+`)`, before)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM messages WHERE seq IN (`+old+`) AND NOT EXISTS (SELECT 1 FROM deliveries WHERE message = seq)`, before)
	return err
}

// supersede deletes a sender's earlier messages about itself: only the newest matters, and an
// unread inbox must not fill up with them.
func (tx *transaction) supersede(ctx context.Context, m *agency.Message, recipient string) error {
	_, err := tx.ExecContext(ctx, `UPDATE deliveries SET dead = 'a newer one came' WHERE recipient = ? AND acked_at_ms IS NULL AND dead = ''
		AND message IN (SELECT seq FROM messages WHERE sender = ? AND type = ?)`, recipient, m.From, m.Type)
	return err
}

func (tx *transaction) checkLimits(ctx context.Context, m *agency.Message, recipients []string) error {
	if m.From == agency.Daemon {
		return nil
	}
	var sent int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM messages WHERE sender = ? AND created_at_ms > ?`,
		m.From, tx.now.Add(-time.Minute).UnixMilli()).Scan(&sent)
	if err != nil {
		return err
	}
	if sent >= agency.MessageRate && m.From != agency.User {
		return agency.Errorf(agency.CodeLimit, "a run may send at most %d messages in a minute", agency.MessageRate).
			WithHint("put more into one message, and wait for an answer")
	}
	if !agency.IsReport(m.Type) {
		if err := tx.checkTree(ctx, m.From, recipients); err != nil {
			return err
		}
	}
	for _, r := range recipients {
		var waiting int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM deliveries WHERE recipient = ? AND acked_at_ms IS NULL AND dead = ''`, r).Scan(&waiting)
		if err != nil {
			return err
		}
		if waiting >= agency.InboxLimit {
			return agency.Errorf(agency.CodeLimit, "%d messages wait for %s already", waiting, r).WithHint("agency messages ls --to %s", r)
		}
	}
	return nil
}

// checkTree refuses a message of a run in a sandbox when too many wait of it and its relatives: the
// runs that were started, directly or not, by the topmost of them that is in a sandbox.
func (tx *transaction) checkTree(ctx context.Context, from string, recipients []string) error {
	top := ""
	for id := from; id != ""; {
		var owner, level string
		err := tx.QueryRowContext(ctx, `SELECT owner, sandbox FROM runs WHERE id = ?`, id).Scan(&owner, &level)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !agency.SandboxLevel(level).Confines() {
			break
		}
		if err != nil {
			return err
		}
		top, id = id, owner
	}
	if top == "" {
		return nil
	}
	for _, r := range recipients {
		var waiting int
		err := tx.QueryRowContext(ctx, `WITH RECURSIVE tree(id) AS (SELECT ? UNION SELECT runs.id FROM runs JOIN tree ON runs.owner = tree.id)
			SELECT count(*) FROM deliveries d JOIN messages m ON m.seq = d.message
			WHERE d.recipient = ? AND d.acked_at_ms IS NULL AND d.dead = '' AND m.sender IN tree`, top, r).Scan(&waiting)
		if err != nil {
			return err
		}
		if waiting >= agency.TreeLimit {
			return agency.Errorf(agency.CodeLimit, "%d messages of this run and its relatives wait for %s already", waiting, r).
				WithHint("wait until they are acknowledged")
		}
	}
	return nil
}

// Messages returns the messages that match a filter, one for each recipient, oldest first.
func (s *messages) Messages(ctx context.Context, f agency.MessageFilter) ([]agency.Message, error) {
	query, args := `SELECT m.seq, m.id, m.type, m.sender, m.target, m.payload, m.created_at_ms, m.reply_to, d.recipient,
		d.delivered_at_ms, d.acked_at_ms, d.dead FROM deliveries d JOIN messages m ON m.seq = d.message WHERE 1`, []any{}
	if f.Recipient != "" {
		query += ` AND d.recipient = ?`
		args = append(args, f.Recipient)
	}
	if f.Waiting {
		query += ` AND d.acked_at_ms IS NULL AND d.dead = ''`
	}
	if !f.Since.IsZero() {
		query += ` AND m.created_at_ms >= ?`
		args = append(args, f.Since.UnixMilli())
	}
	rows, err := s.db.readers.QueryContext(ctx, query+` ORDER BY d.message, d.recipient LIMIT ?`, append(args, atMost(f.Limit))...)
	if err != nil {
		return nil, problem("read messages from", s.db.path, err)
	}
	messages, err := collect(rows, func(row scanner) (agency.Message, error) {
		var m agency.Message
		var target, payload string
		err := row.Scan(whole(&m.Seq), text(&m.ID), text(&m.Type), text(&m.From), text(&target), text(&payload), moment(&m.CreatedAt),
			text(&m.ReplyTo), text(&m.Recipient), optionalMoment(&m.DeliveredAt), optionalMoment(&m.AckedAt), text(&m.Dead))
		if err == nil {
			err = json.Unmarshal([]byte(target), &m.To)
		}
		m.Payload = json.RawMessage(payload)
		return m, err
	})
	return messages, problem("read messages from", s.db.path, err)
}

// DeliverMessages records when a recipient first got messages.
func (s *messages) DeliverMessages(ctx context.Context, recipient string, seqs []int64) error {
	return s.changeDeliveries(ctx, "deliver messages in", `UPDATE deliveries SET delivered_at_ms = ?
		WHERE recipient = ? AND delivered_at_ms IS NULL AND message IN (SELECT value FROM json_each(?))`, recipient, seqs)
}

// AckMessages records that a recipient has handled messages; they are not delivered again. Each
// message is named by its id or the end of its id, which means a waiting message rather than an
// acknowledged one. A message that is already acknowledged stays unchanged. If any of them never
// reached the recipient, the error is E_MESSAGE_NOT_FOUND and none is acknowledged. It returns how
// many were newly acknowledged.
func (s *messages) AckMessages(ctx context.Context, recipient string, ids []string) (acked int, err error) {
	err = s.db.write(ctx, "acknowledge messages in", func(tx *transaction) error {
		whole := make([]string, 0, len(ids))
		for _, id := range ids {
			found, err := tx.inboxID(ctx, recipient, id)
			if err != nil {
				return err
			}
			whole = append(whole, found)
		}
		list, err := list(whole)
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `UPDATE deliveries SET acked_at_ms = ?, delivered_at_ms = coalesce(delivered_at_ms, ?)
			WHERE recipient = ? AND acked_at_ms IS NULL AND dead = '' AND message IN
			(SELECT seq FROM messages WHERE id IN (SELECT value FROM json_each(?)))`,
			tx.now.UnixMilli(), tx.now.UnixMilli(), recipient, list)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if acked = int(n); err != nil || n == 0 {
			return err
		}
		return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.MessageAcked, Data: map[string]any{"messages": whole, "by": recipient}})
	})
	return acked, err
}

// These return the ids of a recipient's messages: by id; by the end of the id among those that
// wait; and by the end of the id among all.
const (
	inboxOf      = `SELECT m.id FROM deliveries d JOIN messages m ON m.seq = d.message WHERE d.recipient = ? AND `
	inboxEnd     = `substr(m.id, -length(?)) = ? LIMIT 2`
	inboxByID    = inboxOf + `m.id = ?`
	inboxWaiting = inboxOf + `d.acked_at_ms IS NULL AND d.dead = '' AND ` + inboxEnd
	inboxByEnd   = inboxOf + inboxEnd
)

// inboxID returns the whole id of a recipient's message. It looks for the whole id by its index
// first, then for the end among waiting messages, and only then among all messages, which takes
// long and blocks the writer.
func (tx *transaction) inboxID(ctx context.Context, recipient, id string) (string, error) {
	found, err := tx.messageIDs(ctx, inboxByID, recipient, id)
	if err == nil && len(found) == 0 && len(id) >= agency.MessageIDEnd {
		found, err = tx.messageIDs(ctx, inboxWaiting, recipient, id, id)
		if err == nil && len(found) == 0 {
			found, err = tx.messageIDs(ctx, inboxByEnd, recipient, id, id)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", agency.Errorf(agency.CodeMessageNotFound, "there is no message %q in this inbox", id).WithHint("agency messages poll")
	case len(found) > 1:
		return "", agency.Errorf(agency.CodeUsage, "the ids of several messages end with %q", id).WithHint("the whole ids: agency messages poll --json")
	}
	return found[0], nil
}

func (tx *transaction) messageIDs(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(row scanner) (string, error) {
		var id string
		err := row.Scan(text(&id))
		return id, err
	})
}

// clearInbox acknowledges the messages to the user that a condition chooses, because their subject
// is over. The inboxes of runs keep theirs: an agent may not have read them.
func (tx *transaction) clearInbox(ctx context.Context, which string, args ...any) error {
	_, err := tx.ExecContext(ctx, `UPDATE deliveries SET acked_at_ms = ?, delivered_at_ms = coalesce(delivered_at_ms, ?)
		WHERE recipient = ? AND acked_at_ms IS NULL AND dead = '' AND message IN (SELECT seq FROM messages WHERE `+which+`)`,
		append([]any{tx.now.UnixMilli(), tx.now.UnixMilli(), agency.User}, args...)...)
	return err
}

// buryMessages turns the messages that wait for a removed recipient into dead letters.
func (tx *transaction) buryMessages(ctx context.Context, recipient, reason string) error {
	_, err := tx.ExecContext(ctx, `UPDATE deliveries SET dead = ? WHERE recipient = ? AND acked_at_ms IS NULL AND dead = ''`, reason, recipient)
	return err
}

func (s *messages) changeDeliveries(ctx context.Context, what, query, recipient string, seqs []int64) error {
	list, err := json.Marshal(seqs)
	if err != nil {
		return err
	}
	return s.db.write(ctx, what, func(tx *transaction) error {
		_, err := tx.ExecContext(ctx, query, tx.now.UnixMilli(), recipient, string(list))
		return err
	})
}
