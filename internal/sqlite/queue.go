package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"agency"
)

// selectQueue reads entries with the names of their runs.
const selectQueue = `SELECT q.seq, q.run_id, coalesce(nullif(r.name, ''), r.handle), q.repo, q.target, q.source, q.state, q.reason, q.rounds, q.asked, q.held_for, q.approved, q.added_by,
	q.instead_of, q.landing, q.added_at_ms, q.changed_at_ms FROM queue_entries q JOIN runs r ON r.id = q.run_id WHERE `

// openEntry chooses the entries that have not left their queue.
const openEntry = `state NOT IN ('landed', 'failed', 'dropped')`

func scanQueueEntry(row scanner) (agency.QueueEntry, error) {
	var e agency.QueueEntry
	err := row.Scan(whole(&e.Seq), text(&e.RunID), text(&e.Run), text(&e.Repo), text(&e.Target), text(&e.Source), text(&e.State), text(&e.Reason), whole(&e.Rounds),
		text(&e.Asked), text(&e.HeldFor), text(&e.Approved), text(&e.By), text(&e.InsteadOf), text(&e.Landing), moment(&e.AddedAt), moment(&e.ChangedAt))
	return e, err
}

// AddQueueEntry writes a new entry at the end of its queue, with the event, and fills in its Seq
// and times. A run that is in the queue already is E_INVALID_STATE.
func (s *queues) AddQueueEntry(ctx context.Context, e *agency.QueueEntry) error {
	added := *e
	s.db.queued.Store(true)
	err := s.db.write(ctx, "add to a queue in", func(tx *transaction) error {
		var there int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM queue_entries WHERE repo = ? AND target = ? AND run_id = ? AND `+openEntry,
			e.Repo, e.Target, string(e.RunID)).Scan(&there)
		if err != nil {
			return err
		}
		if there > 0 {
			return agency.Errorf(agency.CodeInvalidState, "the run is in the queue of %q already", e.Target).WithHint("agency queue explain %s", e.RunID)
		}
		added.AddedAt, added.ChangedAt = tx.now, tx.now
		result, err := tx.ExecContext(ctx, `INSERT INTO queue_entries (run_id, repo, target, source, state, reason, rounds, approved, added_by, instead_of, landing, added_at_ms, changed_at_ms)
			VALUES (`+marks(13)+`)`, string(e.RunID), e.Repo, e.Target, e.Source, string(e.State), e.Reason, e.Rounds, e.Approved, e.By, string(e.InsteadOf), string(e.Landing),
			tx.now.UnixMilli(), tx.now.UnixMilli())
		if err != nil {
			return err
		}
		if added.Seq, err = result.LastInsertId(); err != nil {
			return err
		}
		return tx.append(ctx, e.RunID, 0, agency.EventDraft{Type: agency.QueueAdded, Data: added})
	})
	if err == nil {
		*e = added
	}
	return err
}

// ChangeQueueEntries lets change edit each of the entries that have not left their queue, and
// writes those that differ, each with the event queue.changed. When change returns false, the entry
// stays as it is. The result is the recorded entries, in order.
func (s *queues) ChangeQueueEntries(ctx context.Context, seqs []int64, change func(e *agency.QueueEntry) bool) ([]agency.QueueEntry, error) {
	var all []agency.QueueEntry
	err := s.db.write(ctx, "change a queue in", func(tx *transaction) error {
		all = make([]agency.QueueEntry, 0, len(seqs))
		for _, seq := range seqs {
			was, err := scanQueueEntry(tx.QueryRowContext(ctx, selectQueue+`q.seq = ?`, seq))
			if err != nil {
				return err
			}
			e := was
			if !change(&e) || e == was {
				all = append(all, was)
				continue
			}
			e.ChangedAt = tx.now
			_, err = tx.ExecContext(ctx, `UPDATE queue_entries SET source = ?, state = ?, reason = ?, rounds = ?, asked = ?, held_for = ?, approved = ?, landing = ?, changed_at_ms = ? WHERE seq = ?`,
				e.Source, string(e.State), e.Reason, e.Rounds, string(e.Asked), string(e.HeldFor), e.Approved, string(e.Landing), tx.now.UnixMilli(), seq)
			if err == nil {
				err = tx.append(ctx, e.RunID, 0, agency.EventDraft{Type: agency.QueueChanged, Data: e})
			}
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// QueueEntries returns entries in the order of their queues.
func (s *queues) QueueEntries(ctx context.Context, f agency.QueueFilter) ([]agency.QueueEntry, error) {
	if !s.db.queued.Load() { // the watchdog asks each time that it checks a run
		return []agency.QueueEntry{}, nil
	}
	where, args := []string{"true"}, []any{}
	for _, c := range []struct{ column, value string }{{"q.repo", f.Repo}, {"q.target", f.Target}, {"q.run_id", string(f.Run)}} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if f.Open {
		where = append(where, openEntry)
	}
	rows, err := s.db.query(ctx, selectQueue+strings.Join(where, " AND ")+` ORDER BY q.seq`, args...)
	if err != nil {
		return nil, problem("read queues from", s.db.path, err)
	}
	all, err := collect(rows, scanQueueEntry)
	return all, problem("read queues from", s.db.path, err)
}

// SessionQueue returns the entries of the runs of a session and of those that continue their
// work, the oldest first.
func (s *queues) SessionQueue(ctx context.Context, id agency.SessionID) ([]agency.QueueEntry, error) {
	rows, err := s.db.query(ctx, selectQueue+`q.`+ofSession+` ORDER BY q.seq`, string(id))
	if err != nil {
		return nil, problem("read queues from", s.db.path, err)
	}
	all, err := collect(rows, scanQueueEntry)
	return all, problem("read queues from", s.db.path, err)
}

// OpenQueues returns the queues that have entries.
func (s *queues) OpenQueues(ctx context.Context) ([]agency.QueueRef, error) {
	rows, err := s.db.query(ctx, `SELECT DISTINCT repo, target FROM queue_entries WHERE `+openEntry)
	if err != nil {
		return nil, problem("read queues from", s.db.path, err)
	}
	all, err := collect(rows, func(row scanner) (agency.QueueRef, error) {
		var q agency.QueueRef
		err := row.Scan(text(&q.Repo), text(&q.Target))
		return q, err
	})
	return all, problem("read queues from", s.db.path, err)
}

// Queue returns the record of one queue; one that was never changed is neither paused nor noted.
func (s *queues) Queue(ctx context.Context, ref agency.QueueRef) (*agency.Queue, error) {
	q, err := readQueue(s.db.readers.QueryRowContext(ctx, `SELECT paused, note FROM queues WHERE repo = ? AND target = ?`, ref.Repo, ref.Target), ref)
	return q, problem("read queues from", s.db.path, err)
}

func readQueue(row scanner, ref agency.QueueRef) (*agency.Queue, error) {
	q := &agency.Queue{Repo: ref.Repo, Target: ref.Target}
	err := row.Scan(flag(&q.Paused), text(&q.Note))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return q, err
}

// ChangeQueue lets change edit the record of one queue, and writes it with the event when it
// differs.
func (s *queues) ChangeQueue(ctx context.Context, ref agency.QueueRef, change func(q *agency.Queue)) error {
	return s.db.write(ctx, "change a queue in", func(tx *transaction) error {
		was, err := readQueue(tx.QueryRowContext(ctx, `SELECT paused, note FROM queues WHERE repo = ? AND target = ?`, ref.Repo, ref.Target), ref)
		if err != nil {
			return err
		}
		q := *was
		if change(&q); q == *was {
			return nil
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO queues (repo, target, paused, note) VALUES (?, ?, ?, ?)
			ON CONFLICT (repo, target) DO UPDATE SET paused = excluded.paused, note = excluded.note`, q.Repo, q.Target, q.Paused, q.Note)
		if err != nil {
			return err
		}
		return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.QueueNoted, Data: q})
	})
}
