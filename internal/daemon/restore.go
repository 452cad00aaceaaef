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

	"github.com/gofrs/flock"

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

// checking is that copy while it is made and checked; a restore that was killed leaves it to the next.
const checking = "agency.db.restore"

// restorePatience is how long a restore waits for a daemon that is ending.
const restorePatience = 2 * time.Second

// RestoreDatabase puts a backup in the place of a data root's database. No daemon may run. The backup is checked first, and
// what stood there before is kept beside it; kept is its path, empty when there was nothing. There is a database at every
// moment. A restore that a crash cuts off has either not begun, or the next restore or daemon finishes it.
func RestoreDatabase(ctx context.Context, home, backup string, now func() time.Time) (kept string, err error) {
	lock := flock.New(LockPath(home), flock.SetPermissions(0o600))
	// A daemon that is ending, or was killed, lets go of the lock a moment later.
	patience, cancel := context.WithTimeout(ctx, restorePatience)
	defer cancel()
	if ok, err := lock.TryLockContext(patience, 10*time.Millisecond); err != nil || !ok {
		return "", agency.Errorf(agency.CodeInvalidState, "a daemon uses the database in %s", home).WithHint("agency daemon stop")
	}
	defer func() { _ = lock.Unlock() }()
	if err := tellHolder(home, api.DoingRestore); err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "write %s: %w", lock.Path(), err)
	}
	if _, err := finishRestore(home); err != nil { // what was begun before, so that nothing of it is mixed with this one
		return "", err
	}
	fresh, err := copyChecked(ctx, backup, home, now)
	if err != nil {
		return "", err
	}
	if err := os.Rename(fresh, filepath.Join(home, restoring)); err != nil {
		_ = os.Remove(fresh)
		return "", agency.Errorf(agency.CodeDBError, "begin the restore: %w", err)
	}
	killpoint.At("restore.begun")
	return finishRestore(home)
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
		if err := os.Rename(path+suffix, old+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, agency.Errorf(agency.CodeDBError, "set %s aside: %w", path+suffix, err)
		}
	}
	killpoint.At("restore.aside")
	if err := os.Rename(fresh, path); err != nil {
		return kept, agency.Errorf(agency.CodeDBError, "put the backup in place: %w", err)
	}
	return kept, nil
}

// copyChecked copies a backup into the data root and checks the copy, so that the backup itself is never opened. What was
// kept of an earlier database can have a log beside it, with what was written last: that becomes part of the copy.
func copyChecked(ctx context.Context, backup, home string, now func() time.Time) (_ string, err error) {
	path := filepath.Join(home, checking)
	drop := func() { _, _, _ = os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm") }
	drop()
	defer func() {
		if err != nil {
			drop()
		}
		// A backup of an older version was backed up once more before it was brought to this one.
		older, _ := filepath.Glob(path + ".backup-*")
		for _, copied := range older {
			_ = os.Remove(copied)
		}
	}()
	if err := copyFile(path, backup); err != nil {
		return "", err
	}
	if _, err := os.Lstat(backup + "-wal"); err == nil {
		if err := copyFile(path+"-wal", backup+"-wal"); err != nil {
			return "", err
		}
	}
	if err := checkFile(ctx, path, now); err != nil {
		return "", agency.Errorf(agency.CodeDBError, "%s is no backup that could be restored: %s", backup, strings.ReplaceAll(err.Error(), path, "its copy")).
			WithHint("name a file that agency db backup wrote, or %s.replaced-* that a restore kept", DatabasePath(home))
	}
	return path, nil
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

// refuseEmptied refuses a database of no bytes where runs are: it would be taken for a new one, and they for strangers.
func refuseEmptied(home string) error {
	info, err := os.Lstat(DatabasePath(home))
	if err != nil || info.Size() > 0 {
		return nil //nolint:nilerr // without a file there is nothing to refuse
	}
	if runs, _ := os.ReadDir(filepath.Join(home, "runs")); len(runs) == 0 {
		return nil
	}
	return sqlite.Damaged(DatabasePath(home), "the file is empty, although there are runs")
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
	if err := errors.Join(store.Check(ctx), store.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil {
		return errors.New("its log could not be taken in")
	}
	return nil
}
