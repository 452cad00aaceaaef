// Package socket connects to unix sockets of the caller's own user, and identifies the process at
// the other end of a connection.
package socket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"agency"
)

// Dial connects to a socket. It returns a connection only when a process of this user listens
// there, in a folder that no other user can write. Another user's socket is E_PERMISSION_DENIED,
// and a folder that others can write is E_SOCKET_PATH_INVALID; nothing was sent then. When the
// socket is missing, or no process listens on it, the error is the system's.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := check(conn, path); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func check(conn net.Conn, path string) error {
	peer, err := PeerOf(conn)
	if err != nil {
		return err
	}
	if peer.UID != os.Getuid() {
		return agency.Errorf(agency.CodePermissionDenied, "a process of another user (uid %d) listens on %s", peer.UID, path).
			WithHint("set AGENCY_SOCKET to a path in a folder of your own")
	}
	return CheckFolder(filepath.Dir(path))
}

// CheckFolder refuses a folder in which another user could replace the socket: one that belongs to
// a user other than this one and root, or that others can write.
func CheckFolder(path string) error {
	info, err := StatOwn(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return agency.Errorf(agency.CodeSocketPathInvalid, "other users can write in the folder %s, and could put their own socket into it", path).
			WithHint("chmod go-w %s, or set AGENCY_SOCKET to a path in a folder of your own", path)
	}
	return nil
}

// StatOwn returns the information about a folder, behind a link too. It returns E_PERMISSION_DENIED
// for a folder that belongs to a user other than this one and root, or is reached by such a user's
// link: that user could control what it reports.
func StatOwn(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil && trusted(info) && info.Mode()&fs.ModeSymlink != 0 {
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, err
	case !trusted(info):
		return nil, agency.Errorf(agency.CodePermissionDenied, "the folder %s belongs to another user", path).
			WithHint("set AGENCY_SOCKET to a path in a folder of your own")
	case !info.IsDir():
		return nil, &fs.PathError{Op: "stat", Path: path, Err: syscall.ENOTDIR}
	}
	return info, nil
}

// Owner returns the id of the user that a file belongs to.
func Owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

func trusted(info fs.FileInfo) bool {
	owner := Owner(info)
	return owner == os.Getuid() || owner == 0
}
