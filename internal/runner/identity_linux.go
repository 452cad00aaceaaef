package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/proc"
)

// Signal sends a signal to exactly this process. The error wraps ESRCH when the process has ended,
// even if another one has its pid now.
func Signal(p agency.Process, sig unix.Signal) error {
	// The descriptor pins the process: the process that is checked after the open is the one that
	// gets the signal.
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ENOSYS):
		if err := mustLive(p); err != nil {
			return err
		}
		return unix.Kill(p.PID, sig)
	case agency.Exhausted(err):
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	case err != nil:
		return errGone(p)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := mustLive(p); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// kernelBoot is the kernel's boot id, once it was read.
var kernelBoot atomic.Pointer[string]

func bootID() (string, error) {
	if kernelBoot.Load() == nil {
		data, err := proc.Read("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(string(data))
		kernelBoot.Store(&id)
	}
	return killpoint.Boot(*kernelBoot.Load()), nil
}

func readProcess(pid int) (process, error) {
	if pid <= 0 {
		return process{}, unix.ESRCH
	}
	s, err := proc.Of(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return process{}, unix.ESRCH
	}
	if err != nil {
		return process{}, err
	}
	return process{
		pid: s.PID, ppid: s.Parent, group: s.Group, start: s.Start, name: s.Name, zombie: s.State == 'Z' || s.State == 'X', stopped: s.State == 'T',
	}, nil
}
