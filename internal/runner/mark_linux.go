package runner

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// setMark gives a process, 0 being this one, a mark that everything it starts from now on inherits.
// If the limit is in use, or must not be raised, only the environment carries the mark.
func setMark(pid int, mark []string) { setLimit(pid, limitOf(mark)) }

// DropMark removes a mark from this process, so that what it starts is not part of the run whose
// agent was the first to need it.
func DropMark() { setLimit(0, unix.RLIM_INFINITY) }

func setLimit(pid int, value uint64) {
	var now unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &now)
	if err != nil || now.Cur == value || now.Cur < markLimit || now.Max < value {
		return
	}
	_ = unix.Prlimit(pid, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: value, Max: now.Max}, nil)
}

// rlimitOf returns the limit of a process of any user if it can be a mark; otherwise 0.
func rlimitOf(pid int) (uint64, error) {
	data, err := procFile(pid, "limits")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(data, []byte("\nMax realtime timeout "))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, nil
	}
	value, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil || value < markLimit {
		return 0, nil //nolint:nilerr // "unlimited"
	}
	return value, nil
}
