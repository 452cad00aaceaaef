package runner

import (
	"fmt"

	"golang.org/x/sys/unix"

	"agency"
)

// Signal sends a signal to this process. The error wraps ESRCH when the process has ended, even if
// another one has its pid now. This kernel offers no means against a reuse of the pid in the
// instant between the check and the signal.
func Signal(p agency.Process, sig unix.Signal) error {
	if err := mustLive(p); err != nil {
		return err
	}
	if err := unix.Kill(p.PID, sig); err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

func bootID() (string, error) {
	if id, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && id != "" {
		return id, nil
	}
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec), nil
}

func readProcess(pid int) (process, error) {
	if pid <= 0 {
		return process{}, unix.ESRCH
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return process{}, unix.ESRCH
	}
	return fromKinfo(info), nil
}

// fromKinfo takes the start time in microseconds, which this kernel has instead of ticks.
func fromKinfo(info *unix.KinfoProc) process {
	const stopped, zombie = 4, 5 // SSTOP, SZOMB
	at := info.Proc.P_starttime
	return process{
		pid:    int(info.Proc.P_pid),
		ppid:   int(info.Eproc.Ppid),
		group:  int(info.Eproc.Pgid),
		start:  uint64(at.Sec)*1_000_000 + uint64(at.Usec),
		zombie: info.Proc.P_stat == zombie, stopped: info.Proc.P_stat == stopped,
		name: unix.ByteSliceToString(info.Proc.P_comm[:]),
	}
}
