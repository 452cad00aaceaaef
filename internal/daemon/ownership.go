package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// writeBackTimeout limits the copy of a record whose files were deleted.
const writeBackTimeout = time.Minute

// checkOwn checks, before each commit and from time to time, whether the lock and the database in
// the data root are still the files that this process has open. It costs a few file lookups.
//
// When another process has the lock, this process ends as if it were killed: the next daemon
// finishes its work. When the database was deleted or replaced, checkOwn writes the record back,
// nothing more is written, and Run returns ErrAgain, unless a client asked for the stop.
func (d *Daemon) checkOwn() error {
	kept, renewed := d.root.keep()
	if !kept {
		d.Log.Error("another process has the lock of the data root, or it is gone; ending", "lock", d.root.path)
		d.End(agency.ExitError)
	}
	if renewed {
		d.Log.Warn("the lock of the data root was deleted, locked again", "lock", d.root.path)
		recordDoing(d.Config.Home, d.Log, api.DoingServe)
	}
	if d.again.Load() {
		return errStopping()
	}
	if lost := d.store.Displaced(); lost != "" {
		return d.writeBack(lost)
	}
	return nil
}

// isFollowed reports whether another daemon follows in this process. A client that asked for the
// stop waits for the end of the process; the next daemon puts the copy in place.
func (d *Daemon) isFollowed() bool { return d.again.Load() && !d.stopAsked.Load() }

// writeBack copies the record, which this process still has open, to where a restore leaves its
// copy: the next start puts it in place and keeps the file that is there now. When the copy fails,
// it is tried again before the next commit. Until then nothing is written, since it would be lost.
func (d *Daemon) writeBack(lost string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.again.Load() {
		return errStopping()
	}
	d.Log.Error("a file of the database was deleted or replaced; writing the record back", "file", lost)
	ctx, cancel := context.WithTimeout(context.Background(), writeBackTimeout)
	defer cancel()
	database := databaseOf(d.Config.Home, d.clock.Now)
	if err := d.store.Backup(ctx, database.Replacement()); err != nil {
		d.Log.Error("write the record back", "err", err)
		return agency.Errorf(agency.CodeDBMissing, "%s was deleted or replaced, and cannot be written back: %w", lost, err).
			WithHint("%s", database.Hint())
	}
	d.again.Store(true)
	d.stop()
	return errStopping()
}
