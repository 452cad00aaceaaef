package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// Data returns the first offset, from the given one on, that is not in a hole of a file. It returns
// the given one when that is unknown, and when only a hole follows.
func Data(f *os.File, offset int64) int64 {
	at, err := unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
	if err != nil {
		return offset
	}
	return at
}
