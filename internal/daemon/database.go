package daemon

import (
	"context"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/recovery"
)

// restoreTimeout is how long a command that replaces the database waits for a daemon that is
// ending.
const restoreTimeout = 2 * time.Second

// databaseOf returns the database of a data root.
func databaseOf(home string, now func() time.Time) recovery.Database {
	return recovery.Database{Home: home, Temp: filepath.Join(home, config.TempDir), Now: now}
}

// databaseOf returns the database for a command that replaces it while it holds the lock.
func (l *rootLock) databaseOf(home string, now func() time.Time) recovery.Database {
	db := databaseOf(home, now)
	db.Locked = func() bool {
		kept, _ := l.keep()
		return kept
	}
	return db
}

// RestoreDatabase replaces the database of a data root by a backup. No daemon may run. kept is the
// new path of the old database; empty when there was none.
func RestoreDatabase(ctx context.Context, home, backup string, now func() time.Time) (kept string, err error) {
	lock, err := lockForRestore(ctx, home)
	if err != nil {
		return "", err
	}
	defer lock.unlock()
	return lock.databaseOf(home, now).Restore(ctx, backup)
}

// RebuildDatabase adds to the database of a data root, or to a new one when there is none, what the
// folders of its runs record. No daemon may run.
func RebuildDatabase(ctx context.Context, home string, now func() time.Time) (*api.Rebuilt, error) {
	lock, err := lockForRestore(ctx, home)
	if err != nil {
		return nil, err
	}
	defer lock.unlock()
	done, err := lock.databaseOf(home, now).Rebuild(ctx, newGit(home))
	if err != nil {
		return nil, err
	}
	rebuilt := &api.Rebuilt{
		Added: append([]string{}, done.Added...), Updated: append([]string{}, done.Updated...), Skipped: []api.SkippedRun{}, Kept: done.Kept,
	}
	for _, s := range done.Skipped {
		rebuilt.Skipped = append(rebuilt.Skipped, api.SkippedRun(s))
	}
	return rebuilt, nil
}

// lockForRestore takes the lock of a data root for a command that replaces the database. It waits,
// since a daemon that is ending or was killed releases it a moment later.
func lockForRestore(ctx context.Context, home string) (*rootLock, error) {
	deadline := time.Now().Add(restoreTimeout)
	lock, err := awaitLock(ctx, home, func() bool { return time.Now().After(deadline) })
	if lock == nil || err != nil {
		return nil, agency.Errorf(agency.CodeInvalidState, "a daemon uses the database in %s", home).WithHint("agency daemon stop")
	}
	if err := writeHolder(home, api.DoingRestore); err != nil {
		lock.unlock()
		return nil, agency.Errorf(agency.CodeInvalidPath, "write %s: %w", lock.path, err)
	}
	return lock, nil
}

func (o recordOperations) checkDatabase(ctx context.Context, _ api.Empty) (api.CheckDatabaseResponse, error) {
	return api.CheckDatabaseResponse{Path: databaseOf(o.cfg.Home, o.now).Path()}, o.store.Check(ctx)
}

func (o recordOperations) backupDatabase(ctx context.Context, req api.BackupDatabaseRequest) (api.BackupDatabaseResponse, error) {
	path := req.Path
	if path == "" {
		path = filepath.Join(o.cfg.Home, "agency.db.backup-"+o.now().UTC().Format("20060102T150405Z"))
	}
	if !filepath.IsAbs(path) {
		return api.BackupDatabaseResponse{}, agency.Errorf(agency.CodeUsage, "the path %q is not absolute", path)
	}
	return api.BackupDatabaseResponse{Path: path}, o.store.Backup(ctx, path)
}
