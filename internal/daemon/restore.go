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
	"agency/internal/sqlite"
)

// DatabasePath is a data root's database.
func DatabasePath(home string) string { return filepath.Join(home, "agency.db") }

// RestoreDatabase puts a backup in the place of a data root's database. No daemon may run. The backup is checked first, and
// what stood there before is kept beside it; kept is its path, empty when there was nothing. There is a database at every
// moment, and what was kept is whole after a crash.
func RestoreDatabase(ctx context.Context, home, backup string, now func() time.Time) (kept string, err error) {
	lock := flock.New(LockPath(home), flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return "", agency.Errorf(agency.CodeInvalidState, "a daemon uses the database in %s", home).WithHint("agency daemon stop")
	}
	defer func() { _ = lock.Unlock() }()
	fresh, err := copyChecked(ctx, backup, home, now)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(fresh) }()
	path := DatabasePath(home)
	stamp := ".replaced-" + now().UTC().Format("20060102T150405Z")
	// The old file keeps a second name before anything moves, so there is a database at every moment.
	switch err := os.Link(path, path+stamp); {
	case err == nil:
		kept = path + stamp
	case !errors.Is(err, fs.ErrNotExist):
		return "", agency.Errorf(agency.CodeDBError, "keep %s: %w", path, err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, path+stamp+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, agency.Errorf(agency.CodeDBError, "set %s aside: %w", path+suffix, err)
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return kept, agency.Errorf(agency.CodeDBError, "put the backup in place: %w", err)
	}
	return kept, nil
}

// copyChecked copies a backup into the data root and checks the copy, so that the backup itself is never opened.
func copyChecked(ctx context.Context, backup, home string, now func() time.Time) (string, error) {
	in, err := file.OpenRegular(backup)
	if err != nil {
		return "", agency.Errorf(agency.CodeInvalidPath, "read the backup %s: %w", backup, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(home, "agency.db.restore-*")
	if err != nil {
		return "", agency.Errorf(agency.CodeDBError, "write into %s: %w", home, err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = checkFile(ctx, out.Name(), now)
	}
	if err != nil {
		_ = os.Remove(out.Name())
		return "", agency.Errorf(agency.CodeDBError, "%s is no backup that could be restored: %w", backup, err)
	}
	return out.Name(), nil
}

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
	return errors.Join(store.Check(ctx), store.Close())
}
