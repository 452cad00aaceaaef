package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

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
