// Package sqlite is the store: the durable record of repositories, runs, attempts, steps and events
// in one SQLite file.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agency"
)

// Store is the record. What a method has written when it returns survives a crash of the process
// and of the machine. All methods may be called from several goroutines; writers take turns,
// readers never wait. Its methods are those of its parts.
type Store struct {
	*database
	runs
	sessions
	alerts
	messages
	landings
	checks
	queues
	pushes
}

// The parts of a store: the methods on records of one kind, over the same database.
type (
	runs     struct{ db *database } // runs, their attempts and repositories
	sessions struct{ db *database } // sessions, their agents and results
	alerts   struct{ db *database }
	messages struct{ db *database } // messages, timers, and the outbox of notices
	landings struct{ db *database }
	checks   struct{ db *database } // verdicts of checks
	queues   struct{ db *database } // landing queues and their entries
	pushes   struct{ db *database } // pushes to remotes
)

// database is the file, the connections to it and its transactions.
type database struct {
	path    string
	now     func() time.Time
	guard   func() error // before each commit
	writer  *sql.DB
	readers *sql.DB
	copier  *sql.DB                // one connection that copies the store; open from the beginning, so that it has the files even when they are deleted
	files   map[string]fs.FileInfo // that the connections have, by their paths
	room    sync.Mutex             // guards kept and noRoom: whether the room for the log is reserved, and why not
	kept    bool
	noRoom  error
	// selectRun, prepared for each.
	writerRun, readerRun *sql.Stmt
	writerUpdateRun      *sql.Stmt
	writerUpdateAttempt  *sql.Stmt
	writerInsertEvent    *sql.Stmt
	// selectSession, likewise.
	writerSession, readerSession *sql.Stmt
	writerAgent                  *sql.Stmt
	writerUpdateSession          *sql.Stmt
	writerUpdateAgent            *sql.Stmt

	changed broadcast
	// sessionsChanged likewise, for readers that need only sessions.
	sessionsChanged broadcast
	memory          memory
	lists           lists
	commits         atomic.Uint64 // twice the commits, and one more while one is under way
	statements      statements
	queued          atomic.Bool // a landing queue has, or had, an entry
	unwritten       unwritten
	batches         batches
}

const (
	readerConns = 4
	busyTimeout = 5 * time.Second // how long a locked file is waited for
	// migrateTimeout is how long the update of the schema waits for a locked file: the process that
	// holds it may be copying all of it before the same update.
	migrateTimeout = time.Minute
)

// setting is one pragma and the value that it must have.
type setting struct{ pragma, value string }

// writerSettings returns what the writer's connection is opened with. Opening ignores a misspelt
// setting, so each is read back.
func writerSettings() []setting {
	return []setting{timeout(), {"foreign_keys", "1"}, {"synchronous", "2"}} // 2 is FULL
}

func readerSettings() []setting {
	return []setting{timeout(), {"query_only", "1"}}
}

func timeout() setting {
	return setting{"busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10)}
}

// Open opens the store in the file at path, creates it if missing, and updates its schema; an
// existing file is backed up into BackupFolder before its schema changes. The directory must exist.
// now is the clock of everything that is written. The caller closes the store.
//
// A file that is damaged, foreign or of a newer schema is E_DB_ERROR and stays as it is, byte for
// byte. One that another process keeps locked for five seconds, or for a minute while its schema is to
// be updated, is E_DB_LOCKED; one that may not be written is E_PERMISSION_DENIED.
func Open(ctx context.Context, path string, now func() time.Time) (*Store, error) {
	steps, err := migrations()
	if err != nil {
		return nil, err
	}
	return open(ctx, path, now, schema{steps, newestSchema})
}

func open(ctx context.Context, path string, now func() time.Time, want schema) (_ *Store, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, problem("open", path, err)
	}
	if err := prepareFile(path); err != nil {
		return nil, problem("open", path, err)
	}
	db := &database{
		path: path, now: now, guard: func() error { return nil },
		writer:  pool(dsn(path, "rw", writerSettings()), 1),
		readers: pool(dsn(path, "rw", readerSettings()), readerConns),
		copier:  pool(dsn(path, "rw", []setting{timeout()}), 1),
	}
	if err := db.start(ctx, want); err != nil {
		_ = db.Close()
		return nil, err
	}
	return &Store{db, runs{db}, sessions{db}, alerts{db}, messages{db}, landings{db}, checks{db}, queues{db}, pushes{db}}, nil
}

