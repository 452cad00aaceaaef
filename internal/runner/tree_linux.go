package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans below the wrapper its children instead of init's, so that none
// escapes.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// treeOf returns every process below the wrapper, except what serves other runs.
func treeOf(wrapper, _ int, serving Serving) []int {
	all, err := processes()
	if err != nil || len(below(all, nil, wrapper)) == 0 {
		return nil
	}
	daemon, server := serving.pids()
	return below(all, []int{daemon, server}, wrapper)
}

// processes returns all processes, without those that end meanwhile.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// environ returns the environment that a process started with: entries between zero bytes, also
// before the first one. It is empty where it may not be read.
func environ(pid int) []byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return append([]byte{0}, data...)
}

func workingDir(pid int) (string, error) { return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") }

// openPaths returns the paths that a process works in or has open; none where they may not be read.
func openPaths(pid int) []string {
	dir := "/proc/" + strconv.Itoa(pid)
	paths := []string{}
	if at, err := workingDir(pid); err == nil {
		paths = append(paths, at)
	}
	files, _ := os.ReadDir(dir + "/fd")
	for _, f := range files {
		if to, err := os.Readlink(dir + "/fd/" + f.Name()); err == nil {
			paths = append(paths, to)
		}
	}
	return paths
}

// hangupHelps reports whether the process catches HUP, or ignores TERM so that HUP is worth a try.
func hangupHelps(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	has := func(field string, sig unix.Signal) bool {
		_, rest, ok := bytes.Cut(data, []byte("\n"+field+":\t"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		mask, err := strconv.ParseUint(string(line), 16, 64)
		return ok && err == nil && mask&(1<<(uint(sig)-1)) != 0
	}
	return has("SigCgt", unix.SIGHUP) || has("SigIgn", unix.SIGTERM)
}
