package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"agency"
)

// terminal is the pty of an interactive runner, and the pane that shows it.
type terminal struct {
	runID         agency.RunID
	out           *output
	observer      Observer         // may be nil
	signals       chan<- os.Signal // of the wrapper
	stdin, stdout *os.File         // of the pane
	master, slave *os.File
	saved         *term.State // of the pane; nil when it is not a terminal
	modes         modes       // used only by the copier
	paste         atomic.Bool // the program has bracketed paste on
	keys          *typing
	paneGone      bool          // used only by the copier
	writing       chan struct{} // held while writing to the runner, so that texts and keys do not mix
	pasting       bool          // a paste was cut off before its end; only for the holder of writing
	ended         atomic.Bool   // the runner has ended, and reads no more input
}

// terminalBuffer is how much output is passed on at once.
const terminalBuffer = 128 << 10

// startTerminal starts the runner with a pty as the controlling terminal of a session of its own.
func (w *wrapper) startTerminal() (int, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return 0, fmt.Errorf("open a terminal: %w", err)
	}
	t := &terminal{
		runID: w.launch.RunID, out: w.out, observer: w.observer, signals: w.signals,
		stdin: w.stdin, stdout: w.stdout, master: master, slave: slave,
		keys: &typing{}, writing: make(chan struct{}, 1),
	}
	t.resize()
	if term.IsTerminal(int(w.stdin.Fd())) {
		// All keys go to the runner unprocessed; its own terminal handles lines and signals.
		if t.saved, err = term.MakeRaw(int(w.stdin.Fd())); err != nil {
			return 0, fmt.Errorf("set the pane to raw mode: %w", err)
		}
	}
	w.term = t
	if err := w.out.add(master, terminalBuffer, t.fromRunner); err != nil {
		return 0, fmt.Errorf("read the runner's terminal: %w", err)
	}
	pid, err := w.fork([3]*os.File{slave, slave, slave}, w.environ(), true)
	if err != nil {
		return 0, err
	}
	t.resize() // the size may have changed before the program could be notified
	go t.toRunner()
	return pid, nil
}

// awaitTerminal waits until the runner runs, and returns its terminal.
func (w *wrapper) awaitTerminal() (*terminal, error) {
	switch {
	case w.launch.Mode == agency.ModeProtocol:
		return nil, agency.Errorf(agency.CodeInputRefused, "agency types nothing into %s, since it speaks the protocol of the agent", w.launch.RunID)
	case w.launch.Headless:
		return nil, agency.Errorf(agency.CodeInputRefused, "the run %s is headless: it reads no messages", w.launch.RunID)
	}
	if err := w.awaitStart(agency.CodeInputRefused); err != nil {
		return nil, err
	}
	return w.term, nil
}

// openTerminal opens a pty whose master is non-blocking: reads can be batched and writes have
// deadlines.
func openTerminal() (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = blocking.Close() }()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), blocking.Name()), slave, err
}

// fromRunner handles output of the runner. It writes the log first, because the pane may be slow,
// or gone.
func (t *terminal) fromRunner(p []byte) {
	if t.modes.scan(p) {
		t.paste.Store(t.modes.paste)
	}
	t.out.logs.write(nil, p)
	if t.modes.titled {
		t.modes.titled = false
		if t.observer != nil {
			t.observer.Title(string(t.modes.title))
		}
	}
	if t.paneGone {
		return
	}
	if _, err := t.stdout.Write(p); err != nil {
		t.paneGone = true
	}
}

// toRunner copies the input from the pane to the runner.
func (t *terminal) toRunner() {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.stdin.Read(buf)
		if n > 0 {
			t.keys.feed(buf[:n], time.Now())
			t.writing <- struct{}{}
			_, writeErr := t.write(buf[:n])
			<-t.writing
			if writeErr != nil {
				return
			}
		}
		switch {
		case err == nil:
		case t.saved != nil && (errors.Is(err, io.EOF) || errors.Is(err, unix.EIO)):
			// A terminal in raw mode ends only when the pane is gone, even if no signal reported
			// that.
			t.signals <- unix.SIGHUP
			return
		default:
			return
		}
	}
}

// write writes to the runner. It first ends a paste that was cut off, which would take it as text.
func (t *terminal) write(p []byte) (int, error) {
	if t.pasting {
		if _, err := t.master.WriteString(pasteEnd); err != nil {
			return 0, err
		}
		t.pasting = false
	}
	return t.master.Write(p)
}

// resize gives the runner's terminal the size of the pane; the kernel notifies the program.
func (t *terminal) resize() {
	size, err := pty.GetsizeFull(t.stdout)
	if err != nil || size.Rows == 0 || size.Cols == 0 {
		size = &pty.Winsize{Rows: 40, Cols: 120}
		if now, err := pty.GetsizeFull(t.master); err == nil && now.Rows != 0 {
			return
		}
	}
	_ = pty.Setsize(t.master, size)
}

// runnerEnded closes the wrapper's own handle on the runner's side. It stays open until then so that a
// runner that closes its terminal, and opens it again later, does not appear to have ended.
func (t *terminal) runnerEnded() {
	t.ended.Store(true)
	_ = t.slave.Close()
}

// readsLines reports whether the terminal is in line mode.
func (t *terminal) readsLines() (byLine bool, err error) {
	err = t.ask(func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, getTermios)
		byLine = err == nil && modes.Lflag&unix.ICANON != 0
		return err
	})
	return byLine, err
}

// unread returns how many bytes wait for the runner to read them; in line mode, only those of whole
// lines.
func (t *terminal) unread() (n int, err error) {
	err = t.ask(func(fd int) error {
		// The kernel passes typed bytes on with a delay, which is long on a busy machine. On Linux a poll
		// of a terminal that has nothing to read does it at once.
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		n, err = unix.IoctlGetInt(fd, getUnread)
		return err
	})
	return n, err
}

// ask calls question with the runner's side of the terminal. If the runner ends meanwhile, that
// side is closed, which returns an error here and never reaches another file that got its number.
func (t *terminal) ask(question func(fd int) error) error {
	conn, err := t.slave.SyscallConn()
	if err != nil {
		return err
	}
	var asked error
	if err := conn.Control(func(fd uintptr) { asked = question(int(fd)) }); err != nil {
		return err
	}
	return asked
}

// restore restores the mode of the pane.
func (t *terminal) restore() {
	if t.saved != nil {
		_ = term.Restore(int(t.stdin.Fd()), t.saved)
	}
}
