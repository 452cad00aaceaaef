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

// environment is a list of NAME=value.
type environment []string

// first is the first of the variables that is set and not empty, with its name.
func (e environment) first(names ...string) (value, name string) {
	for _, name := range names {
		if value := agency.Environ(e).Lookup(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// Absolute is an environment in which the configuration file is named absolutely, as seen from dir, so that it is the same one for a
// process that runs elsewhere.
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

// Places are the entries of an environment that say where the configuration is, and what of it they overrule.
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

// userHome is the home directory of the user: HOME, or what the user database says.
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

// dataRoot finds the data root and says what named it.
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

// socketLimit is the longest path of a socket: the field of the kernel's structure, less the byte that ends it.
const socketLimit = len(syscall.RawSockaddrUnix{}.Path) - 1

// socket finds the daemon's socket. Below a long home directory it would be too long for the kernel, and lies in /tmp
// under a name made of the home; note then says so.
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

// file finds and reads the configuration file. A file that somebody named must be there; without one in the default
// place, data is nil.
func (e environment) file(explicit string) (path string, data []byte, err error) {
	path, by := explicit, "--config"
	if path == "" {
		path, by = e.first(envConfig, envConfigOld)
	}
	named := path != ""
	if !named {
		// DecidedBy the rule of XDG a relative path is ignored.
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
	switch missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR); {
	case missing && !named:
		return path, nil, nil
	case missing:
		return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s: there is no such file, and %s names it", path, by).
			WithHint("create it, or drop %s", by)
	}
	// Many keep their configuration elsewhere and link to it, so links are followed here.
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		data, err = file.ReadRegular(target, fileLimit)
	}
	if err != nil {
		return "", nil, agency.Errorf(agency.CodeConfigInvalid, "%s: cannot be read: %w", path, file.Cause(err)).
			WithHint("it must be a regular file of at most %d bytes that you may read", fileLimit)
	}
	return path, data, nil
}
