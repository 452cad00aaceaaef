package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// RootCause returns a file error without its operation and path, which the caller's message names.
func RootCause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// Count returns a number and the noun that it counts.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// OrDash returns s, or a dash for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// OrEmpty returns list, or an empty list for nil, as requests need it.
func OrEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// OpenRegular opens a regular file; it follows links, because the user named it. Anything that
// would block or never end is refused.
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

// ErrNotRegular is the error for a file that is a folder, a device or a pipe.
var ErrNotRegular = errors.New("it is not a regular file")

// NotRecorded is the note for an attempt whose newest state is only in the daemon's memory.
const NotRecorded = "not in the record yet: the disk takes nothing; it is tried again and again"
