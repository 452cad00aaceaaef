// Package proc reads the state of processes, and other small files, from /proc of Linux.
package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tick is the unit in which the kernel counts time for programs, on every Linux that Go runs on.
const Tick = 10 * time.Millisecond

// Stat is the kernel's state of one process or thread.
type Stat struct {
	PID, Parent, Group int
	Name               string // of the program, cut off at 15 characters
	State              byte   // as ps shows it: Z is a zombie, T is stopped
	Start              uint64 // in ticks since the machine was booted
	Own, Children      uint64 // processor time in ticks: its own, and that of children that ended
	Threads            int
	Resident           int64 // memory, in pages
}

// Of returns the state of a process. The error wraps fs.ErrNotExist when no process has the pid,
// and where there is no /proc.
func Of(pid int) (Stat, error) {
	data, err := Read("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return Parse(data)
}

// Read returns the content of a small file of the kernel. Unlike os.ReadFile it does not first try
// to wait for the file with the network poller, which takes five system calls and no such file can.
func Read(path string) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	data := make([]byte, 0, 1024)
	for {
		n, err := retry(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return data, nil
		}
		if data = data[:len(data)+n]; len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Parse parses the line of a stat file. The second field is the program's name in parentheses,
// which may contain spaces, parentheses and newlines: the last closing parenthesis ends it.
func Parse(line []byte) (Stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Stat{}, errUnreadable
	}
	fields := strings.Fields(string(line[end+1:]))
	if len(fields) < 22 || len(fields[0]) != 1 {
		return Stat{}, errUnreadable
	}
	ok := true
	number := func(field int) int64 { // by its number in proc(5), which is 3 for the first field after the name
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		ok = ok && err == nil
		return n
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:open])))
	s := Stat{
		PID: pid, Parent: int(number(4)), Group: int(number(5)), Name: string(line[open+1 : end]), State: fields[0][0],
		Own: uint64(number(14) + number(15)), Children: uint64(number(16) + number(17)), Start: uint64(number(22)), Threads: int(number(20)), Resident: number(24),
	}
	if !ok || err != nil {
		return Stat{}, errUnreadable
	}
	return s, nil
}

var errUnreadable = errors.New("the stat line cannot be read")
