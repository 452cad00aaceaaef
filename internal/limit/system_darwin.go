package limit

import "golang.org/x/sys/unix"

// canLimitMemory reports whether the kernel counts what a process writes into memory of its own for
// its rlimit of data.
const canLimitMemory = false

func canWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }

func rmdir(path string) error { return unix.Rmdir(path) }

// room returns the free bytes and inodes of the file system of a folder; zeros when unknown.
func room(dir string) (bytes, inodes int64) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0
	}
	return int64(s.Bfree) * int64(s.Bsize), int64(s.Ffree)
}
