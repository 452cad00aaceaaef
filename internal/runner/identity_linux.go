package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/killpoint"
)

// Signal sends a signal to exactly this process. The error wraps ESRCH when it is over, whoever has its pid now.
func Signal(p agency.Process, sig unix.Signal) error {
	// The descriptor pins the process: what is checked after it was opened is what gets the signal.
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) && Alive(p) {
			return unix.Kill(p.PID, sig)
		}
		return errGone(p)
	}
	defer func() { _ = unix.Close(fd) }()
	if !Alive(p) {
		return errGone(p)
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return killpoint.Boot(strings.TrimSpace(string(data))), err
}

func readProcess(pid int) (process, error) {
	if pid <= 0 {
		return process{}, unix.ESRCH
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) {
		return process{}, unix.ESRCH
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(data)
}

// parseStat reads a line of /proc/<pid>/stat. The second field is the program's name in parentheses, which may hold
// spaces, parentheses and newlines itself: the last closing one ends it.
func parseStat(data []byte) (process, error) {
	bad := errors.New("the stat line cannot be read")
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return process{}, bad
	}
	const state, ppid, group, start = 0, 1, 2, 19 // fields 3, 4, 5 and 22, counted after the name
	rest := strings.Fields(string(data[end+1:]))
	if len(rest) <= start || len(rest[state]) != 1 {
		return process{}, bad
	}
	var p process
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(string(data[:open])))
	p.ppid, errs[1] = strconv.Atoi(rest[ppid])
	p.group, errs[2] = strconv.Atoi(rest[group])
	p.start, errs[3] = strconv.ParseUint(rest[start], 10, 64)
	if errors.Join(errs[:]...) != nil {
		return process{}, bad
	}
	p.name = string(data[open+1 : end])
	p.zombie = rest[state] == "Z" || rest[state] == "X"
	p.stopped = rest[state] == "T"
	return p, nil
}
