package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve reserves the first bytes of a file on its disk, also beyond its end, without changing its
// size. It can be repeated. When the file system does not support it, Reserve returns
// errors.ErrUnsupported.
func Reserve(f *os.File, bytes int64) error {
	for {
		// Unlike the calls of os, this one is not repeated when a signal interrupts it, and the Go
		// runtime sends signals to its own threads.
		if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
