package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve reserves this many bytes of the disk for a file, also beyond its end. It can be repeated.
func reserve(path string, bytes int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes), f.Close())
}
