package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onlyHere are the ways that only Linux has.
var onlyHere = []way{
	{"write the settings of the kernel", false, func(target) error { return openForWriting("/proc/sys/kernel/core_pattern") }},
	{"trace a process of yours", false, trace},
	{"read the memory of a process of yours", false, func(t target) error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.Process))
		if err == nil {
			err = f.Close()
		}
		return err
	}},
	{"mount a file system", false, func(target) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }},
	{"make a user namespace", false, func(target) error {
		cmd := exec.Command("/proc/self/exe", Probe)
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	}},
	{"gain rights by a setuid program", false, func(target) error {
		if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && set == 1 {
			return errors.New("no new privileges")
		}
		return nil
	}},
	{"type into the terminal (TIOCSTI)", false, func(target) error {
		char := byte(' ')
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, os.Stdin.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&char))) //nolint:gosec // the kernel reads it
		// Without a terminal it gets as far as looking for one.
		if errno == 0 || errno == unix.ENOTTY {
			return nil
		}
		return errno
	}},
	{"connect to an abstract socket", true, func(t target) error { return dial("unix", t.Abstract) }},
	{"connect by MPTCP", true, multipath},
}

// trace attaches to a process without stopping it; the end of this program detaches.
func trace(t target) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.Process), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func multipath(t target) error {
	to, err := net.ResolveTCPAddr("tcp", t.TCP)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}
