// Package recovery backs up, restores and rebuilds the database of a data root. It rebuilds the
// record of runs from their folders. It puts a new database in place in one step that a crash
// cannot leave half done, and keeps the old one.
package recovery

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/plain"
	"agency/internal/sqlite"
)

// Database is the database file of a data root. The caller of the methods that change it holds the
// lock of the data root, and no process has the database open.
type Database struct {
	Home string           // the data root
	Temp string           // a folder for copies, on the same disk
	Now  func() time.Time // the clock for times in the database
	// Locked, if not nil, reports whether the caller still holds the lock of the data root.
	Locked func() bool
}

// Path returns the path of the database.
func (d Database) Path() string { return filepath.Join(d.Home, "agency.db") }

// Replacement returns the path of the checked copy that Finish puts in the place of the database.
// Its modification time is when the replacement began.
func (d Database) Replacement() string { return filepath.Join(d.Home, "agency.db.restoring") }

// Restore replaces the database by a backup. It checks the backup first, and keeps the old database
// beside the new one; kept is its path, empty when there was none. There is a database at every
// moment. After a crash, either nothing has changed, or the next Finish completes the restore.
func (d Database) Restore(ctx context.Context, backup string) (kept string, err error) {
	if _, err := d.Finish(); err != nil { // complete an earlier replacement, so that the two do not mix
		return "", err
	}
	path := filepath.Join(d.Temp, "restore", "agency.db")
	drop, err := scratch(path)
	if err != nil {
		return "", err
	}
	defer drop()
	if err := copyChecked(ctx, backup, path, d.Now); err != nil {
		return "", err
	}
	return d.replace(path)
}

// scratch makes an empty folder for a copy of the database. If the command is killed, the next
// command or daemon removes the folder.
func scratch(path string) (drop func(), err error) {
	folder := filepath.Dir(path)
	drop = func() { _ = os.RemoveAll(folder) }
	drop()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, agency.Errorf(agency.CodeDBError, "make a folder for a copy of the database: %w", err)
	}
	return drop, nil
}

// replace puts a checked and closed copy in the place of the database. kept is the new path of the
// old database. A caller that lost the lock while it made the copy changes nothing: a daemon may have
// the database open.
func (d Database) replace(path string) (kept string, err error) {
	if d.Locked != nil && !d.Locked() {
		return "", agency.Errorf(agency.CodeInvalidState, "another process began to use the database in %s meanwhile; nothing was replaced", d.Home).
			WithHint("agency daemon stop, and then the same again")
	}
	if err := os.Rename(path, d.Replacement()); err != nil {
		return "", agency.Errorf(agency.CodeDBError, "begin to replace the database: %w", err)
	}
	killpoint.At("restore.begun")
	return d.Finish()
}

// Finish puts the replacement in place, if there is one. kept is the new path of the old database,
// empty when there was none.
func (d Database) Finish() (kept string, err error) {
	fresh, path := d.Replacement(), d.Path()
	info, err := os.Lstat(fresh)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", agency.Errorf(agency.CodeDBError, "look at %s: %w", fresh, err)
	}
	old := path + ".replaced-" + info.ModTime().UTC().Format("20060102T150405.000Z")
	// The old file gets a second name before anything moves, so that there is a database at every
	// moment.
	switch err := os.Link(path, old); {
	case err == nil, errors.Is(err, fs.ErrExist):
		kept = old
	case !errors.Is(err, fs.ErrNotExist):
		return "", agency.Errorf(agency.CodeDBError, "keep %s: %w", path, err)
	}
	killpoint.At("restore.kept")
	for _, suffix := range []string{"-wal", "-shm"} {
		if kept == "" {
			err = os.Remove(path + suffix) // useless without its database, and it takes reserved space
		} else {
			err = os.Rename(path+suffix, old+suffix)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, agency.Errorf(agency.CodeDBError, "set %s aside: %w", path+suffix, err)
		}
	}
	killpoint.At("restore.aside")
	if err := os.Rename(fresh, path); err != nil {
		return kept, agency.Errorf(agency.CodeDBError, "put the backup in place: %w", err)
	}
	return kept, nil
}

