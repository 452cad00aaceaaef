package runner

import (
	"os"

	"golang.org/x/sys/unix"
)

// growPipe asks for a larger buffer. The kernel may refuse, which only makes the pipe slower.
func growPipe(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBuffer) })
}

// pipeSize returns how much a pipe holds.
func pipeSize(f *os.File) int {
	size := 1 << 12
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				size = n
			}
		})
	}
	return size
}
