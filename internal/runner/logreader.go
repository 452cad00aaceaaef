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

	"golang.org/x/sys/unix"
)

// Log reads one log of an attempt, which may still be growing.
type Log struct {
	path   string
	f      *os.File
	offset int64 // of the next byte, counted from the first one ever written
}

// OpenLog opens the log of a stream, "runner" (everything), "stdout" or "stderr", at the output since a
// time, starting up to a second earlier; the zero time is the beginning. Read returns io.EOF at the
// present end and may be called again for more. The caller closes it.
func OpenLog(attemptDir, stream string, since time.Time) (*Log, error) {
	names := map[string]string{"runner": runnerLog, "stdout": stdoutLog, "stderr": stderrLog}
	name, ok := names[stream]
	if !ok {
		return nil, fmt.Errorf("open log: there is no stream %q", stream)
	}
	dir := filepath.Join(attemptDir, logsDir)
	l := &Log{path: filepath.Join(dir, name)}
	err := l.open()
	if errors.Is(err, unix.ELOOP) && stream == "stdout" { // on a terminal, stdout is a link to the only log
		l.path = filepath.Join(dir, runnerLog)
		err = l.open()
	}
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", stream, err)
	}
	if since.IsZero() {
		return l, nil
	}
	offset, found, err := findSince(filepath.Join(dir, indexFile), stream, since)
	if err == nil && !found {
		offset, err = l.end()
	}
	if err == nil {
		err = l.seek(offset)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", stream, err), l.Close())
	}
	return l, nil
}

// Offset returns the offset of the next byte that Read returns, counted from the first one ever
// written.
func (l *Log) Offset() int64 { return l.offset }

// GoTo makes Read continue at an offset. If those bytes were dropped, it continues with the oldest
// that are left, and the first line reports the loss.
func (l *Log) GoTo(offset int64) error { return l.seek(offset) }

// Tail returns the last bytes of a log.
func Tail(attemptDir, stream string, bytes int64) ([]byte, error) {
	l, err := OpenLog(attemptDir, stream, time.Time{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	end, err := l.end()
	if err == nil {
		err = l.seek(max(0, end-bytes))
	}
	if err != nil {
		return nil, fmt.Errorf("read the end of log %s: %w", stream, err)
	}
	return io.ReadAll(io.LimitReader(l, bytes))
}

// Read continues to read the log. When the file was replaced because it had become too long, Read
// continues in the new one; what was dropped before it was read is missing, and the new file's
// first line reports it.
func (l *Log) Read(p []byte) (int, error) {
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

// Close closes the log.
func (l *Log) Close() error { return l.f.Close() }

// open opens the file at its beginning. It refuses links and does not wait for the writer of a
// FIFO.
func (l *Log) open() error {
	f, err := openRegular(l.path)
	if err != nil {
		return err
	}
	l.f, l.offset = f, 0
	return l.seek(0)
}

// seek moves to an offset. For an offset that was dropped, it moves to the first line, which
// reports the loss.
func (l *Log) seek(offset int64) error {
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

// end returns the offset after the last byte.
func (l *Log) end() (int64, error) {
	info, err := l.f.Stat()
	if err != nil {
		return 0, err
	}
	at, err := l.f.Seek(0, io.SeekCurrent)
	return l.offset + info.Size() - at, err
}

func (l *Log) replaced() (bool, error) {
	named, err := os.Lstat(l.path)
	if err != nil {
		return false, nil // removed with its run: the open file can still be read
	}
	opened, err := l.f.Stat()
	return err == nil && !os.SameFile(named, opened), err
}

func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// findSince finds in the index the offset where output at or after since begins. Each line covers
// the second of output after it. found is false when there is no such output yet.
func findSince(index, stream string, since time.Time) (offset int64, found bool, err error) {
	f, err := openRegular(index)
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
