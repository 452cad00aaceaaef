package sandbox

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// short returns a path of a file in a folder that is short enough for a socket, and stays so until
// done is called.
func short(folder, name string) (path string, done func(), err error) {
	if !supported { // without /proc
		return filepath.Join(folder, name), func() {}, nil
	}
	dir, err := os.Open(folder)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), name), func() { _ = dir.Close() }, nil
}

// socketPair returns a socket for the listeners of a sandbox's network, and its other end.
func socketPair() (own, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, nil, err
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	return os.NewFile(uintptr(pair[0]), "own"), os.NewFile(uintptr(pair[1]), "theirs"), nil
}
