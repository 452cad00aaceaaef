package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"agency"
	"agency/internal/file"
)

// The names of the variables that are read.
const (
	envHome   = "AGENCY_HOME"
	envConfig = "AGENCY_CONFIG"
	envSocket = "AGENCY_SOCKET"
	envLog    = "AGENCY_LOG"

	envConfigOld = "agency_CONFIG" // the spelling of the first specification
	envSocketOld = "agency_SOCKET"
)

// TempDir is the folder in the data root for what no other process needs later. A daemon that starts
// clears it by file.ClearTemp.
const TempDir = "tmp"

// environment is a list of NAME=value.
type environment []string

// first returns the first of the variables that is set and not empty, with its name.
func (e environment) first(names ...string) (value, name string) {
	for _, name := range names {
		if value := agency.Environ(e).Lookup(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// Absolute returns an environment in which the path of the configuration file is absolute, as seen
// from dir, so that a process with another working directory uses the same file.
func Absolute(env []string, dir string) []string {
	fixed := slices.Clone(env)
	for i, kv := range fixed {
		name, path, _ := strings.Cut(kv, "=")
		if (name == envConfig || name == envConfigOld) && path != "" && !filepath.IsAbs(path) {
			fixed[i] = name + "=" + filepath.Join(dir, path)
		}
	}
	return fixed
}

// Places returns the entries of an environment that name the configuration's location or override
// parts of it.
func Places(env []string) []string {
	names := []string{"HOME", "XDG_CONFIG_HOME", envConfig, envConfigOld}
	for _, o := range watchdogVariables {
		names = append(names, o.variable)
	}
	kept := make([]string, 0, len(names))
	for _, name := range names {
		value, _ := environment(env).first(name)
		kept = append(kept, name+"="+value)
	}
	return kept
}

// userHome returns the home directory of the user: HOME, or that of the user database.
func (e environment) userHome() (string, error) {
	if dir, _ := e.first("HOME"); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	u, err := user.Current()
	if err == nil && !filepath.IsAbs(u.HomeDir) {
		err = fmt.Errorf("the user database says %q", u.HomeDir)
	}
	if err != nil {
		return "", agency.Errorf(agency.CodeConfigInvalid, "the home directory is unknown: %w", err).
			WithHint("set HOME, or %s and %s", envHome, envConfig)
	}
	return filepath.Clean(u.HomeDir), nil
}

// dataRoot returns the data root and its source.
func (e environment) dataRoot() (dir, from string, err error) {
	if dir, name := e.first(envHome); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", "", agency.Errorf(agency.CodeConfigInvalid, "%s is %q, not an absolute path", name, dir).
				WithHint(`export %s="$HOME/.agency"`, name)
		}
		return filepath.Clean(dir), name, nil
	}
	home, err := e.userHome()
	return filepath.Join(home, ".agency"), fromDefault, err
}

// socketLimit is the longest path of a socket: the size of the kernel's field, less the terminating
// byte.
const socketLimit = len(syscall.RawSockaddrUnix{}.Path) - 1

// socket returns the path of the daemon's socket. In a long home directory the path would be too
// long for the kernel; the socket is then in /tmp, under a name derived from the home directory,
// and note explains it.
func (e environment) socket(home string) (path, from, note string, err error) {
	if path, name := e.first(envSocket, envSocketOld); path != "" {
		if !filepath.IsAbs(path) {
			return "", "", "", agency.Errorf(agency.CodeSocketPathInvalid, "%s is %q, not an absolute path", name, path).
				WithHint(`export %s="$HOME/.agency/agencyd.sock"`, name)
		}
		path = filepath.Clean(path)
		if len(path) > socketLimit {
			return "", "", "", agency.Errorf(agency.CodeSocketPathInvalid,
				"%s has %d bytes, and a socket's path has at most %d", name, len(path), socketLimit).
				WithHint("choose a shorter path, or unset %s", name)
		}
		return path, name, "", nil
	}
	path = filepath.Join(home, "agencyd.sock")
	if len(path) > socketLimit {
		short := fmt.Sprintf("/tmp/agency-%d/%.8x.sock", os.Getuid(), sha256.Sum256([]byte(home)))
		note = fmt.Sprintf("The socket is %s, because the path below %s would be longer than %d bytes.", short, home, socketLimit)
		path = short
	}
	return path, fromDefault, note, nil
}

// fileLimit is the largest configuration file that is read, in bytes.
const fileLimit = 64 << 10

// FlagFile returns what is wrong with the path that --config names, apart from the content of the file.
func FlagFile(path string) error {
	if path == "" {
		return agency.Errorf(agency.CodeConfigInvalid, "%s is empty", flagConfig).WithHint("name a file, or drop %s", flagConfig)
	}
	if _, err := os.Lstat(path); absence(err) {
		return absent(path, flagConfig)
	}
	return nil
}

// flagConfig is the flag that names the configuration file.
const flagConfig = "--config"

// absence reports whether an error means that a path does not exist.
func absence(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// absent is the error for a missing file that the user named by a flag or variable.
func absent(path, by string) error {
	return agency.Errorf(agency.CodeConfigInvalid, "%s: it does not exist, and %s names it", path, by).
		WithHint("create it, or drop %s", by)
}

// file finds and reads the configuration file. A file that was named explicitly must exist; without
// a file in the default place, data is nil.
func (e environment) file(explicit string) (path string, data []byte, err error) {
	path, by := explicit, flagConfig
	if path == "" {
		path, by = e.first(envConfig, envConfigOld)
	}
	named := path != ""
	if !named {
		// By the rule of XDG a relative path is ignored.
		dir, _ := e.first("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) {
			if dir, err = e.userHome(); err != nil {
				return "", nil, err
			}
			dir = filepath.Join(dir, ".config")
		}
		path = filepath.Join(dir, "agency", "config.toml")
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", nil, fmt.Errorf("find configuration file: %w", err)
	}
	_, err = os.Lstat(path)
	switch missing := absence(err); {
	case missing && !named:
		return path, nil, nil
	case missing:
		return "", nil, absent(path, by)
	}
	// Many users keep their configuration elsewhere and link to it, so links are followed here.
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s: is a link to a file that does not exist", path).
			WithHint("create that file, or remove the link")
	}
	if err == nil {
		data, err = file.ReadRegular(target, fileLimit)
	}
	if err != nil {
		return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s: cannot be read: %w", path, file.Cause(err)).
			WithHint("it must be a regular file of at most %d bytes that you may read", fileLimit)
	}
	return path, data, nil
}
