package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve has a file own so many bytes of its disk, beyond its end too. It is fine to repeat.
func reserve(path string, bytes int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes), f.Close())
}
