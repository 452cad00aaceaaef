// Package disk decides whether the disks that agency writes on have room for another run.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agency"
)

// smallDisk is the part of a disk that is enough to be free when MinFree is more: a tenth.
const smallDisk = 10

// Disks are the disks of a data root and of its worktrees.
type Disks struct {
	Home    string       // the data root
	MinFree func() int64 // what must be free for another run, in bytes
	Config  string       // path of the configuration, which sets MinFree
}

// Look returns the disk of the data root, and that of the worktrees when it is another one.
func (d Disks) Look() ([]agency.Disk, error) {
	disks := []agency.Disk{}
	var of uint64 // the first one's
	for _, path := range []string{d.Home, filepath.Join(d.Home, "worktrees")} {
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
			Path: path, Free: int64(system.Bavail) * block, Least: min(d.MinFree(), int64(system.Blocks)*block/smallDisk),
		})
	}
	return disks, nil
}

// CheckRoom refuses what needs more of a disk that is nearly full: E_DISK_LOW. A disk that it cannot look at it leaves to
// those who write on it.
func (d Disks) CheckRoom() error {
	disks, err := d.Look()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for i := range disks {
		if disks[i].Low(false) {
			return agency.Errorf(agency.CodeDiskLow, "%s", disks[i].Words()).
				WithHint("make room: agency gc shows the runs that can go; or set [disk] min_free in %s", d.Config)
		}
	}
	return nil
}
