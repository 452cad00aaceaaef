package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agency/internal/file"
	"agency/internal/protocol"
)

// Log reads one log of an attempt, which may still be growing.
type Log interface {
	// Read continues to read. It returns io.EOF at the present end, and may be called again for more.
	Read(p []byte) (int, error)
	// Offset returns the offset of the next byte that Read returns, counted from the first one ever
	// written.
	Offset() int64
	// GoTo makes Read continue at an offset. If those bytes were dropped, it continues with the oldest
	// that are left, after a line that reports the loss.
	GoTo(offset int64) error
	// Close closes the log.
	Close() error

	end() (int64, error) // the offset after the last byte
}

// OpenLog opens the log of a stream: "runner" (everything), "stdout", "stderr", or "wire", what an agent
// said in its own protocol. It begins with the output since a time, up to a second earlier; the zero time
// is the beginning, and what is on the wire has no times. The caller closes it.
func OpenLog(attemptDir, stream string, since time.Time) (Log, error) {
	l, err := openStream(attemptDir, stream)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", stream, err)
	}
	if since.IsZero() || stream == "wire" {
		return l, nil
	}
	offset, found, err := findSince(filepath.Join(attemptDir, logsDir, indexFile), stream, since)
	if err == nil && !found {
		offset, err = l.end()
	}
	if err == nil {
		err = l.GoTo(offset)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", stream, err), l.Close())
	}
	return l, nil
}

// openStream opens the log of a stream at its beginning.
func openStream(attemptDir, stream string) (Log, error) {
	if stream == "wire" {
		return openArchived(attemptDir, protocol.WireFile)
	}
	names := map[string]string{"runner": runnerLog, "stdout": stdoutLog, "stderr": stderrLog}
	name, ok := names[stream]
	if !ok {
		return nil, errors.New("there is no such stream")
	}
	if _, err := os.Lstat(filepath.Join(attemptDir, protocol.WireFile)); err == nil && stream == "stderr" {
		return openArchived(attemptDir, stderrFile)
	}
	l, err := openFileLog(filepath.Join(attemptDir, logsDir, name))
	if errors.Is(err, file.ErrNotRegular) && stream == "stdout" { // on a terminal, stdout is a link to the only log
		return openFileLog(filepath.Join(attemptDir, logsDir, runnerLog))
	}
	return l, err
}

// Tail returns the last bytes of a log.
func Tail(attemptDir, stream string, bytes int64) ([]byte, error) {
	l, err := OpenLog(attemptDir, stream, time.Time{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	end, err := l.end()
	if err == nil {
		err = l.GoTo(max(0, end-bytes))
	}
	if err != nil {
		return nil, fmt.Errorf("read the end of log %s: %w", stream, err)
	}
	return io.ReadAll(io.LimitReader(l, bytes))
}

// fileLog reads a log that the wrapper writes.
type fileLog struct {
	path   string
	f      *os.File
	offset int64 // of the next byte, counted from the first one ever written
}

// openFileLog opens such a log at its beginning.
func openFileLog(path string) (Log, error) {
	l := &fileLog{path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *fileLog) Offset() int64 { return l.offset }

func (l *fileLog) GoTo(offset int64) error { return l.seek(offset) }

// Read continues to read the log. When the file was replaced because it had become too long, Read
// continues in the new one; what was dropped before it was read is missing, and the new file's
// first line reports it.
func (l *fileLog) Read(p []byte) (int, error) {
	for {
		n, err := l.f.Read(p)
		l.offset += int64(n)
		if n > 0 || len(p) == 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		replaced, err := l.replaced()
		if err != nil {
			return 0, err
		}
		if !replaced {
			return 0, io.EOF
		}
		// The last bytes may have arrived between the read and the replacement, so the offset
		// decides, not the old file.
		offset := l.offset
		_ = l.f.Close()
		if err := l.open(); err != nil {
			return 0, fmt.Errorf("reopen log: %w", err)
		}
		if err := l.seek(offset); err != nil {
			return 0, fmt.Errorf("reopen log: %w", err)
		}
	}
}

func (l *fileLog) Close() error { return l.f.Close() }

// open opens the file at its beginning. It refuses links and does not wait for the writer of a
// FIFO.
func (l *fileLog) open() error {
	f, err := file.OpenRegular(l.path)
	if err != nil {
		return err
	}
	l.f, l.offset = f, 0
	return l.seek(0)
}

// seek moves to an offset. For an offset that was dropped, it moves to the first line, which
// reports the loss.
func (l *fileLog) seek(offset int64) error {
	begin := make([]byte, 128)
	n, err := l.f.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	dropped, head := parseDropped(begin[:n])
	at := head + offset - dropped
	if offset < dropped {
		at, offset = 0, dropped-head // the first line is not part of the count
	}
	if _, err := l.f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	l.offset = offset
	return nil
}

func (l *fileLog) end() (int64, error) {
	info, err := l.f.Stat()
	if err != nil {
		return 0, err
	}
	at, err := l.f.Seek(0, io.SeekCurrent)
	return l.offset + info.Size() - at, err
}

func (l *fileLog) replaced() (bool, error) {
	named, err := os.Lstat(l.path)
	if err != nil {
		return false, nil // removed with its run: the open file can still be read
	}
	opened, err := l.f.Stat()
	return err == nil && !os.SameFile(named, opened), err
}

// findSince finds in the index the offset where output at or after since begins. Each line covers
// the second of output after it. found is false when there is no such output yet.
func findSince(index, stream string, since time.Time) (offset int64, found bool, err error) {
	f, err := file.OpenRegular(index)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }()
	want := since.UnixMilli()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		ms, at, ok := parseIndexLine(lines.Text(), stream)
		if ok && ms > want {
			if !found {
				offset = at
			}
			return offset, true, nil
		}
		// The newest line before since still counts when since is within its second.
		if found = ok && want-ms <= indexEvery.Milliseconds(); found {
			offset = at
		}
	}
	return offset, found, lines.Err()
}

func parseIndexLine(line, stream string) (ms, offset int64, ok bool) {
	fields := strings.Fields(line)
	column := map[string]int{"runner": 1, "stdout": 2, "stderr": 3}[stream]
	if len(fields) != 4 {
		return 0, 0, false
	}
	ms, msErr := strconv.ParseInt(fields[0], 10, 64)
	offset, err := strconv.ParseInt(fields[column], 10, 64)
	return ms, offset, msErr == nil && err == nil && offset >= 0
}
