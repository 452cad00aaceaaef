package sandbox

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// rights is the newest version of Landlock whose rights agency limits; an older kernel limits what it
// knows. Files are limited since Linux 5.19, and scopes since 6.12.
var rights = landlock.V6.BestEffort()

// limitFiles keeps this process, and what it starts, within a fence in the form of JSON.
func limitFiles(text string) error {
	var f fence
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return fmt.Errorf("limit the files: %w", err)
	}
	rules := []landlock.Rule{}
	for _, path := range f.Read {
		rules = append(rules, ofFile(path, landlock.RODirs(path), landlock.ROFiles(path)))
	}
	for _, path := range f.Write {
		rules = append(rules, ofFile(path, landlock.RWDirs(path).WithRefer().WithIoctlDev(), landlock.RWFiles(path).WithIoctlDev()))
	}
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil { // it lies outside, and programs open it again
			rules = append(rules, landlock.RWFiles(fmt.Sprintf("/proc/self/fd/%d", fd)).WithIoctlDev())
		}
	}
	if err := rights.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("limit the files: %w", err)
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

// limitScope keeps this process, and what it starts, from the abstract sockets and the processes of
// programs outside.
func limitScope() error {
	if err := rights.RestrictScoped(); err != nil {
		return fmt.Errorf("limit signals and sockets: %w", err)
	}
	return nil
}
