package runner

import (
	"os"
	"runtime"
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
	bytes   atomic.Int64 // seen so far
	last    atomic.Int64 // when, in nanoseconds of the Unix era
	lost    atomic.Int64 // bytes of it that are missing in the log of everything
	// progress is what of it was news.
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
	go c.run(func(p []byte) {
		now := killpoint.Now()
		o.bytes.Add(int64(len(p)))
		o.last.Store(now.UnixNano())
		sink(p)
		o.progress.see(p, now)
	})
	return nil
}

// drain waits until what the runner wrote is in the logs. When it was alone, the end of its output comes by itself.
// Otherwise somebody may hold its terminal or pipes open, and a moment without output has to do.
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
}

// close gives the pane its last words and closes the logs.
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
	idle atomic.Int64 // since when nothing was there to read, in nanoseconds of the Unix era; 0 while there is
	done chan struct{}
}

func (c *copier) run(sink func([]byte)) {
	defer close(c.done)
	fill := c.fill // once, so that no piece costs an allocation
	for !c.over {
		c.n = 0
		if err := c.raw.Read(fill); err != nil {
			c.over = true
		}
		if c.n > 0 {
			sink(c.buf[:c.n])
		}
	}
}

// fill reads what is there, up to a full buffer: a terminal gives 4 KiB at a time, and one large write costs less
// than many small ones. It is called by the runtime's poller, and false means: call again when there is more.
func (c *copier) fill(fd uintptr) bool {
	for c.n < len(c.buf) {
		n, err := unix.Read(int(fd), c.buf[c.n:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			if c.n == 0 {
				c.idle.Store(time.Now().UnixNano())
			}
			return c.n > 0
		case err != nil || n == 0: // EIO is how a terminal says that nobody has it open
			c.over = true
			return true
		}
		c.n += n
		c.idle.Store(0)
		if runtime.GOOS != "linux" {
			return true // the file may be a blocking one there
		}
	}
	return true
}

func (c *copier) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// quiet says that nothing was there to read for a while after begin, and that nothing is there now.
func (c *copier) quiet(begin time.Time) bool {
	idle := c.idle.Load()
	if idle == 0 || time.Since(begin) < drainQuiet || time.Since(time.Unix(0, idle)) < drainQuiet {
		return false
	}
	readable := false
	err := c.raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, _ := unix.Poll(fds, 0)
		readable = n > 0 && fds[0].Revents&unix.POLLIN != 0
	})
	return err == nil && !readable
}
