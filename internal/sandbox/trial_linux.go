package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agency"
)

// attempts are the ways out that Probe tries. One that returns nil is open.
var attempts = []struct {
	way     string
	network bool // only a sandbox without a network refuses it
	try     func(t target) error
}{
	{"write a file of yours", false, func(t target) error { return os.WriteFile(filepath.Join(t.Dir, "planted"), nil, 0o600) }},
	{"read a secret", false, func(t target) error { _, err := os.ReadFile(filepath.Join(t.Dir, secretFile)); return err }},
	{"write the system", false, func(target) error { return openForWriting("/usr/bin/env") }},
	{"write the settings of the kernel", false, func(target) error { return openForWriting("/proc/sys/kernel/core_pattern") }},
	{"signal a process of yours", false, func(t target) error { return unix.Kill(t.Process, unix.SIGCONT) }},
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
	{"connect to a socket of yours", false, func(t target) error {
		socket, done, err := short(t.Dir, socketFile)
		if err != nil {
			return err
		}
		defer done()
		return dial("unix", socket)
	}},
	{"connect to an abstract socket", true, func(t target) error { return dial("unix", t.Abstract) }},
	{"connect by TCP", true, func(t target) error { return dial("tcp", t.TCP) }},
	{"connect by MPTCP", true, multipath},
	{"exchange UDP", true, exchange},
}

// Try tries all ways out, at a target in the form of JSON, and prints the outcome as JSON. It
// returns the exit status.
func Try(aim string) int {
	var t target
	if err := json.Unmarshal([]byte(aim), &t); err != nil {
		return agency.ExitUsage
	}
	runtime.LockOSThread() // a trace belongs to the thread
	list := make([]agency.SandboxTrial, 0, len(attempts))
	for _, a := range attempts {
		one := agency.SandboxTrial{Way: a.way, Promised: !a.network}
		if err := a.try(t); err != nil {
			one.Refused, one.Reason = true, reason(err)
		}
		list = append(list, one)
	}
	if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
		return agency.ExitError
	}
	return agency.ExitOK
}

// reason returns what the kernel said, without the names of what only the trial has.
func reason(err error) string {
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// openForWriting opens a file as if to write it.
func openForWriting(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

// trace attaches to a process without stopping it; the end of this program detaches.
func trace(t target) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.Process), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// dialTime is how long a connection may take; everything is on this machine.
const dialTime = time.Second

func dial(network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(context.Background(), network, address)
	if err == nil {
		err = conn.Close()
	}
	return err
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

func exchange(t target) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(context.Background(), "udp", t.UDP)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(dialTime)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 8))
	return err
}
