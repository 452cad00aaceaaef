package runner

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agency"
)

// daemonMark in the environment of a process says that it and all below it serve other runs too: an agency daemon, or
// the tmux server that one started, which an agent in here happened to be the first to need. They are not part of the
// tree.
const daemonMark = "AGENCY_DAEMON=1"

// below is everything under the roots, without the roots themselves, without what is over, and without the subtrees
// of daemons.
func below(all []process, roots ...int) []int {
	children := make(map[int][]process, len(all))
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []int
	seen := map[int]bool{}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if seen[p.pid] || hasEnviron(p.pid, daemonMark) {
				continue
			}
			seen[p.pid] = true
			queue = append(queue, p.pid)
			if !p.zombie {
				found = append(found, p.pid)
			}
		}
	}
	return found
}

// Busy says whether a program of this name works in one of the directories, or below. Where the kernel does not tell the
// directory of a process, one that runs at all does.
func Busy(program string, dirs []string) (bool, error) {
	all, err := processes()
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if p.zombie || p.name != program {
			continue
		}
		at, err := workingDir(p.pid)
		if err != nil {
			continue // it ended, or is another user's
		}
		for _, dir := range dirs {
			if at == "" || at == dir || strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") {
				return true, nil
			}
		}
	}
	return false, nil
}

func signalAll(pids []int, signals ...unix.Signal) {
	for _, sig := range signals {
		for _, pid := range pids {
			_ = unix.Kill(pid, sig) // one that is over already is what was wanted
		}
	}
}

// EndTree ends what a killed wrapper left behind: root and all below it, and every process whose environment holds all
// entries of marker, such as AGENCY_RUN_ID=..., with all below it. Each gets TERM, and KILL after the grace. It
// returns how many are left, which is 0 unless ctx ended or the kernel holds on to one. Daemons and what serves other
// runs are spared, as is the caller. Where environments cannot be read, what left root's group and lost its parent is
// not found.
func EndTree(ctx context.Context, root agency.Process, marker []string, grace time.Duration) (left int, err error) {
	const bound = 5 * time.Second // for KILL to have its effect
	begin := time.Now()
	for round := 0; ; round++ {
		tree, err := leftBehind(root, marker)
		if err != nil || len(tree) == 0 || time.Since(begin) > grace+bound {
			return len(tree), err
		}
		switch {
		case time.Since(begin) >= grace:
			signalAll(tree, unix.SIGKILL)
		case round == 0:
			signalAll(tree, unix.SIGTERM, unix.SIGCONT)
		}
		select {
		case <-ctx.Done():
			return len(tree), ctx.Err()
		case <-time.After(killEvery):
		}
	}
}

func leftBehind(root agency.Process, marker []string) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var roots []int
	if Alive(root) {
		roots = append(roots, root.PID)
	}
	for _, p := range all {
		marked := len(marker) > 0 && hasEnviron(p.pid, marker...)
		if marked && !p.zombie && !hasEnviron(p.pid, daemonMark) && !slices.Contains(roots, p.pid) {
			roots = append(roots, p.pid)
		}
	}
	tree := roots
	for _, pid := range below(all, roots...) {
		if !slices.Contains(tree, pid) {
			tree = append(tree, pid)
		}
	}
	return slices.DeleteFunc(tree, func(pid int) bool { return pid == os.Getpid() }), nil
}
