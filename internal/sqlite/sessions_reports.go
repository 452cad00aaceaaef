package sqlite

import (
	"context"
	"errors"
	"sync"

	"agency"
)

// UpdateAgents applies the reports of external executors, each with its event session.agent, and
// returns one error for each, in order. Calls that arrive during a transaction share the next one,
// because the disk is what takes time. A refused report does not affect the others, and a report
// without an error is durable. The end of the last agent settles the session. The context only
// matters until the transaction begins.
func (s *sessions) UpdateAgents(ctx context.Context, reports []agency.AgentReport) []error {
	b := &batch{reports: reports, errs: make([]error, len(reports)), turn: make(chan struct{}, 1), done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		b.fail(err)
		return b.errs
	}
	s.db.batches.join(b)
	select {
	case <-b.turn:
		s.carryOut(context.WithoutCancel(ctx))
	case <-b.done:
	}
	return b.errs
}

// batch holds the reports of one call.
type batch struct {
	reports []agency.AgentReport
	errs    []error
	turn    chan struct{} // this caller is to write everything that waits
	done    chan struct{} // closed when the reports are written
}

func (b *batch) fail(err error) {
	for i := range b.errs {
		if b.errs[i] == nil {
			b.errs[i] = err
		}
	}
}

// batches are the batches that wait for a transaction. The zero value is ready to use.
type batches struct {
	mu      sync.Mutex
	waiting []*batch
	busy    bool // one of the callers writes, or is about to
}

func (q *batches) join(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, b)
	if !q.busy {
		q.busy = true
		b.turn <- struct{}{}
	}
}

func (q *batches) take() []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.waiting
	q.waiting = nil
	return taken
}

// pass gives the turn to a caller that came meanwhile, so that no caller works for others forever.
func (q *batches) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy = len(q.waiting) > 0; q.busy {
		q.waiting[0].turn <- struct{}{}
	}
}

var errNotCarriedOut = errors.New("the report was not carried out")

// carryOut writes all waiting reports in one transaction. Every waiting caller gets its result,
// even after a failure.
func (s *sessions) carryOut(ctx context.Context) {
	taken, err := s.db.batches.take(), errNotCarriedOut
	defer func() {
		for _, b := range taken {
			if err != nil {
				b.fail(err)
			}
			close(b.done)
		}
		s.db.batches.pass()
	}()
	err = s.db.write(ctx, "change session in", func(tx *transaction) error {
		open := map[agency.SessionID]*changing{}
		for _, b := range taken {
			for i := range b.reports {
				if err := tx.report(ctx, open, &b.reports[i]); refused(err) {
					b.errs[i] = err
				} else if err != nil {
					return err
				}
			}
		}
		for _, c := range open {
			if err := c.save(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// refused reports whether the error is about a report, not about the database.
func refused(err error) bool {
	var known *agency.Error
	return errors.As(err, &known)
}

// report applies one report in memory, to a session that is already open or is opened for it, and
// writes its event.
func (tx *transaction) report(ctx context.Context, open map[agency.SessionID]*changing, r *agency.AgentReport) error {
	c := open[r.Session]
	if c == nil {
		var err error
		if c, err = tx.openSession(ctx, r.Session); err != nil {
			return err
		}
		open[r.Session] = c
	}
	before, err := c.agent(ctx, r.Agent)
	if err != nil {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	session, after := c.session, before
	if err := r.Apply(&session, &after, tx.now); err != nil {
		return agency.AsError(err)
	}
	if err := c.set(&before, &after, true); err != nil {
		return err
	}
	drafts := []agency.EventDraft{after.EventDraft()}
	if c.session.Settle(tx.now) {
		drafts = append(drafts, c.session.EventDraft(agency.SessionSettled))
	}
	return tx.append(ctx, "", 0, drafts...)
}
