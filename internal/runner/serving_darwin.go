package runner

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockHolder returns the pid that a locked file contains; 0 when no process holds the lock. This
// kernel does not report the holder.
func lockHolder(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0 // closing releases the lock
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	word, _, _ := strings.Cut(string(data), " ")
	pid, _ := strconv.Atoi(word)
	return pid
}

func peerPID(fd int) int {
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}
