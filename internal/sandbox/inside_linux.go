package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"agency"
)

const supported = true

// Exit statuses of Enter, as shells have them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// Enter is the first program in a sandbox. It gives the signals back that bubblewrap was to ignore,
// limits the system calls, and becomes the program of argv. It returns only when that cannot be
// started, with the status to exit with.
func Enter(argv []string) int {
	// The limits are of the thread that becomes the program.
	runtime.LockOSThread()
	if len(argv) > 2 && argv[0] == Listening {
		if err := listen(argv[1]); err != nil {
			fmt.Fprintln(os.Stderr, "agency: error: the sandbox has no network:", err)
			return codeNotExecutable
		}
		argv = argv[2:]
	}
	var count error
	if len(argv) > 2 && argv[0] == Processes {
		count = limitProcesses(argv[1])
		argv = argv[2:]
	}
	err := errors.Join(count, limitCalls(), scope())
	if err != nil {
		fmt.Fprintln(os.Stderr, "agency: error: the sandbox cannot be closed:", err)
		return codeNotExecutable
	}
	// A signal that is caught has its default action in the next program; one that is ignored stays
	// ignored.
	signal.Notify(make(chan os.Signal, 8), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	program, hint := argv[0], "what it needs beside the system can be named in the configuration: [sandbox] read"
	if os.Getenv(agency.SandboxVariable) == string(agency.SandboxContainer) {
		program, hint = inImage(program), "the agent's program, and its interpreter, must be in the image"
	}
	err = unix.Exec(program, argv, os.Environ())
	fmt.Fprintf(os.Stderr, "agency: error: start %s in the sandbox: %v\r\n", argv[0], err)
	fmt.Fprintf(os.Stderr, "agency: hint: %s\r\n", hint)
	if errors.Is(err, fs.ErrNotExist) {
		return codeNotFound
	}
	return codeNotExecutable
}

// limitProcesses sets how many processes this user may have in this user namespace.
func limitProcesses(number string) error {
	n, err := strconv.ParseUint(number, 10, 32)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		return fmt.Errorf("limit the processes: %w", err)
	}
	return nil
}

// inImage returns where the PATH of the image has a program, or else its name.
func inImage(program string) string {
	if found, err := exec.LookPath(program); err == nil {
		return found
	}
	return program
}

// The rights of Landlock that x/sys does not name.
const (
	scopeAbstractSockets = 1 << 0
	scopeSignals         = 1 << 1
	scopesSince          = 6 // the version of Landlock
)

// scope keeps the program from the abstract sockets of programs outside, where the kernel can. A
// network namespace does the same.
func scope() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || version < scopesSince {
		return nil
	}
	attr := struct{ fs, net, scoped uint64 }{scoped: scopeAbstractSockets | scopeSignals}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}
