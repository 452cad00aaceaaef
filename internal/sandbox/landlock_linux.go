package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// rights are the rights of the newest version of Landlock that agency uses. An older kernel limits those that
// it knows: files since Linux 5.19, and scopes since 6.12.
var rights = landlock.V6.BestEffort()

// limitFiles keeps this process, and what it starts, within a fence in the form of JSON.
func limitFiles(text string) error {
	var f fence
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return fmt.Errorf("limit the files: %w", err)
	}
	if f.Alone {
		if err := dropRights(); err != nil {
			return err
		}
	}
	rules := []landlock.Rule{}
	for _, path := range f.Read {
		rules = append(rules, ofFile(path, landlock.RODirs(path), landlock.ROFiles(path)))
	}
	for _, path := range f.Write {
		rules = append(rules, ofFile(path, landlock.RWDirs(path).WithRefer().WithIoctlDev(), landlock.RWFiles(path).WithIoctlDev()))
	}
	for _, path := range f.Names {
		rules = append(rules, landlock.PathAccess(syscall.AccessFSReadDir, path).IgnoreIfMissing())
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil { // the terminal is outside, and programs open it again
			rules = append(rules, landlock.RWFiles(fmt.Sprintf("/proc/self/fd/%d", fd)).WithIoctlDev())
		}
	}
	enforced := rights
	if f.Alone { // it must be enforced in full
		enforced = landlock.V6
	}
	if err := enforced.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("limit the files: %w", err)
	}
	if err := enforced.RestrictScoped(); err != nil {
		return fmt.Errorf("limit signals and sockets: %w", err)
	}
	if f.Alone {
		return limitSockets(f.Network)
	}
	return nil
}

// dropRights drops all capabilities of root for good.
func dropRights() error {
	var err error
	for right := 0; err == nil; right++ {
		err = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(right), 0, 0, 0)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) { // after the last one; or this user has none to drop
		header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		err = unix.Capset(&header, &none[0])
	}
	if err != nil {
		return fmt.Errorf("drop the rights of root: %w", err)
	}
	return nil
}

// ofFile returns the rule that fits a path.
func ofFile(path string, dir, file landlock.FSRule) landlock.FSRule {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return file
	}
	return dir.IgnoreIfMissing()
}
