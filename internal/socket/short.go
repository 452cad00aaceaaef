package socket

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// Short returns a path for a file in a folder that is short enough for a socket. It is valid until
// done is called.
func Short(folder, name string) (path string, done func(), err error) {
	if runtime.GOOS != "linux" { // without /proc
		return filepath.Join(folder, name), func() {}, nil
	}
	dir, err := os.Open(folder)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), name), func() { _ = dir.Close() }, nil
}
