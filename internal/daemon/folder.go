package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"agency"
	"agency/internal/config"
	"agency/internal/socket"
)

// makeFolders makes the folders that a daemon needs. It makes agency's own folders private to their
// owner.
func makeFolders(cfg *config.Config) error {
	for _, path := range []string{cfg.Home, filepath.Dir(LogPath(cfg.Home))} {
		if err := ownFolder(path, "AGENCY_HOME"); err != nil {
			return err
		}
	}
	return makeSocketFolder(cfg)
}

// makeSocketFolder makes the folder of the socket: the data root, agency's own in /tmp, or one that
// the user chose. A chosen folder may have other uses, so its mode is never changed. It is refused
// when other users could put a socket into it. Where they can only look, the mode of the socket
// keeps them out.
func makeSocketFolder(cfg *config.Config) error {
	path := filepath.Dir(cfg.Socket)
	switch {
	case path == cfg.Home:
		return ownFolder(path, "AGENCY_HOME")
	case cfg.SocketNote != "":
		return ownFolder(path, "AGENCY_SOCKET")
	}
	info, err := makeFolder(path, "AGENCY_SOCKET")
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return agency.Errorf(agency.CodeSocketPathInvalid, "other users can write in the folder %s, and could put their own socket into it", path).
			WithHint("set AGENCY_SOCKET to a path in a folder of your own, or unset it: then it is %s", filepath.Join(cfg.Home, "agencyd.sock"))
	}
	return nil
}

// ownFolder makes a folder of agency's own, or makes an existing one private.
func ownFolder(path, variable string) error {
	info, err := makeFolder(path, variable)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSticky != 0:
		return agency.Errorf(agency.CodePermissionDenied, "the folder %s is shared by many users, and cannot be made private", path).
			WithHint("set %s to a folder for agency alone, such as %s", variable, filepath.Join(path, "agency"))
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a directory needs its x bit
			return startError("make %s private: %w", path, err)
		}
	}
	return nil
}

// makeFolder makes a missing folder, for its owner alone, and refuses one of another user. variable
// is the setting that named it.
func makeFolder(path, variable string) (fs.FileInfo, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			path, err = at.Path, at.Err
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return nil, agency.Errorf(agency.CodePermissionDenied, "create %s: %w", path, err).WithHint("set %s to a place that you can write", variable)
		}
		return nil, startError("create %s: %w", path, err).WithHint("set %s to a place that can be made", variable)
	}
	info, err := socket.StatOwn(path)
	switch {
	case agency.IsCode(err, agency.CodePermissionDenied):
	case err != nil:
		return nil, startError("look at %s: %w", path, err)
	}
	if err != nil || socket.Owner(info) != os.Getuid() {
		return nil, agency.Errorf(agency.CodePermissionDenied, "the folder %s belongs to another user", path).
			WithHint("set %s to a place of your own", variable)
	}
	return info, nil
}
