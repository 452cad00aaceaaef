package runner

import (
	"io"
	"time"

	"agency"
)

// Internals that the external tests need.

// LongestLine is how much of a line a terminal in line mode keeps.
const LongestLine = longestLine

// CreateLogs creates the logs of a terminal.
func CreateLogs(dir string, limit int64) (write func([]byte), closeLogs func(), err error) {
	l, err := createLogs(dir, true, limit)
	if err != nil {
		return nil, nil, err
	}
	return func(p []byte) { l.write(nil, p) }, l.close, nil
}

// LoseBytes creates a log that has lost bytes on a full disk.
func LoseBytes(path string, lost int64) (write func([]byte), err error) {
	l, err := createLog(path, 0)
	if err != nil {
		return nil, err
	}
	l.lose(lost)
	return l.write, nil
}

// JournalTo returns what adds lines to a journal.
func JournalTo(w io.Writer) func(line []byte) error {
	j := &journal{to: w}
	return j.add
}

// ScanModes reports whether bracketed paste is on after the pieces.
func ScanModes(pieces ...[]byte) bool {
	var m modes
	for _, p := range pieces {
		m.scan(p)
	}
	return m.paste
}

// Typing tracks a user's keys.
type Typing struct{ t typing }

func (k *Typing) Feed(p []byte, now time.Time) { k.t.feed(p, now) }
func (k *Typing) Typed(text string)            { k.t.typed(text) }
func (k *Typing) Pressed(keys string)          { k.t.pressed(keys) }
func (k *Typing) Left() (string, bool)         { return k.t.left() }
func (k *Typing) Busy(now time.Time) bool      { return k.t.busy(now) }

// ParseMessage parses one line of the wire.
func ParseMessage(line []byte) error {
	_, err := parseMessage(line)
	return err
}

// ReadLaunch reads and deletes a launch file.
var ReadLaunch = readLaunch

// Archive takes what a file of an attempt holds before to into the archive; limit is how much the archive
// may take.
func Archive(dir, name string, to, limit int64) error {
	return archive{dir: dir, limit: limit}.add(name, to)
}

// Free frees in a file what the archive has.
func Free(dir, name string, to int64) error { return archive{dir: dir}.free(name, to) }

// ResumeLog opens a log of which the bytes before end count.
func ResumeLog(path string, limit, end int64) (write func([]byte), err error) {
	l, err := resumeLog(path, limit, end)
	if err != nil {
		return nil, err
	}
	return l.write, nil
}

// ExitOfAdopted returns how a runner ended, as a wrapper finds it that adopted the runner.
func ExitOfAdopted(attemptDir string) (code int, err error) {
	w := &wrapper{launch: agency.Launch{AttemptDir: attemptDir}, adopted: &agency.Start{}}
	st, err := w.exitOf(status{})
	code, _ = st.code()
	return code, err
}
