package file

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The reasons to refuse an untrusted file.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file too large")
)

// Cause returns the error of a file operation without the operation and the path, for a message
// that names them itself.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readFlags keep a read from blocking on a pipe without a writer.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// ReadRegular reads a file of at most limit bytes. A link, directory, pipe, socket or device is
// ErrNotRegular, a larger file is ErrTooLarge; both cost no more than opening it. It never blocks
// on a pipe. Only the last component of path is protected from links; where the folders are
// untrusted too, use ReadBeneath.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return read(f, path, nil, limit)
}

// IsRegular reports whether a path is that of a regular file, not of a link to one.
func IsRegular(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// OpenRegular opens a file of any size for reading, and refuses the files that ReadRegular refuses.
// The caller closes it.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, readFlags|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), // a link
		errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EOPNOTSUPP): // a socket on Linux, on macOS
		return nil, refuse(path, ErrNotRegular)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse(path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read checks that f is a regular file, and the same file as before if that is given, and reads it.
func read(f *os.File, path string, before fs.FileInfo, limit int64) ([]byte, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(), before != nil && !os.SameFile(before, info):
		return nil, refuse(path, ErrNotRegular)
	case info.Size() > limit:
		return nil, refuse(path, ErrTooLarge)
	}
	var b bytes.Buffer
	// The size is only a hint: the file may grow while it is read. bytes.MinRead spares the last
	// growth of the buffer.
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, refuse(path, ErrTooLarge)
	}
	return b.Bytes(), nil
}

func refuse(path string, why error) error {
	return &fs.PathError{Op: "read", Path: path, Err: why}
}
