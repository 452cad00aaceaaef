package runner

import (
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

// Alive reports whether exactly this process still runs: the same pid, start and boot, and not a
// zombie.
func Alive(p agency.Process) bool {
	if p.PID <= 0 || p.StartTicks == 0 || p.BootID == "" {
		return false
	}
	now, err := readProcess(p.PID)
	if err != nil || now.zombie || now.start != p.StartTicks {
		return false
	}
	boot, err := bootID()
	return err == nil && boot == p.BootID
}

// Suspended reports whether the process with that pid is stopped until it gets SIGCONT.
func Suspended(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && p.stopped
}

// errGone is the error of Signal for a process that has ended.
func errGone(p agency.Process) error {
	return fmt.Errorf("signal process %d: %w", p.PID, unix.ESRCH)
}
