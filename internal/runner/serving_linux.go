package runner

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockHolder returns the pid of the process that holds the kernel lock on a file; 0 when there is
// none.
func lockHolder(path string) int {
	want, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := want.Sys().(*syscall.Stat_t)
	data, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return 0
	}
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for line := range strings.Lines(string(data)) {
		// "3: FLOCK ADVISORY WRITE 23994 fe:00:9982961 0 EOF". On some file systems the device
		// differs from that of stat.
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && hasOpen(pid, want) {
			return pid
		}
	}
	return 0
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, file os.FileInfo) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	names, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, name := range names {
		if info, err := os.Stat(dir + "/" + name.Name()); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}

func peerPID(fd int) int {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}
