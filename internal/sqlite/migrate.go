package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"agency"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// newestSchema is what all migrations lead to. A new file is made from it at once: the migrations
// take several times as long, because each change of a table makes SQLite read the whole schema again.
//
//go:embed schema.sql
var newestSchema string

// schema is how a file gets its tables.
type schema struct {
	steps []string // step n, counted from 1, leads to version n
	whole string   // leads from an empty file to the newest version; empty is by the steps
}

// applicationID marks a file as agency's own: "agcy" in ASCII.
const applicationID = 0x61676379

// migrations returns the steps of the product's schema in order.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	steps := make([]string, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		steps[i] = string(text)
	}
	return steps, nil
}

// SchemaVersion returns the newest version of the schema that this program knows.
func SchemaVersion() int {
	steps, err := migrations()
	if err != nil {
		panic(err) // the files are part of the program
	}
	return len(steps)
}

// inspect refuses a file that is damaged, foreign or too new before anything is written to it. Its
// connection cannot write, not even when it closes.
func (s *database) inspect(ctx context.Context, newest int) error {
	look := pool(dsnOf(s.path, url.Values{"mode": {"ro"}}, readerSettings()), 1)
	err := errors.Join(s.inspectBy(ctx, look, newest), look.Close())
	var sqlErr *driver.Error
	if errors.As(err, &sqlErr) && slices.Contains(writerOnly, sqlErr.Code()) {
		return s.inspectBy(ctx, s.writer, newest)
	}
	return err
}

// writerOnly lists the errors that only a writer can resolve: the rollback journal of a crash while
// the file was created, and a disk without room for the index of the log.
var writerOnly = []int{
	codes.SQLITE_READONLY_ROLLBACK, codes.SQLITE_READONLY_CANTINIT,
	codes.SQLITE_FULL, codes.SQLITE_IOERR_SHMOPEN, codes.SQLITE_IOERR_SHMSIZE, codes.SQLITE_IOERR_SHMMAP, codes.SQLITE_IOERR_WRITE, codes.SQLITE_CANTOPEN,
}

func (s *database) inspectBy(ctx context.Context, db *sql.DB, newest int) error {
	var version, application, objects int
	err := db.QueryRowContext(ctx, `SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_user_version, pragma_application_id`).Scan(&version, &application, &objects)
	switch {
	case err != nil:
		return err
	case objects > 0 && application != applicationID:
		return agency.Errorf(agency.CodeDBError, "open database %s: it belongs to another program", s.path).
			WithHint("move it away, or set AGENCY_HOME to a directory of agency's own")
	case version > newest:
		return tooNew(s.path, version, newest)
	}
	return nil
}

func tooNew(path string, version, newest int) error {
	return agency.Errorf(agency.CodeDBError, "open database %s: its schema is version %d, and this agency knows only %d",
		path, version, newest).
		WithHint("install an agency that knows schema version %d, such as the one that wrote it; nothing was changed", version)
}

// migrate applies the missing steps, or makes the whole schema in a new file, all in one transaction
// with the resulting version: a crash leaves either the old schema or the new one. Several processes
// may call it at once; one does the work.
func (s *database) migrate(ctx context.Context, want schema) error {
	steps := want.steps
	const readVersion = "PRAGMA user_version"
	var version int
	if err := s.writer.QueryRowContext(ctx, readVersion).Scan(&version); err != nil || version == len(steps) {
		return err
	}
	var tx *sql.Tx
	err := unlocked(ctx, migrateTimeout, func() (err error) {
		tx, err = s.writer.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, readVersion).Scan(&version); err != nil {
		return err
	}
	switch {
	case version > len(steps):
		return tooNew(s.path, version, len(steps))
	case version == len(steps):
		return nil
	case version > 0:
		// The transaction holds the write lock and has written nothing, so the backup holds exactly
		// the state before the migration.
		folder := filepath.Join(filepath.Dir(s.path), BackupFolder)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := s.Backup(ctx, filepath.Join(folder, BackupName(s.now(), fmt.Sprintf("-v%d", version)))); err != nil {
			return err
		}
	}
	if version == 0 && want.whole != "" {
		if _, err := tx.ExecContext(ctx, want.whole); err != nil {
			return fmt.Errorf("make the schema: %w", err)
		}
		version = len(steps)
	}
	for i, step := range steps[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("apply migration %d: %w", version+i+1, err)
		}
	}
	// Pragmas take no parameters.
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))
	if _, err := tx.ExecContext(ctx, mark); err != nil {
		return err
	}
	return tx.Commit()
}