// start looks before it writes: nothing touches the file until inspect has recognised it as
// agency's own.
func (s *database) start(ctx context.Context, want schema) error {
	if err := s.inspect(ctx, len(want.steps)); err != nil {
		return problem("open", s.path, err)
	}
	// The journal mode belongs to the file, not to the connection, so it is not among the writer's
	// parameters.
	if err := s.useWAL(ctx); err != nil {
		return problem("open", s.path, err)
	}
	if err := checkSettings(ctx, s.writer, s.path, append(writerSettings(), setting{"journal_mode", "wal"})); err != nil {
		return err
	}
	if err := checkSettings(ctx, s.readers, s.path, readerSettings()); err != nil {
		return err
	}
	if err := s.migrate(ctx, want); err != nil {
		return problem("migrate", s.path, err)
	}
	if err := s.prepare(ctx); err != nil {
		return problem("open", s.path, err)
	}
	return problem("open", s.path, s.holdFiles(ctx))
}

func (s *database) prepare(ctx context.Context) (err error) {
	for _, p := range []struct {
		pool  *sql.DB
		query string
		to    **sql.Stmt
	}{
		{s.writer, selectRun, &s.writerRun},
		{s.writer, updateRun, &s.writerUpdateRun},
		{s.writer, updateAttempt, &s.writerUpdateAttempt},
		{s.writer, insertEvent, &s.writerInsertEvent},
		{s.readers, selectRun, &s.readerRun},
		{s.writer, selectSession, &s.writerSession},
		{s.writer, selectAgent, &s.writerAgent},
		{s.writer, updateSession, &s.writerUpdateSession},
		{s.writer, updateAgent, &s.writerUpdateAgent},
		{s.readers, selectSession, &s.readerSession},
	} {
		if *p.to, err = p.pool.PrepareContext(ctx, p.query); err != nil { //nolint:sqlclosecheck // they live as long as the pools, which close them
			return err
		}
	}
	var queued bool
	err = s.readers.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM queue_entries)").Scan(&queued)
	s.queued.Store(queued)
	return err
}

// useWAL waits for a locked file by itself: this one statement ignores the busy timeout, because
// two connections that both want it could wait for each other.
func (s *database) useWAL(ctx context.Context) error {
	return unlocked(ctx, busyTimeout, func() error {
		_, err := s.writer.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
}

// unlocked calls try until it does not find the file locked, until the time is over or until ctx
// ends, and returns its last error.
func unlocked(ctx context.Context, atMost time.Duration, try func() error) error {
	wait, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		err := try()
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-wait.Done():
			return err
		}
	}
}

// Close writes everything back into the one file and closes it. It may be called twice. Calls in
// progress end first or fail.
func (s *database) Close() error {
	// The writer is closed last: the last connection merges the log into the file, which a reader
	// cannot do.
	return problem("close", s.path, errors.Join(s.copier.Close(), s.readers.Close(), s.writer.Close()))
}

// prepareFile makes sure that the file is there, private and regular: SQLite alone would make it
// readable to all, and the files that it puts beside it take over this one's mode. An existing file
// is not opened, because closing it again would drop the locks of every connection that this
// process has to it.
func prepareFile(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return f.Close()
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return agency.Errorf(agency.CodeDBError, "open database %s: not a regular file", path).WithHint("move it away")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(path, 0o600)
	}
	return nil
}

// dsn returns the connection string of a process that has the file to itself: others cannot open
// it, and the index of the log is in memory, where it needs no room on a disk. The path is escaped,
// so that a "?" or "%" in it does not begin a parameter.
func dsn(path, mode string, settings []setting) string {
	return dsnOf(path, url.Values{"mode": {mode}, "vfs": {"unix-excl"}, "_txlock": {"immediate"}}, settings)
}

func dsnOf(path string, query url.Values, settings []setting) string {
	for _, s := range settings {
		query.Add("_pragma", s.pragma+"("+s.value+")")
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return u.String()
}

func pool(dsn string, conns int) *sql.DB {
	db := sql.OpenDB(connector{dsn})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// checkSettings refuses a connection whose settings are not what was asked for.
func checkSettings(ctx context.Context, db *sql.DB, path string, want []setting) error {
	for _, w := range want {
		var got string
		if err := db.QueryRowContext(ctx, "PRAGMA "+w.pragma).Scan(&got); err != nil {
			return problem("open", path, err)
		}
		if got != w.value {
			return agency.Errorf(agency.CodeDBError, "open database %s: %s is %q, not %q", path, w.pragma, got, w.value).
				WithHint("keep the database on a local disk: network file systems lack what it needs")
		}
	}
	return nil
}
