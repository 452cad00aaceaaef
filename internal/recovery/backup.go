package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/service"
	"agency/internal/sqlite"
)

const (
	// BackupEvery is the time between two backups.
	BackupEvery = 24 * time.Hour
	// firstBackup is the age of a database at its first backup.
	firstBackup = time.Hour
	// backupLook is the longest time between two checks whether a backup is due: a clock may be
	// set, and a machine may sleep.
	backupLook = time.Hour
)

// Store is the database that is backed up.
type Store interface {
	Backup(ctx context.Context, path string) error
	Events(ctx context.Context, since int64, run agency.RunID, limit int) ([]agency.Event, error)
}

// Backups is a service that backs up the database of a data root once a day.
type Backups struct {
	Home  string // the data root
	Store Store
	Keep  func() int // how many backups to keep; 0 makes none
	Log   *slog.Logger
	Now   func() time.Time

	work service.Background
}

// made returns the paths of the automatic backups in a data root, oldest first.
func made(home string) []string {
	found, _ := filepath.Glob(filepath.Join(home, sqlite.BackupFolder, "agency-*.db")) // the only possible error is a bad pattern
	return found
}

// newestBackup returns the newest automatic backup and its time; path is empty when there is none.
func newestBackup(home string) (path string, at time.Time) {
	found := made(home)
	if len(found) == 0 {
		return "", time.Time{}
	}
	path = found[len(found)-1]
	stamp, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "agency-"), "Z")
	at, _ = time.Parse("20060102T150405.000", stamp) // after a file with another name, a backup is due
	return path, at
}

// Newest returns the newest automatic backup and its time; path is empty when there is none.
func (b *Backups) Newest() (path string, at time.Time) { return newestBackup(b.Home) }

// Start backs up the database, now if a backup is due, and then once a day until Stop.
func (b *Backups) Start(ctx context.Context) error {
	return b.work.Start(ctx, func(ctx context.Context) error {
		b.work.Go(func() { b.run(ctx) })
		return nil
	})
}

// Stop ends the service and waits for a backup in progress. It is idempotent.
func (b *Backups) Stop() { b.work.Stop() }

func (b *Backups) run(ctx context.Context) {
	for {
		due, err := b.Due(ctx)
		if err == nil && !due.After(b.Now()) {
			err = b.backUp(ctx)
			due = b.Now().Add(BackupEvery)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("back up the database", "err", err)
			due = b.Now().Add(backupLook)
		}
		select {
		case <-time.After(min(max(due.Sub(b.Now()), time.Second), backupLook)):
		case <-ctx.Done():
			return
		}
	}
}

// Due returns when the next backup is due: a day after the newest one, or an hour after the first
// event. It ignores backups with a time in the future.
func (b *Backups) Due(ctx context.Context) (time.Time, error) {
	now := b.Now()
	if b.Keep() == 0 {
		return now.Add(backupLook), nil
	}
	newest, at := b.Newest()
	if newest != "" && !at.After(now) {
		return at.Add(BackupEvery), nil
	}
	first, err := b.Store.Events(ctx, 0, "", 1)
	if err != nil || len(first) == 0 {
		return now.Add(backupLook), err
	}
	return first[0].At.Add(firstBackup), nil
}

// backUp makes a backup and then removes the oldest ones beyond the number to keep.
func (b *Backups) backUp(ctx context.Context) error {
	folder := filepath.Join(b.Home, sqlite.BackupFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create the folder of the backups: %w", err)
	}
	path := filepath.Join(folder, sqlite.BackupName(b.Now(), ""))
	if err := b.Store.Backup(ctx, path); err != nil {
		return err
	}
	b.Log.Info("database backed up", "path", path)
	all := made(b.Home)
	for _, old := range all[:max(0, len(all)-b.Keep())] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
	}
	return nil
}
