package crash_test

import "syscall"

// mount puts a small disk over a folder.
func mount(path string) error { return syscall.Mount("tmpfs", path, "tmpfs", 0, "size=24m,mode=0700") }

// writable changes whether a mounted disk can be written.
func writable(path string, yes bool) error {
	flags := uintptr(syscall.MS_REMOUNT)
	if !yes {
		flags |= syscall.MS_RDONLY
	}
	return syscall.Mount("tmpfs", path, "tmpfs", flags, "")
}

func unmount(path string) { _ = syscall.Unmount(path, 2) } // MNT_DETACH: a process may still be there
