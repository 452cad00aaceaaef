package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/api"
)

// smallDisk is the part of a disk that is enough to be free where [disk] min_free is more.
const smallDisk = 10

// disks are the disks of the data root and of the worktrees, where that is another one.
func (d *Daemon) disks() ([]agency.Disk, error) {
	disks := []agency.Disk{}
	var of uint64 // the first one's
	for _, path := range []string{d.Config.Home, filepath.Join(d.Config.Home, "worktrees")} {
		var file unix.Stat_t
		err := unix.Stat(path, &file)
		if errors.Is(err, fs.ErrNotExist) && len(disks) > 0 {
			break // no run was ever made
		}
		var system unix.Statfs_t
		if err == nil {
			err = unix.Statfs(path, &system)
		}
		if err != nil {
			return nil, fmt.Errorf("look at the disk of %s: %w", path, err)
		}
		device := uint64(file.Dev) //nolint:unconvert,nolintlint // another type on another system
		if len(disks) > 0 && device == of {
			break
		}
		of = device
		block := int64(system.Bsize) //nolint:unconvert,nolintlint // likewise
		disks = append(disks, agency.Disk{
			Path: path, Free: int64(system.Bavail) * block, Least: min(d.active.config().Disk.MinFree, int64(system.Blocks)*block/smallDisk),
		})
	}
	return disks, nil
}

// lookAtDisks is disks for the watchdog. A reserve that had no room when the daemon started is taken when there is.
func (d *Daemon) lookAtDisks() ([]agency.Disk, error) {
	d.store.KeepRoom()
	return d.disks()
}

// checkRoom refuses what needs more of a disk that is nearly full. A disk that cannot be looked at is left to who writes on it.
func (d *Daemon) checkRoom() error {
	disks, err := d.disks()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for i := range disks {
		if disks[i].Low(false) {
			return agency.Errorf(agency.CodeDiskLow, "%s", disks[i].Words()).
				WithHint("make room: agency gc shows the runs that can go; or set [disk] min_free in %s", d.active.config().Path)
		}
	}
	return nil
}

// checkReserve tells where nothing is reserved for the record.
func (d *Daemon) checkReserve() []api.Check {
	err := d.store.NoRoom()
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return nil // see docs/crash.md for systems that cannot
	}
	return []api.Check{{
		Name: "reserve", Level: levelWarning, Text: "no room on the disk is reserved for the record, which a full disk would stop: " + err.Error(),
		Fix: "make room in " + d.Config.Home + "; it is tried again every " + agency.ShortDuration(d.active.config().Watchdog.PollInterval),
	}}
}
