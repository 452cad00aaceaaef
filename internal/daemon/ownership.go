package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// writeBackTimeout bounds the copy of a record whose files were deleted.
const writeBackTimeout = time.Minute

// checkOwn looks whether the lock and the database in the data root are still the files that this process has, before each commit and
// now and then. It costs a few looks at file names.
//
// When another process has the lock, this one ends as if it were killed: what was begun is the next daemon's to finish. When the
// database was deleted or replaced, the record is written back, nothing more is written, and Run returns ErrAgain.
func (d *Daemon) checkOwn() error {
	kept, renewed := d.root.keep()
	if !kept {
		d.Log.Error("another process has the lock of the data root, or it is gone; ending", "lock", d.root.path)
		d.End(agency.ExitError)
	}
	if renewed {
		d.Log.Warn("the lock of the data root was deleted, locked again", "lock", d.root.path)
		d.tell(api.DoingServe)
	}
	if d.again.Load() {
		return errStopping()
	}
	if lost := d.store.Displaced(); lost != "" {
		return d.writeBack(lost)
	}
	return nil
}

// writeBack copies the record, which this process still has open, to where a restore leaves its copy: the next start puts it in place,
// and keeps what is there instead. When that fails it is tried again before the next commit, and until then nothing is written: it
// would be lost.
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
