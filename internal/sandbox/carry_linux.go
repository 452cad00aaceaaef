package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/docker"
	"agency/internal/file"
	"agency/internal/socket"
)

// codeNoContainer is the exit status of a carrier whose container did not start, as that of docker run.
const codeNoContainer = 125

// carrier starts a container and stands for it outside: it has the agent's exit status, or dies of
// its signal, and passes on the signals that it gets.
type carrier struct {
	cargo

	client  *docker.Client
	signals chan os.Signal
	conn    *net.UnixConn
	began   time.Time
	ports   *forwards
}

// Carry runs the agent of argv in the container that the file at path describes, with the files and
// the environment of this process. It returns the exit status of the agent, and ends by the same
// signal.
func Carry(path string, argv []string) int {
	runtime.LockOSThread()
	// When the wrapper ends, this process ends, and with it the container.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return complain(err)
	}
	k := &carrier{signals: make(chan os.Signal, 16), began: time.Now()}
	// This process gets HUP when it gives the terminal away.
	signal.Notify(k.signals, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP)
	data, err := file.ReadRegular(path, 1<<20)
	if err == nil {
		err = json.Unmarshal(data, &k.cargo)
	}
	if err != nil {
		return complain(err)
	}
	if err := k.begin(argv); err != nil {
		code := agency.CodeRunnerStartFailed
		if agency.IsCode(err, agency.CodeSandboxUnavailable) {
			code = agency.CodeSandboxUnavailable
		}
		k.note(agency.EndNote{Code: code, Words: agency.AsError(err).Message})
		return complain(err)
	}
	return k.end()
}

// complain prints an error to the error output of the agent.
func complain(err error) int {
	e := agency.AsError(err)
	fmt.Fprintf(os.Stderr, "agency: error: %s\r\n", e.Message)
	if e.Hint != "" {
		fmt.Fprintf(os.Stderr, "agency: hint: %s\r\n", e.Hint)
	}
	return codeNoContainer
}

// note writes the note about the end of the attempt, which the wrapper reads.
func (k *carrier) note(n agency.EndNote) {
	if data, err := json.Marshal(n); err == nil {
		_ = file.WriteAtomic(k.Note, data)
	}
}

// begin starts the container, and the agent in it.
func (k *carrier) begin(argv []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), beginTime)
	defer cancel()
	listener, err := socket.Listen(k.Link, socketOfLink)
	if err != nil {
		return fmt.Errorf("make the link to the container: %w", err)
	}
	defer func() { _ = listener.Close() }()
	k.client = docker.New(k.Socket)
	if err := k.client.Open(ctx); err != nil {
		return err
	}
	if err := k.client.Start(ctx, k.Name); err != nil {
		return startProblem(k.Image, err)
	}
	if k.conn, err = k.accept(ctx, listener); err != nil {
		return err
	}
	return k.pass(argv)
}

// beginTime is how long the start of a container may take.
const beginTime = 90 * time.Second

// accept waits for the connection of the first program of the container, and allows no other.
func (k *carrier) accept(ctx context.Context, listener *net.UnixListener) (*net.UnixConn, error) {
	defer func() { _ = os.Remove(filepath.Join(k.Link, socketOfLink)) }()
	for {
		_ = listener.SetDeadline(time.Now().Add(500 * time.Millisecond))
		conn, err := listener.AcceptUnix()
		if err == nil {
			return conn, nil
		}
		select {
		case sig := <-k.signals:
			return nil, fmt.Errorf("it was ended by %s before its container had started", unix.SignalName(sig.(syscall.Signal)))
		default:
		}
		state, err := k.client.Inspect(ctx, k.Name)
		switch {
		case err != nil:
			return nil, err
		case !state.Running && state.Status != "created":
			return nil, agency.Errorf(agency.CodeSandboxUnavailable, "the container of the image %s ended before its agent started (%s)", k.Image, k.words(state))
		}
	}
}

