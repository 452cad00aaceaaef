package limit

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Times of measuring.
const (
	lookEvery = 250 * time.Millisecond
	walkEvery = 30 * time.Second
)

// leastFile is how many bytes a file counts at least, so that very many empty files reach the limit too.
const leastFile = 4 << 10

// meter measures how much folders hold. Walking them takes long, so it does that only when their
// file system has lost so much room that they may be full.
type meter struct {
	dirs  []string
	limit int64

	used    int64
	walked  time.Time
	free    int64 // bytes of the file system that were free then
	freeOfs int64 // likewise inodes
}

// over returns how much the folders hold, as last measured, and whether that is more than their
// limit.
func (m *meter) over(now time.Time) (used int64, over bool) {
	free, inodes := room(m.dirs[0])
	lost := max(m.free-free, (m.freeOfs-inodes)*leastFile)
	if m.walked.IsZero() || lost >= (m.limit-m.used)/2 || now.Sub(m.walked) > walkEvery || now.Before(m.walked) {
		m.used, m.walked, m.free, m.freeOfs = measure(m.dirs), now, free, inodes
	}
	return m.used, m.used > m.limit
}

// measure returns how many bytes of the disk folders take. It follows no link, counts a file with
// several names once, and skips what is gone or cannot be read.
func measure(dirs []string) int64 {
	var used int64
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry == nil {
				return nil //nolint:nilerr // it is gone, or cannot be read
			}
			info, err := os.Lstat(path)
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			s, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				return nil
			}
			if s.Nlink > 1 && !entry.IsDir() {
				of := inode{uint64(s.Dev), s.Ino} //nolint:unconvert,nolintlint // another type on macOS
				if seen[of] {
					return nil
				}
				seen[of] = true
			}
			used += max(s.Blocks*512, leastFile)
			return nil
		})
	}
	return used
}
