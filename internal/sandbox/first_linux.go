package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/limit"
	"agency/internal/socket"
)

// Workings are functions about processes that the first program of a container needs.
type Workings struct {
	SetMark     func(mark []string) // gives this process, and all that it starts, a mark
	HangupHelps func(pid int) bool  // reports whether a process may need HUP beside TERM to end
}

// firstTime is how long the first program of a container waits for its carrier.
const firstTime = 10 * time.Second

// first is the first process of a container.
type first struct {
	Workings

	conn     *net.UnixConn
	sending  sync.Mutex // on conn
	terminal bool
	agent    atomic.Int64 // the process of the agent; 0 before it started
}

// First is the first program in a container. It starts the agent with the files that the carrier
// passes by the link in folder, passes on its signals, and waits for its end. No other process of
// the container outlives the agent, and none outlives the carrier.
func First(folder string, of Workings) int {
	// No process in the container may look into this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return agency.ExitError
	}
	reserveThreads()
	runtime.LockOSThread()
	f := &first{Workings: of}
	if err := f.connect(folder); err != nil {
		fmt.Fprintln(os.Stderr, "agency: error: the container has no carrier:", err)
		return agency.ExitError
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	pid, err := f.start()
	if err != nil {
		f.tell(notice{Problem: err.Error()})
		return agency.ExitError
	}
	f.tell(notice{Started: true})
	f.agent.Store(int64(pid))
	go f.obey()
	go func() {
		for range signals { // docker stop
			f.terminate()
		}
	}()
	return f.reap(pid)
}

// threads is how many threads the first program of a container reserves. Besides the one that runs Go code, it
// needs a thread for each call that blocks: for the link, signals, the children.
const threads = 8

// reserveThreads makes the threads that this process may need. It does so before the agent can use up the
// limit of processes of the container: a Go program that gets no thread crashes. Idle threads stay.
func reserveThreads() {
	runtime.GOMAXPROCS(1)
	var made sync.WaitGroup
	release := make(chan struct{})
	for range threads {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		}()
	}
	made.Wait()
	close(release)
}

func (f *first) connect(folder string) error {
	path, done, err := socket.Short(folder, socketOfLink)
	if err != nil {
		return err
	}
	defer done()
	conn, err := (&net.Dialer{Timeout: firstTime}).Dial("unix", path)
	if err != nil {
		return err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("it is not a unix socket")
	}
	f.conn = unixConn
	return nil
}

// start starts the agent.
func (f *first) start() (int, error) {
	var s start
	if err := f.conn.SetReadDeadline(time.Now().Add(firstTime)); err != nil {
		return 0, err
	}
	files, err := receive(f.conn, &s)
	if err != nil {
		return 0, fmt.Errorf("take over the agent's files: %w", err)
	}
	if err := f.conn.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	if len(files) < 3 || len(s.Argv) == 0 {
		return 0, errors.New("the carrier passed no files")
	}
	defer func() {
		for _, fd := range files {
			_ = unix.Close(fd)
		}
	}()
	f.terminal = s.Terminal
	f.SetMark(s.Mark)
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: overlay(os.Environ(), s.Env, filepath.Dir(s.Argv[0])), Sys: &syscall.SysProcAttr{Setsid: true, Setctty: s.Terminal}}
	for _, fd := range files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(s.Argv[0], s.Argv, attr)
	if err != nil {
		return 0, fmt.Errorf("start %s in %s: %w", s.Argv[0], s.Dir, err)
	}
	return pid, nil
}

// usualPath is the PATH of an image that sets none.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// overlay returns the environment of an image, overridden by that of an attempt. The folder last comes last in
// PATH; it has agency's program.
func overlay(image, own agency.Environ, last string) []string {
	replaced := func(name string) bool {
		return name == "HOSTNAME" || slices.ContainsFunc(own, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	env := append(image.WithoutFunc(replaced), own...)
	return append(env.Without("PATH"), "PATH="+cmp.Or(env.Lookup("PATH"), usualPath)+":"+last)
}

// obey does what the carrier orders, until it is gone; then everything ends.
func (f *first) obey() {
	for {
		var o order
		if _, err := receive(f.conn, &o); err != nil {
			break
		}
		if o.Port != 0 {
			go f.dial(o)
			continue
		}
		if sig := syscall.Signal(o.Signal); sig == unix.SIGTERM {
			f.terminate()
		} else if sig == unix.SIGINT || sig == unix.SIGQUIT {
			_ = unix.Kill(-int(f.agent.Load()), sig)
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	os.Exit(agency.ExitError) //nolint:forbidigo // the end of the first program is that of its container
}

// tell sends a message to the carrier, with files.
func (f *first) tell(n notice, files ...int) {
	f.sending.Lock()
	defer f.sending.Unlock()
	_ = send(f.conn, n, files...)
}

// dial connects to a port of this network's loopback, and passes the connection to the carrier.
func (f *first) dial(o order) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := (&net.Dialer{Timeout: acceptTime}).Dial("tcp", net.JoinHostPort(host, strconv.Itoa(o.Port)))
		if err != nil {
			continue
		}
		defer func() { _ = conn.Close() }()
		if tcp, ok := conn.(*net.TCPConn); ok {
			if passed, err := tcp.File(); err == nil {
				defer func() { _ = passed.Close() }()
				f.tell(notice{Of: o.Of}, int(passed.Fd()))
				return
			}
		}
	}
	f.tell(notice{Of: o.Of})
}

// acceptTime is how long a program in a container may take to accept a connection.
const acceptTime = 10 * time.Second

// terminate asks all processes to end, as the wrapper does outside.
func (f *first) terminate() {
	_ = unix.Kill(-1, unix.SIGTERM)
	if pid := int(f.agent.Load()); f.terminal && f.HangupHelps(pid) {
		_ = unix.Kill(pid, unix.SIGHUP)
	}
	_ = unix.Kill(-1, unix.SIGCONT)
}

// reap waits for all children. When the agent has ended, it ends the others, and tells the carrier
// when none is left.
func (f *first) reap(agent int) int {
	end := notice{Ended: true}
	for {
		var wait unix.WaitStatus
		pid, err := unix.Wait4(-1, &wait, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // no child is left, and so no process: orphans become children
			end.Reached = limit.OfContainer() // the engine reports it only after the end of the container
			f.tell(end)
			return end.Code
		case pid == agent:
			if end.Code = wait.ExitStatus(); wait.Signaled() {
				end.Signal, end.Code = int(wait.Signal()), 128+int(wait.Signal())
			}
			_ = unix.Kill(-1, unix.SIGKILL)
		}
	}
}
