package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"agency/internal/trace"
)

// transaction is one turn of the writer. It has one "now", taken when its turn began.
type transaction struct {
	*sql.Tx
	db       *database
	now      time.Time // whole milliseconds, as they are stored
	appended bool
	sessions bool // an event of a session was appended
	// committed, if not nil, is called when the transaction is durable, before any reader learns of
	// it.
	committed func()
}

// write runs do in one immediate transaction: everything that it writes is durable when write
// returns nil, and nothing is kept otherwise. doing names the work in errors.
func (s *database) write(ctx context.Context, doing string, do func(tx *transaction) error) error {
	end := trace.Begin(ctx, "record:", doing)
	tx, err := s.transact(ctx, do)
	end()
	if ctx.Err() != nil && interrupted(err) {
		return ctx.Err()
	}
	if err == nil && tx.committed != nil {
		tx.committed()
	}
	if err == nil && tx.appended {
		s.changed.send()
	}
	if err == nil && tx.sessions {
		s.sessionsChanged.send()
	}
	return problem(doing, s.path, err)
}

func (s *database) transact(ctx context.Context, do func(tx *transaction) error) (*transaction, error) {
	sqlTx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sqlTx.Rollback() }()
	tx := &transaction{db: s, Tx: sqlTx, now: fromMillis(s.now().UnixMilli())}
	if err := do(tx); err != nil {
		return nil, err
	}
	if err := s.guard(); err != nil {
		return nil, err
	}
	s.commits.Add(1)
	defer s.commits.Add(1)
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return tx, nil
}

// Guard has check called before each commit from now on. When it fails nothing is written.
func (s *database) Guard(check func() error) { s.guard = check }

// broadcast hands out channels that close at the next send. Its zero value is ready.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// exec runs a statement of the writer that was prepared before.
func (tx *transaction) exec(ctx context.Context, prepared *sql.Stmt, args ...any) (sql.Result, error) {
	stmt := tx.StmtContext(ctx, prepared)
	defer func() { _ = stmt.Close() }()
	return stmt.ExecContext(ctx, args...)
}