// copyChecked copies a backup and checks the copy, so that the backup itself is never opened. A
// database that an earlier restore kept can have a log beside it, with the last changes: they
// become part of the copy.
func copyChecked(ctx context.Context, backup, path string, now func() time.Time) error {
	if err := copyFile(path, backup); err != nil {
		return err
	}
	if _, err := os.Lstat(backup + "-wal"); err == nil {
		if err := copyFile(path+"-wal", backup+"-wal"); err != nil {
			return err
		}
	}
	if err := checkFile(ctx, path, now); err != nil {
		return agency.Errorf(agency.CodeDBError, "%s is not a database that agency can use: %s", backup, strings.ReplaceAll(err.Error(), path, "its copy")).
			WithHint("name a file that agency db backup wrote, one in the folder %s of the data root, or an agency.db.replaced-* that a restore kept", sqlite.BackupFolder)
	}
	return nil
}

// copyFile makes a new file with the content of a regular file, and syncs it to the disk.
func copyFile(path, from string) error {
	in, err := file.OpenRegular(from)
	if err != nil {
		return agency.Errorf(agency.CodeInvalidPath, "read the backup: %w", err)
	}
	defer func() { _ = in.Close() }()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return agency.Errorf(agency.CodeDBError, "copy the backup: %w", err)
	}
	_, err = io.Copy(to, in)
	if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
		return agency.Errorf(agency.CodeDBError, "copy the backup %s: %w", from, err)
	}
	return nil
}

// RefuseMissing returns an error when the database is missing or empty although there are runs or
// backups. A daemon would begin a new database: it would not know the live agents, and their names
// would be free.
func (d Database) RefuseMissing() error {
	path := d.Path()
	what := "is missing"
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Size() > 0, err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // opening it gives a better error
	case err == nil:
		what = "is empty"
	}
	runs, err := countEntries(filepath.Join(d.Home, "runs"))
	if err != nil {
		return err
	}
	kept, err := countEntries(filepath.Join(d.Home, sqlite.BackupFolder))
	if err != nil {
		return err
	}
	if runs+kept == 0 {
		return nil
	}
	return agency.Errorf(agency.CodeDBMissing, "the database %s %s, and there are directories of %d runs", path, what, runs).WithHint("%s", d.Hint())
}

// countEntries counts the entries of a folder; a missing one is empty.
func countEntries(folder string) (int, error) {
	list, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, agency.Errorf(agency.CodeDBError, "look for what the database should know: %w", err)
	}
	return len(list), nil
}

// Hint returns how the user gets a lost database back.
func (d Database) Hint() string {
	rebuild := "agency db rebuild makes one from the run directories"
	if newest, _ := newestBackup(d.Home); newest != "" {
		return "agency db restore " + plain.ShellWord(newest) + " puts the newest backup in its place, and then agency db rebuild adds the runs since; without the backup, " + rebuild
	}
	return rebuild + "; agency db restore FILE puts a backup in its place"
}

// checkFile opens a copy, which merges its log and migrates it to this version's schema, and closes
// it.
func checkFile(ctx context.Context, path string, now func() time.Time) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	store, err := sqlite.Open(ctx, path, now)
	if err != nil {
		return err
	}
	return closeWhole(store, path, store.Check(ctx))
}

// closeWhole closes a copy and returns failed, the error of an earlier step, too. It fails when the
// log of the copy is still not merged then, as on a full disk.
func closeWhole(store *sqlite.Store, path string, failed error) error {
	if err := errors.Join(failed, store.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return agency.Errorf(agency.CodeDBError, "close %s: SQLite could not write its log into it", path).WithHint("make room on its disk: df -h %s", plain.ShellWord(path))
	}
	return nil
}
