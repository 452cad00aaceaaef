package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"agency"
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
	lock := flock.New(LockPath(home), flock.SetPermissions(0o600))
	// A daemon that is ending, or was killed, lets go of the lock a moment later.
	patience, cancel := context.WithTimeout(ctx, restorePatience)
	defer cancel()
	if ok, err := lock.TryLockContext(patience, 10*time.Millisecond); err != nil || !ok {
		return "", agency.Errorf(agency.CodeInvalidState, "a daemon uses the database in %s", home).WithHint("agency daemon stop")
	}
	defer func() { _ = lock.Unlock() }()
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
func copyChecked(ctx context.Context, backup, home string, now func() time.Time) (path string, err error) {
	out, err := os.CreateTemp(home, "agency.db.restore-*")
	if err != nil {
		return "", agency.Errorf(agency.CodeDBError, "write into %s: %w", home, err)
	}
	path = out.Name()
	defer func() {
		if err != nil {
			_, _ = os.Remove(path), os.Remove(path+"-wal")
		}
	}()
	if err := errors.Join(copyFile(out, backup), out.Close()); err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "read the backup %s: %w", backup, err)
	}
	if _, err := os.Lstat(backup + "-wal"); err == nil {
		log, err := os.OpenFile(path+"-wal", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return "", agency.Errorf(agency.CodeDBError, "write into %s: %w", home, err)
		}
		if err := errors.Join(copyFile(log, backup+"-wal"), log.Close()); err != nil {
			return "", agency.Errorf(agency.CodeInvalidPath, "read the backup %s: %w", backup+"-wal", err)
		}
	}
	if err := checkFile(ctx, path, now); err != nil {
		return "", agency.Errorf(agency.CodeDBError, "%s is no backup that could be restored: %w", backup, err)
	}
	return path, nil
}

// copyFile writes a regular file's content to another one and has it reach the disk.
func copyFile(to *os.File, from string) error {
	in, err := file.OpenRegular(from)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, in)
	return errors.Join(err, to.Sync(), in.Close())
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