// words returns how a container ended, in the words of the engine.
func (k *carrier) words(s docker.State) string {
	switch {
	case s.OOMKilled:
		return "out of memory"
	case s.Error != "":
		return s.Error
	default:
		return fmt.Sprintf("%s, exit %d", s.Status, s.ExitCode)
	}
}

// pass gives the agent's program and files to the container. A terminal belongs to one session: that
// of this process lets it go first.
func (k *carrier) pass(argv []string) error {
	s := start{Argv: argv, Env: os.Environ(), Dir: k.Dir, Mark: k.Mark}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		s.Terminal = true
		if err := unix.IoctlSetInt(0, unix.TIOCNOTTY, 0); err != nil {
			return fmt.Errorf("give the terminal away: %w", err)
		}
	}
	files := []int{0, 1, 2}
	if k.Listens {
		files = append(files, ListenerFile)
	}
	if err := send(k.conn, s, files...); err != nil {
		return fmt.Errorf("give the agent to its container: %w", err)
	}
	if k.Listens {
		_ = unix.Close(ListenerFile)
	}
	return nil
}

// end passes on signals until the agent has ended, and returns its exit status.
func (k *carrier) end() int {
	notices := make(chan notice)
	k.ports = newForwards(k.conn)
	go func() {
		defer close(notices)
		for {
			var n notice
			files, err := receive(k.conn, &n)
			if err != nil {
				return
			}
			if n.Of != 0 {
				k.ports.connected(n.Of, files)
				continue
			}
			notices <- n
		}
	}()
	for i, port := range k.Ports {
		k.ports.open(FirstPort+i, port)
	}
	for {
		select {
		case sig := <-k.signals:
			if sig != unix.SIGHUP {
				_ = k.ports.send(order{Signal: int(sig.(syscall.Signal))})
			}
		case n, ok := <-notices:
			switch {
			case !ok:
				return k.lost()
			case n.Problem != "":
				k.note(agency.EndNote{Code: agency.CodeRunnerStartFailed, Words: n.Problem})
				return complain(errors.New(n.Problem))
			case n.Ended && len(n.Reached) > 0:
				note := agency.EndNote{Reached: n.Reached}
				if n.Code != 0 && n.Reached[agency.LimitMemory] > 0 {
					note.Code, note.Words = k.OutOfMemory.Code, k.OutOfMemory.Words
				}
				k.note(note)
			}
			switch {
			case n.Signal != 0:
				return dieOf(syscall.Signal(n.Signal))
			case n.Ended:
				return n.Code
			}
		}
	}
}

// askTime is how long the engine may take to say why a container ended. It may be starting again.
const askTime = 20 * time.Second

// lost finds out what ended a container with its agent in it.
func (k *carrier) lost() int {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	gone := func(words string) int {
		k.note(agency.EndNote{Code: agency.CodeRunnerDisappeared, Words: words})
		return dieOf(unix.SIGKILL)
	}
	for {
		state, err := k.client.Inspect(ctx, k.Name)
		switch {
		case err == nil && state.Running && ctx.Err() == nil: // the engine does not know yet
		case err == nil && state.OOMKilled:
			k.note(k.OutOfMemory)
			return dieOf(unix.SIGKILL)
		case err == nil:
			return gone(fmt.Sprintf("the container was ended from outside, by docker kill or the end of the engine (%s)", k.words(state)))
		case docker.Missing(err):
			return gone("the container was removed from outside")
		case ctx.Err() != nil:
			return gone("the container ended, and the engine at " + k.Socket + " does not answer")
		}
		select {
		case <-k.signals:
			cancel()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// dieOf ends this process by a signal, so that the wrapper sees what ended the agent. It returns only
// for a signal that does not end processes.
func dieOf(sig syscall.Signal) int {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// The runtime of Go keeps its own handlers for some signals, such as SIGSEGV.
	var byDefault [4]uint64
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0) //nolint:gosec // the kernel reads it
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second)
	return 128 + int(sig)
}
