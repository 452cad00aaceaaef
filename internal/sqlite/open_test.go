package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/sqlite"
)

// Every connection has the settings that the store's guarantees need.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create(t, s, newRun(1))
	check := func(db *sql.DB, pragma, want string) {
		t.Helper()
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	check(s.Writer(), "journal_mode", "wal")
	check(s.Writer(), "synchronous", "2")
	check(s.Writer(), "foreign_keys", "1")
	check(s.Writer(), "busy_timeout", "5000")
	check(s.Readers(), "query_only", "1")
	check(s.Readers(), "busy_timeout", "5000")
	if _, err := s.Readers().Exec("DELETE FROM runs"); err == nil {
		t.Error("a reader could write")
	}
}

// SQLite ignores a misspelt parameter silently; reading the settings back finds it.
func TestMisspeltSetting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	openAt(t, path)
	for _, c := range []struct {
		old, new string
		ok       bool
	}{
		{"busy_timeout", "busy_timeout", true},
		{"busy_timeout", "busy_timout", false},
		{"foreign_keys", "foreign_key", false},
		{"synchronous%282%29", "synchronous%281%29", false},
		{"_pragma", "_pragm", false},
	} {
		db, err := sql.Open("sqlite", strings.ReplaceAll(sqlite.WriterDSN(path), c.old, c.new))
		if err != nil {
			t.Fatal(err)
		}
		err = sqlite.CheckWriter(context.Background(), db, path)
		if c.ok && err != nil {
			t.Errorf("right settings: %v", err)
		}
		if !c.ok {
			wantCode(t, err, agency.CodeDBError)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The transaction of a change holds the write lock from its beginning on, not from its first write.
func TestTransactionsAreImmediate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	create(t, s, newRun(1))
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	change(t, s, newRun(1).ID, func(*agency.Run) ([]agency.EventDraft, error) {
		if tx, err := other.Begin(); err == nil {
			_ = tx.Rollback()
			t.Error("another writer got in between")
		}
		return nil, nil
	})
}

// Only the owner may read the file and SQLite's files beside it, even if their modes were wider
// before.
func TestFileMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path)
	create(t, s, newRun(1))
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o", name, got)
		}
	}
}

// Closing leaves one file that holds everything, and can be repeated.
func TestClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	create(t, s, newRun(1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
	if _, err := openAt(t, path).Run(context.Background(), newRun(1).ID); err != nil {
		t.Error(err)
	}
}

// No character in a path is special.
func TestSpecialPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "what?mode=memory", "50%20", "#1", `"quoted"`, "it's", "file:x", "ü&=+;", "a\\b", "x:y"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		s := openAt(t, path)
		create(t, s, newRun(1))
		if err := s.Backup(context.Background(), path+".copy"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 2 || entries[0].Name() != name || entries[1].Name() != name+".copy" {
			t.Errorf("%q: the directory holds %v", name, entries)
		}
	}
}

// A file that is not a sound database of agency is refused, with its name and a way out, and not
// one byte of it changes.
func TestForeignAndDamagedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	create(t, s, newRun(1), newRun(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(sound)
	copy(damaged[100:], bytes.Repeat([]byte{0xff}, 2000))
	for name, content := range map[string][]byte{
		"text":      []byte("these are my notes\n"),
		"short":     {0, 1, 2},
		"zeros":     make([]byte, 8192),
		"header":    sound[:100],
		"truncated": sound[:len(sound)/2],
		"damaged":   damaged,
		"foreign":   foreignDatabase(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "agency.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.Open(context.Background(), path, time.Now)
			if err == nil {
				_ = s.Close()
			}
			e := wantCode(t, err, agency.CodeDBError)
			if !strings.Contains(e.Message, path) || strings.Contains(e.Message, "SELECT") {
				t.Errorf("message %q", e.Message)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Error("the file changed")
			}
		})
	}
}

// foreignDatabase returns a sound database of another program.
func foreignDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("CREATE TABLE bookmarks (url TEXT)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A crash while the file was created leaves a journal that the next start rolls back.
func TestHotJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "agency.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=cache_size(1)&_pragma=cache_spill(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec(`CREATE TABLE half (x); INSERT INTO half
		WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT zeroblob(4000) FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	crashed := filepath.Join(t.TempDir(), "agency.db")
	for _, suffix := range []string{"", "-journal"} { // what a crash at this moment leaves
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashed+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := openAt(t, crashed)
	create(t, s, newRun(1))
}

// An error about an unusable place names what is there.
func TestUnusablePlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refuse := func(path string, code agency.Code) {
		t.Helper()
		s, err := sqlite.Open(context.Background(), path, time.Now)
		if err == nil {
			_ = s.Close()
		}
		if e := wantCode(t, err, code); !strings.Contains(e.Message, path) {
			t.Errorf("message %q", e.Message)
		}
	}
	refuse(dir, agency.CodeDBError)
	refuse(filepath.Join(dir, "missing", "agency.db"), agency.CodeDBError)

	if os.Geteuid() == 0 {
		t.Skip("nothing is read-only for root")
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	refuse(filepath.Join(closed, "agency.db"), agency.CodePermissionDenied)
	file := filepath.Join(dir, "agency.db")
	if err := openAt(t, file).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	refuse(file, agency.CodePermissionDenied)
}

// A database that another process holds is E_DB_LOCKED, and works again afterwards.
func TestLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	create(t, s, newRun(1))
	if _, err := s.Writer().Exec("PRAGMA busy_timeout = 10"); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Append(context.Background(), agency.EventDraft{Type: agency.DaemonStarted}), agency.CodeDBLocked)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(context.Background(), agency.EventDraft{Type: agency.DaemonStarted}); err != nil {
		t.Error(err)
	}
}

// A change that a full disk interrupts is undone and reported, and damages nothing.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create(t, s, newRun(1))
	if _, err := s.Writer().Exec("PRAGMA max_page_count = 1"); err != nil { // the file may not grow
		t.Fatal(err)
	}
	large := agency.Creation{Spec: make([]byte, 1<<20)}
	e := wantCode(t, s.CreateRun(context.Background(), newRun(2), large), agency.CodeDBError)
	if !strings.Contains(e.Message, "disk is full") {
		t.Errorf("message %q", e.Message)
	}
	_, err := s.Run(context.Background(), newRun(2).ID)
	wantCode(t, err, agency.CodeRunNotFound)
	if err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
}

// A call whose context has ended returns an error, and leaves the store usable.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create(t, s, newRun(1))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := s.ChangeRun(ctx, newRun(1).ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Flag = &agency.Flag{Reason: "half"}
		cancel()
		return nil, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	r, err := s.Run(context.Background(), newRun(1).ID)
	if err != nil {
		t.Fatal(err)
	}
	if r.Flag != nil {
		t.Error("half a change was kept")
	}
	if _, err := s.Runs(ctx, agency.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
