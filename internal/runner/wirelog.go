package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agency/internal/protocol"
)

// Wire reads what an agent said in its own protocol, which may still be growing: first the archive, and
// then the file that the agent writes.
type Wire struct {
	archive archive
	f       *os.File
	part    io.ReadCloser // of the archive; nil while f is read
	partEnd int64
	offset  int64 // of the next byte, counted from the first one ever written
	end     int64 // of the archive, when it was last looked at
}

// OpenWire opens what an agent said from its beginning on. Read returns io.EOF at the present end and may
// be called again for more. The caller closes it.
func OpenWire(attemptDir string) (*Wire, error) {
	f, err := openRegular(filepath.Join(attemptDir, protocol.WireFile))
	if err != nil {
		return nil, fmt.Errorf("open log wire: %w", err)
	}
	w := &Wire{archive: archive{dir: attemptDir}, f: f}
	if _, err := w.enter(); err != nil {
		return nil, errors.Join(fmt.Errorf("open log wire: %w", err), w.Close())
	}
	return w, nil
}

// Offset returns the offset of the next byte that Read returns, counted from the first one ever
// written.
func (w *Wire) Offset() int64 { return w.offset }

// GoTo makes Read continue at an offset. If those bytes were dropped, it continues with the oldest
// that are left, after a line that reports the loss.
func (w *Wire) GoTo(offset int64) error {
	w.leave()
	w.offset = max(0, offset)
	_, err := w.enter()
	return err
}

// Read continues to read.
func (w *Wire) Read(p []byte) (int, error) {
	for {
		if w.part != nil {
			n, err := w.part.Read(p)
			w.offset += int64(n)
			switch {
			case n > 0:
				return n, nil
			case !errors.Is(err, io.EOF):
				return 0, err
			case w.offset != w.partEnd:
				return 0, fmt.Errorf("read log wire: %w", io.ErrUnexpectedEOF)
			}
			w.leave()
		}
		n, err := w.f.ReadAt(p, w.offset)
		// What is not in the archive now was not freed in the file before now.
		archived, failed := w.enter()
		switch {
		case failed != nil:
			return 0, failed
		case !archived:
			w.offset += int64(n)
			if n > 0 {
				err = nil
			}
			return n, err
		}
	}
}

// enter opens the part of the archive that has the next byte; it reports false if none has.
func (w *Wire) enter() (bool, error) {
	all, err := w.archive.segments(protocol.WireFile)
	if err != nil {
		return false, err
	}
	for i, s := range all {
		w.end = s.end
		switch {
		case w.offset >= s.end:
		case w.offset < s.begin && i == 0:
			lost := fmt.Sprint(droppedPrefix, s.begin, droppedSuffix)
			w.part, w.offset = io.NopCloser(strings.NewReader(lost)), s.begin-int64(len(lost)) // the line is not part of the count
			w.partEnd = s.begin
			return true, nil
		default:
			if w.part, err = s.open(w.offset); errors.Is(err, fs.ErrNotExist) {
				return w.enter() // it was dropped meanwhile
			}
			w.partEnd = s.end
			return err == nil, err
		}
	}
	if w.offset < w.end {
		return false, errors.New("read log wire: its archive is gone")
	}
	return false, nil
}

func (w *Wire) leave() {
	if w.part != nil {
		_ = w.part.Close()
		w.part = nil
	}
}

// Close closes it.
func (w *Wire) Close() error {
	w.leave()
	return w.f.Close()
}
