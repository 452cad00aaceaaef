package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/socket"
)

// way is a way out of a sandbox that Probe tries.
type way struct {
	name    string
	network bool                 // only a sandbox without a network refuses it
	try     func(t target) error // returns nil when the way is open
}

// everywhere are the ways that every system has.
var everywhere = []way{
	{"write a file of yours", false, func(t target) error { return os.WriteFile(filepath.Join(t.Dir, "planted"), nil, 0o600) }},
	{"read a secret", false, func(t target) error { _, err := os.ReadFile(filepath.Join(t.Dir, secretFile)); return err }},
	{"write the system", false, func(target) error { return openForWriting("/usr/bin/env") }},
	{"signal a process of yours", false, func(t target) error { return unix.Kill(t.Process, unix.SIGCONT) }},
	{"connect to a socket of yours", false, func(t target) error {
		at, done, err := socket.Short(t.Dir, socketFile)
		if err != nil {
			return err
		}
		defer done()
		return dial("unix", at)
	}},
	{"connect by TCP", true, func(t target) error { return dial("tcp", t.TCP) }},
	{"exchange UDP", true, exchange},
}

// Try tries all ways out, with a target in the form of JSON, and prints the outcomes as JSON. It returns the
// exit status.
func Try(aim string) int {
	var t target
	if err := json.Unmarshal([]byte(aim), &t); err != nil {
		return agency.ExitUsage
	}
	runtime.LockOSThread() // a trace belongs to the thread
	all := slices.Concat(everywhere, onlyHere)
	slices.SortStableFunc(all, func(a, b way) int { // those of networks last
		switch {
		case a.network == b.network:
			return 0
		case b.network:
			return -1
		}
		return 1
	})
	list := make([]agency.SandboxTrial, 0, len(all))
	for _, a := range all {
		one := agency.SandboxTrial{Way: a.name, Promised: !a.network}
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

// reason returns the kernel's error, without the names of the trial's own files.
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

// dialTime is how long a connection may take; everything is on this machine.
const dialTime = time.Second

func dial(network, address string) error {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(context.Background(), network, address)
	if err == nil {
		err = conn.Close()
	}
	return err
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
