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

	"golang.org/x/sys/unix"

	"agency"
)

const supported = true

// etc is the folder of the system's settings, which is one of the systemFolders.
const etc = "/etc"

var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", etc}

// Exit statuses of Enter, as shells have them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// Enter is the first program in a sandbox. It ends the ignoring of signals that bubblewrap needed, limits
// files, processes and system calls, and becomes the program of argv. It returns only when it cannot, with
// an exit status.
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
	var files error
	if len(argv) > 2 && argv[0] == Fenced {
		files = limitFiles(argv[1])
		argv = argv[2:]
	}
	err := errors.Join(count, files, limitCalls())
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

// inImage returns the path of a program in the image, by its PATH, or else the name as it is.
func inImage(program string) string {
	if found, err := exec.LookPath(program); err == nil {
		return found
	}
	return program
}
