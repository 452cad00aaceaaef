package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"agency"
)

// heldFile holds the exit status of a runner in the mode protocol. Such a runner outlives a wrapper that
// is killed, and the next wrapper is not its parent. So a holder waits for it: a process that does only
// this, and keeps the listeners of the runner's network.
const heldFile = "held.json"

// heldToken is the variable of a holder that has the token of the attempt, for the next wrapper. The holder
// removes it from the environment of the runner, which in a sandbox has no token at all.
const heldToken = "AGENCY_HELD_TOKEN" //nolint:gosec // its name, not its value

// held is the content of heldFile.
type held struct {
	Status unix.WaitStatus `json:"wait_status"`
}

// Hold runs a program with the files of this process, waits for its end, writes the exit status into the
// folder of the attempt and returns it. It ignores the signals that end a program: the wrapper sends them
// to the program too, and the holder stays until the program has ended. Its own exit status, which its
// parent gets, is that of the program also when the disk does not take the file.
func Hold(attemptDir string, argv []string) int {
	// Notify and not Ignore: the program would inherit an ignored signal.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	if err := becomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, "agency: error:", err)
		return agency.ExitError
	}
	files, given, err := programFiles()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agency: error: hold the network:", err)
		return agency.ExitError
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: agency.Environ(os.Environ()).Without(heldToken), Files: files})
	if err != nil {
		fmt.Fprintf(os.Stderr, "agency: error: start %s: %v\n", argv[0], err)
		return codeNotExecutable
	}
	given()
	reserve(attemptDir, heldFile)
	for {
		var wait unix.WaitStatus
		got, err := unix.Wait4(-1, &wait, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return agency.ExitError
		case got == pid:
			if data, err := json.Marshal(held{wait}); err == nil {
				_ = writeReserved(filepath.Join(attemptDir, heldFile), data)
			}
			removeHeld(attemptDir)
			code, _ := status{wait: wait}.code()
			return code
		}
	}
}

// readHeld returns what a holder wrote; nil when it wrote nothing, or the file has other content. The
// error is that of a system that fails to read the file.
func readHeld(attemptDir string) (*held, error) {
	h, err := readRecord[held](filepath.Join(attemptDir, heldFile))
	if _, failed := errors.AsType[syscall.Errno](err); failed {
		return nil, err
	}
	return h, nil
}

// Held returns the exit record of a runner whose wrapper was killed before the runner ended by
// itself; nil without an error when nothing holds its exit status.
func Held(attemptDir string, start *agency.Start, kind agency.RunnerKind) (*agency.Exit, error) {
	h, err := readHeld(attemptDir)
	if h == nil {
		return nil, err
	}
	exit := &agency.Exit{
		SchemaVersion: 1, RunID: start.RunID, Attempt: start.Attempt, RunnerKind: kind, StartedAt: start.StartedAt, PID: start.Runner.PID, EndedBy: agency.EndedByRunner,
	}
	info, err := os.Stat(filepath.Join(attemptDir, heldFile))
	if err != nil {
		return nil, err
	}
	exit.EndedAt = info.ModTime().UTC()
	exit.ExitCode, exit.Signal = status{wait: h.Status}.code()
	exit.Network, _ = readUse(attemptDir) // without it, the record keeps what the daemon was told
	return exit, nil
}
