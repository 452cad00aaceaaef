package runner

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/proc"
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
func treeOf(wrapper, _ int, serving Serving) ([]int, error) {
	all, err := processes()
	if err != nil || len(below(all, nil, wrapper)) == 0 {
		return nil, err
	}
	daemon, server := serving.pids()
	return below(all, []int{daemon, server}, wrapper), nil
}

// processes returns all processes, without those that end meanwhile and what these start meanwhile.
// Without file descriptors it fails: a list without some of them would prove that they are gone.
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
	killpoint.At("processes.named")
	var all []process
	for _, name := range slices.Backward(names) { // the newest ones first, which are the ones that end soon
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		switch {
		case err == nil:
			all = append(all, p)
		case agency.Exhausted(err):
			return nil, fmt.Errorf("list processes: %w", err)
		}
	}
	return all, nil
}

// procFile returns a file of the kernel about a process. It is empty when the process has ended or
// the file may not be read. It is an error when this process has no file descriptor or memory left.
func procFile(pid int, name string) ([]byte, error) {
	data, err := proc.Read("/proc/" + strconv.Itoa(pid) + "/" + name)
	if agency.Exhausted(err) {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return data, nil
}

// environ returns the environment that a process started with: entries between zero bytes, also
// before the first one.
func environ(pid int) ([]byte, error) {
	data, err := procFile(pid, "environ")
	return append([]byte{0}, data...), err
}

func workingDir(pid int) (string, error) { return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") }

// openPaths returns the paths that a process works in or has open; none where they may not be read.
func openPaths(pid int) ([]string, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	paths := []string{}
	if at, err := workingDir(pid); err == nil {
		paths = append(paths, at)
	}
	files, err := os.ReadDir(dir + "/fd")
	if agency.Exhausted(err) {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	for _, f := range files {
		if to, err := os.Readlink(dir + "/fd/" + f.Name()); err == nil {
			paths = append(paths, to)
		}
	}
	return paths, nil
}

// HangupHelps reports whether the process catches HUP, or ignores TERM so that HUP is worth a try.
func HangupHelps(pid int) bool {
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
