package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agency/internal/file"
)

// The names in the folder of logs.
const (
	runnerLog = "runner.log"
	stdoutLog = "runner.stdout.log"
	stderrLog = "runner.stderr.log"
	indexFile = "index"
)

// indexEvery is the resolution of the index of times.
const indexEvery = time.Second

// logs are the logs of one attempt: both streams merged in the order of arrival, and each stream on
// its own. On a terminal there is only one stream.
type logs struct {
	mu                     sync.Mutex
	merged, stdout, stderr *logFile // the last two are nil on a terminal
	index                  *os.File
	indexed                time.Time
	lost                   *atomic.Int64 // bytes missing in merged
}

// createLogs creates the folder and the files. A log that reaches limit bytes loses its oldest
// half; 0 is no limit.
func createLogs(dir string, terminal bool, limit int64) (*logs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &logs{lost: new(atomic.Int64)}
	var err error
	if l.merged, err = createLog(filepath.Join(dir, runnerLog), limit); err != nil {
		return nil, err
	}
	stdoutPath := filepath.Join(dir, stdoutLog)
	if l.stderr, err = createLog(filepath.Join(dir, stderrLog), limit); err != nil {
		return nil, err
	}
	if terminal {
		err = os.Symlink(runnerLog, stdoutPath)
		l.stderr.close()
		l.stderr = nil
	} else {
		l.stdout, err = createLog(stdoutPath, limit)
	}
	if err != nil {
		return nil, err
	}
	l.index, err = os.OpenFile(filepath.Join(dir, indexFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	return l, err
}

// resumeLogs opens the logs of a runner in the mode protocol again. What the merged log has after a
// checkpoint is made again from the journal, with the same bytes, so that readers continue where they are.
func resumeLogs(dir string, limit int64, from *checkpoint) (*logs, error) {
	merged, err := resumeLog(filepath.Join(dir, runnerLog), limit, from.Log)
	if err != nil {
		return nil, err
	}
	merged.lost = from.Lost
	l := &logs{lost: new(atomic.Int64), merged: merged}
	// The index has the times of what is made again.
	l.indexed = time.Now()
	l.index, err = os.OpenFile(filepath.Join(dir, indexFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	return l, err
}

// resumeLog opens a log of which only the bytes before end count.
func resumeLog(path string, limit, end int64) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, 128)
	n, err := f.ReadAt(begin, 0)
	info, failed := f.Stat()
	if failed != nil || err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, failed, f.Close())
	}
	l := &logFile{path: path, f: f, limit: limit, shrink: limit}
	if l.dropped, l.head = parseDropped(begin[:n]); end < l.dropped { // the log has lost all of them
		_ = f.Close()
		return l, l.restart(end)
	}
	l.size = min(l.head+end-l.dropped, info.Size()) // a full disk may have taken some back
	if err := f.Truncate(l.size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// restart replaces the file by one that has lost everything before an offset.
func (l *logFile) restart(offset int64) (err error) {
	if l.f, err = os.OpenFile(l.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	head := 0
	if offset > 0 {
		head, err = fmt.Fprint(l.f, droppedPrefix, offset, droppedSuffix)
	}
	if err == nil {
		err = os.Rename(l.f.Name(), l.path)
	}
	l.head, l.size, l.dropped = int64(head), int64(head), offset
	return err
}

// write adds output of a stream. It never fails: what the disk does not take is counted and
// reported later.
func (l *logs) write(stream *logFile, p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.indexed) >= indexEvery {
		l.indexed = now
		l.mark(now)
	}
	l.merged.write(p)
	if stream != nil {
		stream.write(p)
	}
	l.lost.Store(l.merged.lost)
}

// mark writes into the index where the output from now on begins. A line that the disk does not
// take only makes `since` less exact.
func (l *logs) mark(now time.Time) {
	stdout, stderr := l.merged.end(), int64(0)
	if l.stdout != nil {
		stdout, stderr = l.stdout.end(), l.stderr.end()
	}
	_, _ = fmt.Fprintf(l.index, "%d %d %d %d\n", now.UnixMilli(), l.merged.end(), stdout, stderr)
}

// position returns how long the merged log is, and how many of these bytes are missing in it.
func (l *logs) position() (end, lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.merged.end(), l.merged.lost
}

func (l *logs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range []*logFile{l.merged, l.stdout, l.stderr} {
		if log != nil {
			log.lose(0)
			log.close()
		}
	}
	_ = l.index.Close()
}

// logFile is one log. Offsets in it are counted from the first byte ever written, so they stay
// valid when the oldest part is dropped.
type logFile struct {
	path      string
	f         *os.File
	limit     int64
	size      int64 // of the file
	head      int64 // of its first line, if that reports dropped bytes
	dropped   int64 // bytes that are no longer in it
	gap       gap   // the newest one
	withdrawn int64 // missing bytes that no line reports yet
	lost      int64 // missing bytes in all gaps
	shrink    int64 // size at which the oldest half is dropped
}

// gap is where a log lacks output that the disk did not take.
type gap struct {
	lost int64 // bytes
	mark int64 // where in the file the line that reports it begins
	open bool  // nothing was written after it
}

func createLog(path string, limit int64) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_ = file.Reserve(f, 1) // without it, an empty log could not even report a full disk
	return &logFile{path: path, f: f, limit: limit, shrink: limit}, nil
}

// end returns the offset of the next byte.
func (l *logFile) end() int64 { return l.dropped + l.size - l.head }

// write adds p to the log. What the disk does not take is counted. A line in its place reports the
// number from the first lost byte on, so that the log shows the gap whatever happens next.
func (l *logFile) write(p []byte) {
	l.lose(0) // what could not be reported before
	n, err := l.f.WriteAt(p, l.size)
	if err != nil {
		if l.gap.open {
			n = 0 // within a gap, a piece is written as a whole or not at all
		}
		l.size += int64(n)
		_ = l.f.Truncate(l.size)
		l.lose(int64(len(p) - n))
		return
	}
	l.size += int64(n)
	l.gap.open = false
	if l.limit > 0 && l.size > l.shrink {
		if err := l.dropOldest(); err != nil {
			l.shrink = l.size + l.limit/2 // no room for a copy now: try again later
		}
	}
}

// lose counts bytes that are missing at the end of the log, and reports them there.
func (l *logFile) lose(bytes int64) {
	l.lost, l.withdrawn = l.lost+bytes, l.withdrawn+bytes
	if l.withdrawn == 0 || !l.gap.open && !l.openGap() {
		return
	}
	l.gap.lost, l.withdrawn = l.gap.lost+l.withdrawn, 0
	_, _ = l.f.WriteAt(gapLine(l.gap.lost), l.gap.mark)
}

// openGap finds a place for the line that reports a gap. If the disk has no room for it, the line
// replaces the newest bytes before the gap, which then are missing too; if only a few bytes were
// written since the previous gap, that gap is extended.
func (l *logFile) openGap() bool {
	line := gapLine(l.withdrawn)
	length := int64(len(line))
	if _, err := l.f.WriteAt(line, l.size); err == nil {
		l.gap, l.size = gap{mark: l.size, open: true}, l.size+length
		return true
	}
	_ = l.f.Truncate(l.size)
	at := max(l.size-length, l.head)
	if before := l.gap.mark + length; l.gap.lost > 0 && at < before {
		l.withdraw(before)
		l.gap.open = true
		return l.f.Truncate(l.size) == nil
	}
	if _, err := l.f.WriteAt(line, at); err != nil {
		return false
	}
	l.withdraw(at)
	l.gap, l.size = gap{mark: at, open: true}, at+length
	return true
}

// withdraw moves the end of the log back to at, and counts the bytes after that as lost.
func (l *logFile) withdraw(at int64) {
	l.lost, l.withdrawn, l.size = l.lost+l.size-at, l.withdrawn+l.size-at, at
}

// gapLine returns the line that reports lost bytes. Its length is constant, so that it can be
// rewritten as the number grows.
func gapLine(lost int64) []byte {
	return fmt.Appendf(nil, "\n%-90s\n", fmt.Sprintf("[agency: %d bytes are missing here, the disk did not take them]", lost))
}

// droppedLine begins a log that lost its oldest part.
const (
	droppedPrefix = "[agency: the first "
	droppedSuffix = " bytes of this log were dropped]\n"
)

// dropOldest replaces the file by one with its newer half. A reader of the old file finds the new
// one under the name.
func (l *logFile) dropOldest() error {
	old, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	keep := l.limit / 2
	dropped := l.end() - keep
	if _, err := old.Seek(l.size-keep, io.SeekStart); err != nil {
		return err
	}
	next, err := os.OpenFile(l.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	head, err := fmt.Fprintf(next, "%s%d%s", droppedPrefix, dropped, droppedSuffix)
	if err == nil {
		_, err = io.CopyN(next, old, keep)
	}
	if err == nil {
		err = os.Rename(next.Name(), l.path)
	}
	if err != nil {
		_ = next.Close()
		_ = os.Remove(next.Name())
		return err
	}
	l.close()
	l.gap = gap{} // it may be in the dropped part
	l.f, l.head, l.size, l.dropped, l.shrink = next, int64(head), int64(head)+keep, dropped, l.limit
	return nil
}

func (l *logFile) close() { _ = l.f.Close() }

// parseDropped parses the first line of a log. It returns how many bytes were dropped before what
// follows, and how long the line is; both are 0 when the log is whole.
func parseDropped(begin []byte) (dropped, head int64) {
	line, _, ok := bytes.Cut(begin, []byte("\n"))
	if !ok {
		return 0, 0
	}
	number, ok := bytes.CutPrefix(line, []byte(droppedPrefix))
	if !ok {
		return 0, 0
	}
	number, ok = bytes.CutSuffix(number, []byte(droppedSuffix[:len(droppedSuffix)-1]))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if !ok || err != nil || n <= 0 {
		return 0, 0
	}
	return n, int64(len(line) + 1)
}
