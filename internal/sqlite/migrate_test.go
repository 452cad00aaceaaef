package sqlite_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"agency"
	"agency/internal/sqlite"
)

// nextSchema returns a schema one version after the product's.
func nextSchema(t *testing.T) []string {
	t.Helper()
	steps, err := sqlite.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	return append(steps, `CREATE TABLE extra (x INTEGER) STRICT; INSERT INTO extra VALUES (1)`)
}

func version(t *testing.T, s *sqlite.Store) int {
	t.Helper()
	var v int
	if err := s.Readers().QueryRow("PRAGMA user_version").Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func backups(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "backups", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A new file has the newest schema, is sound, and needed no backup.
func TestFreshSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	steps, err := sqlite.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	if got := version(t, s); got != len(steps) {
		t.Errorf("version %d, want %d", got, len(steps))
	}
	if err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
	if got := backups(t, path); len(got) != 0 {
		t.Errorf("backups %v", got)
	}
	var loose string
	err = s.Readers().QueryRow(`SELECT coalesce(group_concat(name), '') FROM pragma_table_list
		WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND NOT strict`).Scan(&loose)
	if err != nil || loose != "" {
		t.Errorf("tables that are not strict: %q, %v", loose, err)
	}
}

var update = flag.Bool("update", false, "write schema.sql")

// A new file has the same tables, indexes and triggers, in the same words, as one that all migrations
// made.
func TestSchemaOfANewFile(t *testing.T) {
	t.Parallel()
	steps, err := sqlite.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	migrated, err := sqlite.OpenSteps(t.Context(), filepath.Join(t.TempDir(), "agency.db"), time.Now, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = migrated.Close() }()
	want := schemaOf(t, migrated)
	if *update {
		if err := os.WriteFile("schema.sql", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, schemaOf(t, openAt(t, filepath.Join(t.TempDir(), "agency.db")))); diff != "" {
		t.Errorf("schema.sql is stale: go test ./internal/sqlite -run SchemaOfANewFile -update\n%s", diff)
	}
}

// schemaOf returns the statements that make the schema of a store, and of any rows in it.
func schemaOf(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	rows, err := s.Readers().Query(`SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	text := "-- Made from migrations/ by go test ./internal/sqlite -run SchemaOfANewFile -update.\n"
	for rows.Next() {
		var kind, name, sql string
		if err := rows.Scan(&kind, &name, &sql); err != nil {
			t.Fatal(err)
		}
		text += "\n" + sql + ";\n"
		if kind == "table" {
			var filled bool
			if err := s.Readers().QueryRow("SELECT EXISTS (SELECT 1 FROM " + name + ")").Scan(&filled); err != nil || filled {
				t.Errorf("a new file has rows in %s, which schema.sql does not make: %v", name, err)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return text
}

// Migration files are numbered from 1 without a gap, because their place is their version.
func TestMigrationNumbers(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if want := string([]byte{'0', '0', byte('0' + (i+1)/10), byte('0' + (i+1)%10)}); number != want {
			t.Errorf("%s has the place of number %s", e.Name(), want)
		}
	}
}

// An older database is backed up, then migrated with its data.
func TestOlderSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	old := openAt(t, path)
	create(t, old, fullRun(1))
	was := version(t, old)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.OpenSteps(context.Background(), path, new(clock).now, nextSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got := version(t, s); got != was+1 {
		t.Errorf("version %d, want %d", got, was+1)
	}
	if _, err := s.Run(context.Background(), newRun(1).ID); err != nil {
		t.Error(err)
	}
	made := backups(t, path)
	if len(made) != 1 || filepath.Base(made[0]) != fmt.Sprintf("agency-20261122T120001.000Z-v%d.db", was) {
		t.Fatalf("backups %v", made)
	}
	info, err := os.Stat(made[0])
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %o", info.Mode().Perm())
	}
	backup := openAt(t, made[0])
	if got := version(t, backup); got != was {
		t.Errorf("the backup has version %d, want %d", got, was)
	}
	if _, err := backup.Run(context.Background(), newRun(1).ID); err != nil {
		t.Error(err)
	}
}

// A failed step leaves the old schema with all its data, which the old agency can use.
func TestFailedMigration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	old := openAt(t, path)
	create(t, old, newRun(1))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.OpenSteps(context.Background(), path, time.Now, append(nextSchema(t), "DROP TABLE runs; nonsense"))
	wantCode(t, err, agency.CodeDBError)
	if _, err := openAt(t, path).Run(context.Background(), newRun(1).ID); err != nil {
		t.Error(err)
	}
}

// A newer database is refused with the version that it needs, and not one byte of it changes, not
// even after a crash that left a part of it in the log.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s, err := sqlite.OpenSteps(context.Background(), path, time.Now, nextSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	create(t, s, newRun(1))
	crashed := filepath.Join(t.TempDir(), "agency.db")
	files := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		if files[suffix], err = os.ReadFile(path + suffix); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashed+suffix, files[suffix], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err = sqlite.Open(context.Background(), crashed, time.Now)
	if e := wantCode(t, err, agency.CodeDBError); !strings.Contains(e.Hint, fmt.Sprintf("version %d", len(nextSchema(t)))) {
		t.Errorf("hint %q", e.Hint)
	}
	for suffix, before := range files {
		after, err := os.ReadFile(crashed + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(after, before) {
			t.Errorf("%q changed", "agency.db"+suffix)
		}
	}
}

// Of four processes that open a file at once one migrates it, and all can use it.
func TestConcurrentOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	steps := nextSchema(t)
	for _, steps := range [][]string{steps[:len(steps)-1], steps} { // a new file, then an older one
		var all errgroup.Group
		for range 4 {
			all.Go(func() error {
				s, err := sqlite.OpenSteps(context.Background(), path, time.Now, steps)
				if err != nil {
					return err
				}
				if err := s.Append(context.Background(), agency.EventDraft{Type: agency.DaemonStarted}); err != nil {
					return err
				}
				return s.Close()
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sqlite.OpenSteps(context.Background(), path, time.Now, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var rows int
	if err := s.Readers().QueryRow("SELECT count(*) FROM extra").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("the step ran %d times, %v", rows, err)
	}
	if seq, err := s.LastSeq(context.Background()); err != nil || seq != 8 {
		t.Errorf("%d events, want 8, %v", seq, err)
	}
	if got := backups(t, path); len(got) != 1 {
		t.Errorf("backups %v", got)
	}
}

// A backup is an independent store, and never replaces a file.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create(t, s, newRun(1))
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Backup(context.Background(), path), agency.CodeDBError)
	wantCode(t, s.Backup(context.Background(), filepath.Join(path, "x")), agency.CodeDBError)
	create(t, s, newRun(2))
	copied := openAt(t, path)
	if err := copied.Check(context.Background()); err != nil {
		t.Error(err)
	}
	runs, err := copied.Runs(context.Background(), agency.Filter{})
	if err != nil || len(runs) != 1 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// Check finds damage that opening does not.
func TestCheck(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	create(t, s, newRun(1))
	if _, err := s.Writer().Exec("PRAGMA foreign_keys = OFF; DELETE FROM runs"); err != nil {
		t.Fatal(err)
	}
	e := wantCode(t, s.Check(context.Background()), agency.CodeDBError)
	if findings, ok := e.Details["findings"].([]string); !ok || len(findings) == 0 {
		t.Errorf("details %v", e.Details)
	}
}
