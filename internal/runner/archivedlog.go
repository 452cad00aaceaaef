package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency/internal/file"
)

// archivedLog reads a file that an agent in the mode protocol writes itself: first its archive, and then
// the rest in the file.
type archivedLog struct {
	archive archive
	name    string // of the file, in the folder of the attempt
	f       *os.File
	part    io.ReadCloser // the segment that is being read; nil while f is read
	partEnd int64
	offset  int64 // of the next byte, counted from the first one ever written
	archEnd int64 // of the archive, when it was last looked at
}

// openArchived opens such a file at its beginning.
func openArchived(attemptDir, name string) (*archivedLog, error) {
	f, err := file.OpenRegular(filepath.Join(attemptDir, name))
	if err != nil {
		return nil, err
	}
	l := &archivedLog{archive: archive{dir: attemptDir}, name: name, f: f}
	if _, err := l.enter(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *archivedLog) Offset() int64 { return l.offset }

func (l *archivedLog) GoTo(offset int64) error {
	l.leave()
	l.offset = max(0, offset)
	_, err := l.enter()
	return err
}

func (l *archivedLog) Read(p []byte) (int, error) {
	for {
		if l.part != nil {
			n, err := l.part.Read(p)
			l.offset += int64(n)
			switch {
			case n > 0:
				return n, nil
			case !errors.Is(err, io.EOF):
				return 0, err
			case l.offset != l.partEnd:
				return 0, fmt.Errorf("read the log: %w", io.ErrUnexpectedEOF)
			}
			l.leave()
		}
		n, err := l.f.ReadAt(p, l.offset)
		// A part that the archive still does not have was not yet freed in the file when it was read.
		archived, failed := l.enter()
		switch {
		case failed != nil:
			return 0, failed
		case !archived:
			l.offset += int64(n)
			if n > 0 {
				err = nil
			}
			return n, err
		}
	}
}

// enter opens the segment of the archive that has the next byte, and reports whether there is one.
func (l *archivedLog) enter() (bool, error) {
	all, err := l.archive.segments(l.name)
	if err != nil {
		return false, err
	}
	for i, s := range all {
		l.archEnd = s.end
		switch {
		case l.offset >= s.end:
		case l.offset < s.begin && i == 0:
			lost := fmt.Sprint(droppedPrefix, s.begin, droppedSuffix)
			l.part, l.offset = io.NopCloser(strings.NewReader(lost)), s.begin-int64(len(lost)) // the line is not part of the count
			l.partEnd = s.begin
			return true, nil
		default:
			if l.part, err = s.open(l.offset); errors.Is(err, fs.ErrNotExist) {
				return l.enter() // it was dropped meanwhile
			}
			l.partEnd = s.end
			return err == nil, err
		}
	}
	if l.offset < l.archEnd {
		return false, errors.New("read the log: its archive is gone")
	}
	return false, nil
}

func (l *archivedLog) end() (int64, error) {
	info, err := l.f.Stat()
	if err != nil {
		return 0, err
	}
	return max(l.archEnd, info.Size()), nil
}

func (l *archivedLog) leave() {
	if l.part != nil {
		_ = l.part.Close()
		l.part = nil
	}
}

func (l *archivedLog) Close() error {
	l.leave()
	return l.f.Close()
}
