package daemon

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
	"agency/internal/api"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/sqlite"
)

// DatabasePath is a data root's database.
func DatabasePath(home string) string { return filepath.Join(home, "agency.db") }

// restoring is the checked copy of a backup on its way to its place, in the data root. Its time says when the restore began.
const restoring = "agency.db.restoring"

// restorePatience is how long a restore waits for a daemon that is ending.
const restorePatience = 2 * time.Second

// RestoreDatabase puts a backup in the place of a data root's database. No daemon may run. The backup is checked first, and
// what stood there before is kept beside it; kept is its path, empty when there was nothing. There is a database at every
// moment. A restore that a crash cuts off has either not begun, or the next restore or daemon finishes it.
func RestoreDatabase(ctx context.Context, home, backup string, now func() time.Time) (kept string, err error) {
	lock, err := lockForRestore(ctx, home)
	if err != nil {
		return "", err
	}
	defer lock.unlock()
	if _, err := finishRestore(home); err != nil { // what was begun before, so that nothing of it is mixed with this one
		return "", err
	}
	path := filepath.Join(home, tempDir, "restore", "agency.db")
	drop, err := scratch(path)
	if err != nil {
		return "", err
	}
	defer drop()
	if err := copyChecked(ctx, backup, path, now); err != nil {
		return "", err
	}
	return putInPlace(path, home)
}

// scratch makes an empty folder for a copy of the database. A command that was killed leaves it to the next one, or to the next daemon.
func scratch(path string) (drop func(), err error) {
	folder := filepath.Dir(path)
	drop = func() { _ = os.RemoveAll(folder) }
	drop()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, agency.Errorf(agency.CodeDBError, "make a folder for a copy of the database: %w", err)
	}
	return drop, nil
}

// putInPlace has a copy that was checked, and is closed, replace the database of a data root. kept is where that is now.
func putInPlace(path, home string) (kept string, err error) {
	if err := os.Rename(path, filepath.Join(home, restoring)); err != nil {
		return "", agency.Errorf(agency.CodeDBError, "begin to replace the database: %w", err)
	}
	killpoint.At("restore.begun")
	return finishRestore(home)
}

// lockForRestore takes the lock of a data root for a command that replaces the database. A daemon that is ending, or was killed, lets go
// of it a moment later.
func lockForRestore(ctx context.Context, home string) (*rootLock, error) {
	deadline := time.Now().Add(restorePatience)
	lock, err := awaitLock(ctx, home, func() bool { return time.Now().After(deadline) })
	if lock == nil || err != nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "a daemon uses the database in %s", home).WithHint("agency daemon stop")
	}
	if err := tellHolder(home, api.DoingRestore); err != nil {
		lock.unlock()
		return nil, agency.Errorf(agency.CodeInvalidPath, "write %s: %w", lock.path, err)
	}
	return lock, nil
}

// finishRestore puts the copy in place, if there is one. The caller holds the lock.
func finishRestore(home string) (kept string, err error) {
	fresh, path := filepath.Join(home, restoring), DatabasePath(home)
	info, err := os.Lstat(fresh)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", agency.Errorf(agency.CodeDBError, "look at %s: %w", fresh, err)
	}
	old := path + ".replaced-" + info.ModTime().UTC().Format("20060102T150405.000Z")
	// The old file keeps a second name before anything moves, so there is a database at every moment.
	switch err := os.Link(path, old); {
	case err == nil, errors.Is(err, fs.ErrExist):
		kept = old
	case !errors.Is(err, fs.ErrNotExist):
		return "", agency.Errorf(agency.CodeDBError, "keep %s: %w", path, err)
	}
	killpoint.At("restore.kept")
	for _, suffix := range []string{"-wal", "-shm"} {
		if kept == "" {
			err = os.Remove(path + suffix) // without its database it is worth nothing, and has room reserved
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

// copyChecked copies a backup and checks the copy, so that the backup itself is never opened. What was kept of an earlier database
// can have a log beside it, with what was written last: that becomes part of the copy.
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
		return agency.Errorf(agency.CodeDBError, "%s is no database that could be used: %s", backup, strings.ReplaceAll(err.Error(), path, "its copy")).
			WithHint("name a file that agency db backup wrote, one in the folder %s of the data root, or an agency.db.replaced-* that a restore kept", sqlite.BackupFolder)
	}
	return nil
}

// copyFile makes a new file with a regular file's content, and has it reach the disk.
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

// refuseMissing refuses a database that is missing, or has no bytes, where runs or backups are: it would be taken for a new one, live
// agents for strangers, and their names would be free.
func refuseMissing(home string) error {
	path := DatabasePath(home)
	what := "is missing"
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Size() > 0, err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // opening it says more
	case err == nil:
		what = "is empty"
	}
	runs, err := entries(filepath.Join(home, "runs"))
	if err != nil {
		return err
	}
	kept, err := entries(backupFolder(home))
	if err != nil {
		return err
	}
	if runs+kept == 0 {
		return nil
	}
	return agency.Errorf(agency.CodeDBMissing, "the database %s %s, and there are folders of %d runs", path, what, runs).WithHint("%s", wayBack(home))
}

// entries counts what is in a folder; one that is missing is empty.
func entries(folder string) (int, error) {
	list, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, agency.Errorf(agency.CodeDBError, "look for what the database should know: %w", err)
	}
	return len(list), nil
}

// wayBack says how a database comes back.
func wayBack(home string) string {
	rebuild := "agency db rebuild makes one from the folders of the runs"
	if newest, _ := newestBackup(home); newest != "" {
		return "agency db restore " + agency.ShellWord(newest) + " puts the newest backup in its place, and then agency db rebuild adds the runs since; without the backup, " + rebuild
	}
	return rebuild + "; agency db restore FILE puts a backup in its place"
}

// checkFile opens a copy, which takes its log in and brings it to this version, and closes it.
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

// closeWhole closes a copy, after what failed with it before. It is an error when its log is not part of it then, as on a full disk.
func closeWhole(store *sqlite.Store, path string, failed error) error {
	if err := errors.Join(failed, store.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return agency.Errorf(agency.CodeDBError, "close %s: its log could not be taken in", path).WithHint("make room on its disk: df -h %s", agency.ShellWord(path))
	}
	return nil
}
