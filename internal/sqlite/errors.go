package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"agency"
)

// problem is the one place that converts an error of SQLite or of the file system for users. doing
// names the operation, as in "open"; path is the database. SQLite's own words, which quote SQL,
// stay in the cause. An *agency.Error, the end of the context and every other error that is not
// about the database pass unchanged.
func problem(doing, path string, err error) error {
	var known *agency.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	fail := func(code agency.Code, what string) *agency.Error {
		e := agency.Errorf(code, "%s database %s: %s", doing, path, what)
		e.Err = err
		return e
	}
	var errno syscall.Errno
	var sqlErr *driver.Error
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fail(agency.CodePermissionDenied, "permission denied").
			WithHint("make the file and its directory readable and writable for you")
	case errors.As(err, &errno):
		return fail(agency.CodeDBError, errno.Error()).WithHint("check that the directory exists and its disk has room")
	case !errors.As(err, &sqlErr):
		return err
	}
	switch sqlErr.Code() & 0xff {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fail(agency.CodeDBLocked, "another process keeps it locked").
			WithHint("end the program that has it open and try again; lsof '%s' names it", path)
	case codes.SQLITE_NOTADB:
		return fail(agency.CodeDBError, "the file is not a database, or it is damaged").WithHint("%s", restoreHint(path))
	case codes.SQLITE_CORRUPT:
		return fail(agency.CodeDBError, "the file is damaged").WithHint("%s", restoreHint(path))
	case codes.SQLITE_FULL:
		return fail(agency.CodeDBError, "the disk is full, and nothing was written").
			WithHint("make a little room on its disk: df -h '%s'; then agency rm and agency gc free more", path)
	case codes.SQLITE_IOERR:
		return fail(agency.CodeDBError, "the disk reports an error, and nothing was written").
			WithHint("see whether its disk is full or failing: df -h '%s'", path)
	case codes.SQLITE_READONLY, codes.SQLITE_PERM:
		return fail(agency.CodePermissionDenied, "it may not be written").
			WithHint("make the file and its directory writable for you")
	case codes.SQLITE_CANTOPEN:
		return fail(agency.CodeDBError, "the file or one beside it cannot be opened").
			WithHint("check that its directory is there and writable for you")
	default:
		return fail(agency.CodeDBError, fmt.Sprintf("SQLite refuses with code %d", sqlErr.Code())).
			WithHint("agency doctor checks the database")
	}
}

func isBusy(err error) bool {
	var sqlErr *driver.Error
	return errors.As(err, &sqlErr) && sqlErr.Code()&0xff == codes.SQLITE_BUSY
}

// restoreHint also explains what to do without a backup: an old log next to a fresh file would
// damage it.
func restoreHint(path string) string {
	backup := "one of agency db backup"
	if made, _ := filepath.Glob(filepath.Join(filepath.Dir(path), BackupFolder, "agency-*.db")); len(made) > 0 { // sorted by name
		backup = made[len(made)-1]
	}
	return fmt.Sprintf("agency db restore FILE puts a backup in its place (%s); without one, move %s and %s-wal away and agency db rebuild",
		backup, path, path)
}

// interrupted reports whether an error only follows from a context that ended.
func interrupted(err error) bool {
	var sqlErr *driver.Error
	return errors.Is(err, sql.ErrTxDone) || errors.As(err, &sqlErr) && sqlErr.Code() == codes.SQLITE_INTERRUPT
}

// conflict returns the error for the unique value that a write of the run repeats; other errors
// pass unchanged.
func conflict(err error, r *agency.Run) error {
	var sqlErr *driver.Error
	if !errors.As(err, &sqlErr) || sqlErr.Code() != codes.SQLITE_CONSTRAINT_UNIQUE {
		return err
	}
	// SQLite names the columns of the broken index in its text, and only there.
	switch text := sqlErr.Error(); {
	case strings.Contains(text, "runs.name"):
		return agency.Errorf(agency.CodeNameExists, "another run has the name %q", r.Name).
			WithHint("choose another --name, or remove that run: agency rm %s", r.Name)
	case strings.Contains(text, "runs.handle"):
		return fmt.Errorf("create run %s: %w", r.Handle, agency.ErrHandleTaken)
	case strings.Contains(text, "runs.branch"):
		return agency.Errorf(agency.CodeBranchExists, "the branch %q of %s belongs to another run", r.Branch, r.Repo.Root).
			WithHint("choose another --branch, or remove that run with agency rm")
	default:
		return err
	}
}

func notFound(id agency.RunID) error {
	return agency.Errorf(agency.CodeRunNotFound, "no run %q", string(id)).WithHint("agency ls shows the runs there are")
}
