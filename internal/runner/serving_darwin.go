package runner

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockHolder is the process that a locked file names as its holder; 0 where none holds it. This kernel does not tell who does.
func lockHolder(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0 // closing gives back what it got
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
