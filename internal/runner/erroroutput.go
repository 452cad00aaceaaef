package runner

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// stderrFile is the error output of an agent in the mode protocol, which the agent writes itself.
const stderrFile = logsDir + "/" + stderrLog

// errorOutput limits how much of the disk the error output of an agent takes: it moves the beginning into
// the archive. A wrapper that is killed meanwhile leaves a file that is longer than it needs to be; the next
// move continues from there.
type errorOutput struct {
	archive archive
	busy    atomic.Bool // guards the others
	kept    int64       // how much of the output the archive has
	next    int64       // the length at which more goes into the archive
}

func openErrorOutput(a archive) (*errorOutput, error) {
	all, err := a.segments(stderrFile)
	if err != nil {
		return nil, err
	}
	e := &errorOutput{archive: a}
	if n := len(all); n > 0 {
		e.kept = all[n-1].end
	}
	e.next = e.kept + rotateEvery
	return e, nil
}

// bound begins to move the beginning of the error output into the archive when enough was added.
func (e *errorOutput) bound() {
	info, err := os.Lstat(filepath.Join(e.archive.dir, stderrFile))
	if err != nil || !e.busy.CompareAndSwap(false, true) {
		return
	}
	switch size := info.Size(); {
	case size >= e.next:
		go e.shorten(size)
		return
	case size < e.kept:
		_ = e.extend() // or the next time
	}
	e.busy.Store(false)
}

// shorten moves the first size bytes into the archive. On a full disk, a later call does it.
func (e *errorOutput) shorten(size int64) {
	defer e.busy.Store(false)
	if e.archive.add(stderrFile, size) == nil {
		e.kept = size
		_ = e.archive.free(stderrFile, size) // or the next time
	}
	e.next = size + rotateEvery
}

// extend gives the file its length again after a program has truncated it, as a shell does for
// "echo > /dev/stderr": what is written next must come after what the archive has.
func (e *errorOutput) extend() error {
	f, err := os.OpenFile(filepath.Join(e.archive.dir, stderrFile), os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(e.kept), f.Close())
}
