package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Free releases the disk space of the first bytes of a file. They read as zeros from then on, and
// all offsets stay. Another program may append to the file meanwhile. When the file system does not
// support it, Free returns errors.ErrUnsupported.
func Free(f *os.File, bytes int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
		if !errors.Is(err, unix.EINTR) { // see Reserve
			return err
		}
	}
}
