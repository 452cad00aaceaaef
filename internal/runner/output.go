package runner

import (
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency/internal/killpoint"
)

// output is what the runner writes: where it goes, and when it was seen.
type output struct {
	logs    *logs // nil until they exist
	pane    *pane // of a headless runner
	copiers []*copier
	bytes   atomic.Int64  // how many were seen so far
	passed  atomic.Int64  // how many of them their sinks have
	lost    atomic.Int64  // how many of them are missing in the merged log
	last    atomic.Int64  // when the last ones were seen, in nanoseconds of the Unix era
	came    chan struct{} // holds a token when the daemon does not know last yet
	// progress detects new content in it.
	progress *progress
}

// add starts a copier from f. sink gets each piece and must not keep it.
func (o *output) add(f *os.File, size int, sink func([]byte)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	c := &copier{f: f, raw: raw, buf: make([]byte, size), done: make(chan struct{})}
	o.copiers = append(o.copiers, c)
	go c.run(func(p []byte) { o.take(p, sink) })
	return nil
}

// take gives a piece of output to a sink, and counts it. The time of the output is known only when the
// sink has the piece: a daemon that hears of a later time reads what the log has by then.
func (o *output) take(p []byte, sink func([]byte)) {
	now := killpoint.Now()
	o.bytes.Add(int64(len(p)))
	sink(p)
	o.passed.Add(int64(len(p)))
	o.last.Store(now.UnixNano())
	o.progress.see(p, now)
	wake(o.came)
}

// shown waits until the sinks have all that was seen, or for a limit, and returns how much was seen.
func (o *output) shown(limit time.Duration) int64 {
	for begin := time.Now(); o.passed.Load() != o.bytes.Load() && time.Since(begin) < limit; {
		time.Sleep(time.Millisecond)
	}
	return o.bytes.Load()
}

// wake puts a token into a channel that holds at most one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has one already
	}
}

// closed reports whether a channel is closed to which no goroutine sends.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain waits until what the runner wrote is in the logs. When alone is set, its output ends by
// itself. Otherwise another process may keep its terminal or pipes open, and drain waits for a
// moment without output. A disk or a pane that is slow to take what was read has longer.
func (o *output) drain(alone bool) {
	begin := time.Now()
	for time.Since(begin) < drainLimit {
		waiting := false
		for _, c := range o.copiers {
			waiting = waiting || !c.ended() && (alone || !c.quiet(begin))
		}
		if !waiting {
			return
		}
		time.Sleep(time.Millisecond)
	}
	// A copier sets taking before it reads, so output is always either readable or being taken.
	taking := func(c *copier) bool { return alone && !c.ended() && c.readable() || c.taking.Load() }
	for time.Since(begin) < takeLimit && slices.ContainsFunc(o.copiers, taking) {
		time.Sleep(time.Millisecond)
	}
}

// close writes the rest to the pane and closes the logs.
func (o *output) close() {
	if o.pane != nil {
		o.pane.close()
	}
	if o.logs != nil {
		o.logs.close()
	}
}

// copier reads one terminal or pipe until its end.
type copier struct {
	f    *os.File
	raw  syscall.RawConn
	buf  []byte
	n    int
	over bool

	taking atomic.Bool  // something is read and passed on, from before the read
	idle   atomic.Int64 // since when there was nothing to read, in nanoseconds of the Unix era; 0 while there is
	done   chan struct{}
}

func (c *copier) run(sink func([]byte)) {
	defer close(c.done)
	fill := c.fill // bound once, so that no piece costs an allocation
	for !c.over {
		c.n = 0
		if err := c.raw.Read(fill); err != nil {
			c.over = true
		}
		if c.n > 0 {
			sink(c.buf[:c.n])
		}
		c.taking.Store(false)
	}
}

// fill reads what is available, up to a full buffer: a terminal returns 4 KiB at a time, and one
// large write costs less than many small ones. The runtime's poller calls it; false requests
// another call when there is more.
func (c *copier) fill(fd uintptr) bool {
	for c.n < len(c.buf) {
		c.taking.Store(runtime.GOOS == "linux") // elsewhere the file may be a blocking one
		n, err := unix.Read(int(fd), c.buf[c.n:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			if c.n == 0 {
				c.idle.Store(time.Now().UnixNano())
				c.taking.Store(false)
			}
			return c.n > 0
		case err != nil || n == 0: // a terminal returns EIO when no process has it open
			c.over = true
			return true
		}
		c.n += n
		c.taking.Store(true)
		c.idle.Store(0)
		if runtime.GOOS != "linux" {
			return true
		}
	}
	return true
}

func (c *copier) ended() bool { return closed(c.done) }

// quiet reports whether there was nothing to read for a while after begin, and nothing is there
// now.
func (c *copier) quiet(begin time.Time) bool {
	idle := c.idle.Load()
	if idle == 0 || time.Since(begin) < drainQuiet || time.Since(time.Unix(0, idle)) < drainQuiet {
		return false
	}
	return !c.readable() && !c.taking.Load()
}

// readable reports whether there is something to read now.
func (c *copier) readable() bool {
	readable := false
	err := c.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, _ := unix.Poll(fds, 0)
		readable = n > 0 && fds[0].Revents&unix.POLLIN != 0
	})
	return err != nil || readable
}
