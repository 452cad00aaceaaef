package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// RootCause takes the operation and path off a file error; the caller names them better.
func RootCause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// Count is a number and the noun that it counts.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// OrDash is s, or a dash for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// OrEmpty is list, or an empty one for nil, as requests have it.
func OrEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// OpenRegular opens a file, through links since the user named it, but nothing that would block or never end.
func OpenRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, RootCause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := os.Open(path)
	return f, RootCause(err)
}

// ErrNotRegular is the error about a file that is a folder, a device or a pipe.
var ErrNotRegular = errors.New("it is not a regular file")

// NotRecorded is what holds of an attempt whose newest state is in the daemon's memory alone.
const NotRecorded = "not in the record yet: the disk takes nothing; it is tried again and again"
