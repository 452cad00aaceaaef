package runner

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"agency"
)

// process is the kernel's state of one process.
type process struct {
	pid, ppid, group int
	start            uint64
	zombie, stopped  bool
	name             string // of the program, cut off at 15 characters
}

// Identify returns the process that has the pid now. The error wraps ESRCH when there is none.
func Identify(pid int) (agency.Process, error) {
	p, err := readProcess(pid)
	if err != nil {
		return agency.Process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := bootID()
	if err != nil {
		return agency.Process{}, fmt.Errorf("identify this boot: %w", err)
	}
	return agency.Process{PID: pid, StartTicks: p.start, BootID: boot}, nil
}

// Boot returns what identifies the time since the machine started; empty when that is unknown.
func Boot() string {
	boot, err := bootID()
	if err != nil {
		return ""
	}
	return boot
}

// Alive reports whether exactly this process still runs: the same pid, start and boot, and not a
// zombie. It is an error when the kernel cannot be asked, for example without file descriptors.
func Alive(p agency.Process) (bool, error) {
	if p.PID <= 0 || p.StartTicks == 0 || p.BootID == "" {
		return false, nil
	}
	now, err := readProcess(p.PID)
	if errors.Is(err, unix.ESRCH) || err == nil && (now.zombie || now.start != p.StartTicks) {
		return false, nil
	}
	boot := ""
	if err == nil {
		boot, err = bootID()
	}
	if err != nil {
		return false, fmt.Errorf("look at process %d: %w", p.PID, err)
	}
	return boot == p.BootID, nil
}

// Suspended reports whether the process with that pid is stopped until it gets SIGCONT.
func Suspended(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && p.stopped
}

// mustLive returns the error of Signal for a process that has ended, or that cannot be looked at.
func mustLive(p agency.Process) error {
	alive, err := Alive(p)
	if err == nil && !alive {
		err = errGone(p)
	}
	return err
}

// errGone is the error of Signal for a process that has ended.
func errGone(p agency.Process) error {
	return fmt.Errorf("signal process %d: %w", p.PID, unix.ESRCH)
}
