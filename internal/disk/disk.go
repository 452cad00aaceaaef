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

// smallDisk limits MinFree on small disks: a tenth of a disk is enough free space.
const smallDisk = 10

// Disks are the disks of a data root and of its worktrees.
type Disks struct {
	Home    string       // the data root
	MinFree func() int64 // free space needed for another run, in bytes
	Config  string       // path of the configuration file, which sets MinFree
}

// Look returns the disk of the data root, and that of the worktrees when it is a different one.
func (d Disks) Look() ([]agency.Disk, error) {
	disks := []agency.Disk{}
	var of uint64 // the device of the first one
	for _, path := range []string{d.Home, filepath.Join(d.Home, "worktrees")} {
		var file unix.Stat_t
		err := unix.Stat(path, &file)
		if errors.Is(err, fs.ErrNotExist) && len(disks) > 0 {
			break // there was no run yet
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

// CheckRoom returns E_DISK_LOW when a disk is nearly full. It ignores a disk that it cannot look
// at: writing there fails by itself.
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

// CheckSpare returns E_DISK_LOW unless the disks have twice the space that another run needs: less
// is kept for the runs themselves. A disk that it cannot look at has nothing to spare.
func (d Disks) CheckSpare() error {
	disks, err := d.Look()
	if err != nil {
		return err
	}
	for i := range disks {
		if disks[i].Least *= 2; disks[i].Low(false) {
			return agency.Errorf(agency.CodeDiskLow, "%s", disks[i].Words())
		}
	}
	return nil
}
