package runner

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// becomeSubreaper does nothing: this kernel gives orphans to init. The tree is then what still hangs below the
// wrapper, and the runner's process group; a process that left both has escaped.
func becomeSubreaper() error { return nil }

// treeOf is everything that lives below the wrapper or in the runner's group.
func treeOf(wrapper, runner int) []int {
	all, err := processes()
	if err != nil {
		return nil
	}
	roots := []int{wrapper}
	var orphans []int
	for _, p := range all {
		if p.group == runner && p.ppid == 1 && !p.zombie && !hasEnviron(p.pid, daemonMark) {
			roots = append(roots, p.pid)
			orphans = append(orphans, p.pid)
		}
	}
	return append(orphans, below(all, roots...)...)
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

// hasEnviron says whether the environment that the process began with holds all entries. The kernel shows it for our
// own processes only, and not for all of those.
func hasEnviron(pid int, entries ...string) bool {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if !bytes.Contains(data, []byte("\x00"+entry+"\x00")) {
			return false
		}
	}
	return true
}

// workingDir is not told by this kernel.
func workingDir(int) (string, error) { return "", nil }

// hangupHelps cannot look at the process, and goes by what most programs on terminals do.
func hangupHelps(int) bool { return true }
