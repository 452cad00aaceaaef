package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"agency"
)

// Exit codes of shells for programs that do not start.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// startError is why the program did not start, in plain words.
type startError struct {
	words string
	code  int
}

func (e *startError) Error() string { return e.words }

// fork starts the program in a session of its own, with the three files and no others. When
// terminal is set, the files are a terminal, which becomes the session's controlling terminal.
func (w *wrapper) fork(files [3]*os.File, env []string, terminal bool) (int, error) {
	keepFiles()
	attr := &syscall.ProcAttr{Dir: w.launch.Dir, Env: env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: terminal}}
	for _, f := range files {
		// Non-blocking mode is for the wrapper's poller; the program must not inherit it.
		if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
			return 0, fmt.Errorf("prepare the runner's files: %w", err)
		}
		attr.Files = append(attr.Files, f.Fd())
	}
	connected, err := w.network.connect(attr)
	if err != nil {
		return 0, err
	}
	ports, passed, err := openPorts(w.launch.Ports, attr)
	defer passed()
	if err != nil {
		connected(false)
		return 0, err
	}
	w.start.Ports = ports
	pid, err := syscall.ForkExec(w.argv[0], w.argv, attr)
	connected(err == nil)
	if err != nil {
		return 0, explain(err, &w.launch)
	}
	return pid, nil
}

// keepFiles prevents the runner from inheriting the files that the wrapper opened, or inherited
// from the process that started the tmux server.
func keepFiles() {
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}

// explain finds out what caused the kernel's error at a start: the folder, the program, or the program's
// interpreter.
func explain(err error, launch *agency.Launch) error {
	program, dir := launch.Argv[0], launch.Dir
	if info, statErr := os.Stat(dir); statErr != nil || !info.IsDir() {
		return &startError{fmt.Sprintf("the folder %s to start in does not exist", dir), codeNotExecutable}
	}
	_, missing := os.Stat(program)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		return &startError{fmt.Sprintf("the program %s does not exist", program), codeNotFound}
	case errors.Is(err, fs.ErrNotExist):
		return &startError{fmt.Sprintf("the interpreter that %s names in its first line does not exist", program), codeNotFound}
	case errors.Is(err, unix.EACCES):
		return &startError{fmt.Sprintf("the program %s may not be executed", program), codeNotExecutable}
	case errors.Is(err, unix.ENOEXEC):
		return &startError{fmt.Sprintf("%s is not a program for this machine; a script needs a #! line", program), codeNotExecutable}
	case errors.Is(err, unix.E2BIG):
		return &startError{"the arguments and the environment are too long for the kernel", codeNotExecutable}
	default:
		return &startError{fmt.Sprintf("start %s: %v", program, err), codeNotExecutable}
	}
}

// startFailure returns the record of an attempt whose program never ran.
func (w *wrapper) startFailure(err error) *agency.Exit {
	exit := w.newExit()
	exit.EndedBy = agency.EndedByStartFailed
	exit.Error = err.Error()
	exit.ExitCode = codeNotExecutable
	if start, ok := errors.AsType[*startError](err); ok {
		exit.ExitCode = start.code
	}
	return exit
}

// environ returns the runner's environment.
func (w *wrapper) environ() []string {
	term := os.Getenv("TERM") // of the pane
	if w.launch.Headless || term == "" {
		return w.launch.Env
	}
	return append(agency.Environ(w.launch.Env).Without("TERM"), "TERM="+term)
}

// status is how the runner ended. alone reports whether no descendant was left at that moment.
type status struct {
	wait  unix.WaitStatus
	alone bool
}

// code returns the exit code and the name of the signal that caused it, if any.
func (s status) code() (int, string) {
	if s.wait.Signaled() {
		return 128 + int(s.wait.Signal()), unix.SignalName(s.wait.Signal())
	}
	return s.wait.ExitStatus(), ""
}

// reap is the only place that waits for children: the runner, and every orphan that the wrapper got
// as its subreaper. It ends when no child is left after the runner's end, since a wrapper starts no
// second one.
func reap(runner int, exited chan<- status) {
	var last *status
	for {
		var wait unix.WaitStatus
		options := 0
		if last != nil {
			options = unix.WNOHANG // only to check whether a child is left
		}
		pid, err := unix.Wait4(-1, &wait, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case pid == runner:
			last = &status{wait: wait}
			continue
		case last != nil && err == nil && pid != 0:
			continue // another orphan ended
		case last != nil:
			last.alone = errors.Is(err, unix.ECHILD)
			exited <- *last
			if last.alone {
				return
			}
			last = nil
		case err != nil:
			return
		}
	}
}
