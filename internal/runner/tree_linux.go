package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans below the wrapper its children instead of init's, so that none escapes.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// treeOf is everything that lives below the wrapper.
func treeOf(wrapper, _ int) []int {
	all, err := processes()
	if err != nil {
		return nil
	}
	return below(all, wrapper)
}

// processes lists all processes. One that ends meanwhile is left out.
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

// hasEnviron says whether the environment that the process began with holds all entries.
func hasEnviron(pid int, entries ...string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	data = append([]byte{0}, data...)
	for _, entry := range entries {
		if !bytes.Contains(data, []byte("\x00"+entry+"\x00")) {
			return false
		}
	}
	return true
}

func workingDir(pid int) (string, error) { return os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") }

// hangupHelps says whether the process catches HUP, or ignores TERM so that HUP is worth a try.
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
