package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/sqlite"
)

const (
	// backupEvery is the time between two backups that the daemon makes by itself, and firstBackup that before the first one.
	backupEvery = 24 * time.Hour
	firstBackup = time.Hour
	// backupLook is the longest time between two looks whether one is due: a clock may be set, and a machine may sleep.
	backupLook = time.Hour
	// backupLate is the age from which the doctor warns.
	backupLate = 3 * backupEvery
)

// backupFolder is where the daemon keeps the backups that it makes by itself.
func backupFolder(home string) string { return filepath.Join(home, sqlite.BackupFolder) }

// backups are the backups that agency made by itself, oldest first.
func backups(home string) []string {
	found, _ := filepath.Glob(filepath.Join(backupFolder(home), "agency-*.db")) // its one error is for a bad pattern
	return found
}

// newestBackup is the newest of them and when it was made; empty when there is none.
func newestBackup(home string) (path string, at time.Time) {
	found := backups(home)
	if len(found) == 0 {
		return "", time.Time{}
	}
	path = found[len(found)-1]
	stamp, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "agency-"), "Z")
	at, _ = time.Parse("20060102T150405.000", stamp) // a file with another name is due to be followed
	return path, at
}

// keepBackups backs the record up once a day until the function that it returns is called, which waits.
func (d *Daemon) keepBackups(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			due, err := d.backupDue(ctx)
			if err == nil && !due.After(d.clock.Now()) {
				err = d.backUp(ctx)
				due = d.clock.Now().Add(backupEvery)
			}
			if err != nil && ctx.Err() == nil {
				d.Log.Error("back up the database", "err", err)
				due = d.clock.Now().Add(backupLook)
			}
			select {
			case <-time.After(min(max(due.Sub(d.clock.Now()), time.Second), backupLook)):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// backupDue is when the next backup is due: a day after the newest one, or an hour after the record began. What is dated ahead of the
// clock does not count.
func (d *Daemon) backupDue(ctx context.Context) (time.Time, error) {
	now := d.clock.Now()
	if d.active.config().DB.Backups == 0 {
		return now.Add(backupLook), nil
	}
	newest, at := newestBackup(d.Config.Home)
	if newest != "" && !at.After(now) {
		return at.Add(backupEvery), nil
	}
	first, err := d.store.Events(ctx, 0, "", 1)
	if err != nil || len(first) == 0 {
		return now.Add(backupLook), err
	}
	return first[0].At.Add(firstBackup), nil
}

// backUp makes a backup and then removes the oldest ones that are too many.
func (d *Daemon) backUp(ctx context.Context) error {
	folder := backupFolder(d.Config.Home)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(folder, sqlite.BackupName(d.clock.Now(), ""))
	if err := d.store.Backup(ctx, path); err != nil {
		return err
	}
	d.Log.Info("database backed up", "path", path)
	made, keep := backups(d.Config.Home), d.active.config().DB.Backups
	for _, old := range made[:max(0, len(made)-keep)] {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return nil
}

// checkBackup is what the doctor says of the backups.
func (d *Daemon) checkBackup(ctx context.Context) api.Check {
	check := api.Check{Name: "backup", Level: levelOK}
	due, err := d.backupDue(ctx)
	if err != nil {
		return failed("backup", err)
	}
	now := d.clock.Now()
	switch newest, at := newestBackup(d.Config.Home); {
	case newest != "":
		check.Text = "the newest is " + agency.ShortDuration(now.Sub(at)) + " old: " + newest
	default:
		check.Text = "none yet"
	}
	switch {
	case d.active.config().DB.Backups == 0:
		check.Level, check.Text, check.Fix = levelNote, check.Text+"; none are made", "set [db] backups in "+d.Config.Path
	case now.Sub(due) > backupLate-backupEvery:
		check.Level, check.Fix = levelWarning, "agency daemon logs says why; by hand: agency db backup"
	}
	return check
}
