package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// becomeSubreaper does nothing: this kernel gives orphans to init. The tree is then what is still
// below the wrapper, and the runner's process group; a process that left both has escaped.
func becomeSubreaper() error { return nil }

// treeOf returns every process below the wrapper or in the runner's group, except what serves other
// runs.
func treeOf(wrapper, runner int, serving Serving) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	daemon, server := serving.pids()
	roots := []int{wrapper}
	var orphans []int
	for _, p := range all {
		if p.group == runner && p.ppid == 1 && !p.zombie && p.pid != daemon && p.pid != server {
			roots = append(roots, p.pid)
			orphans = append(orphans, p.pid)
		}
	}
	return append(orphans, below(all, []int{daemon, server}, roots...)...), nil
}

func processes() ([]process, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]process, 0, len(infos))
	for i := range infos {
		all = append(all, fromKinfo(&infos[i]))
	}
	return all, nil
}

// environ returns the environment that a process started with, after its arguments: entries between
// zero bytes. The kernel shows it only for some processes of this user; it is empty for the others.
func environ(pid int) ([]byte, error) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, nil //nolint:nilerr // it has ended, or may not be read; this needs no file descriptor
	}
	return data, nil
}

// openPaths returns nothing, because this kernel does not report open paths.
func openPaths(int) ([]string, error) { return nil, nil }

// workingDir returns nothing, because this kernel does not report working directories.
func workingDir(int) (string, error) { return "", nil }

// HangupHelps cannot examine the process, and assumes what most programs on terminals do.
func HangupHelps(int) bool { return true }
