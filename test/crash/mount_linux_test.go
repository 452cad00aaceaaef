package crash_test

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mount mounts a small disk over a folder.
func mount(path string) error { return syscall.Mount("tmpfs", path, "tmpfs", 0, "size=48m,mode=0700") }

// writable changes whether a mounted disk can be written.
func writable(path string, yes bool) error {
	flags := uintptr(syscall.MS_REMOUNT)
	if !yes {
		flags |= syscall.MS_RDONLY
	}
	return syscall.Mount("tmpfs", path, "tmpfs", flags, "")
}

func unmount(path string) { _ = syscall.Unmount(path, 2) } // MNT_DETACH: a process may still use it

// mountFailing mounts a file over another one, every read of which fails with EIO: nothing is at address
// 0 of this process.
func mountFailing(path string) error {
	return syscall.Mount("/proc/self/mem", path, "", syscall.MS_BIND, "")
}

// limitFiles limits how many more files a process may open, and returns the function that undoes
// it.
func limitFiles(pid, more int) (undo func(), err error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return nil, err
	}
	now := unix.Rlimit{Cur: uint64(len(open) + more), Max: before.Max}
	undo = func() { _ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil) }
	return undo, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &now, nil)
}
