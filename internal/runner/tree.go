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

// below is everything under the roots, without the roots themselves, without what is over, and without the spared
// processes and what is under them.
func below(all []process, spared []int, roots ...int) []int {
	children := make(map[int][]process, len(all))
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []int
	seen := map[int]bool{}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if seen[p.pid] || slices.Contains(spared, p.pid) {
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
			if at == "" || within(at, dir) {
				return true, nil
			}
		}
	}
	return false, nil
}

// within says that a path is a directory or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func signalAll(pids []int, signals ...unix.Signal) {
	for _, sig := range signals {
		for _, pid := range pids {
			_ = unix.Kill(pid, sig) // one that is over already is what was wanted
		}
	}
}

// Remains are what may be left of an attempt, or of a setup, whose wrapper was killed.
type Remains struct {
	Wrapper agency.Process // zero when it is not known
	Root    agency.Process // the runner; zero when it is not known
	Mark    []string
}

// EndTree ends what a killed wrapper left behind: the runner and all below it, and every process that carries the mark, with all
// below it. A wrapper that dies lets go of its lock before its children lose it as their parent; until then they stand below
// the tmux server, and are no less its. Each gets TERM, and KILL after the grace. It returns how many are left, which is 0 unless ctx ended or the
// kernel holds on to one. What serves other runs is spared, as is the caller, and what this user may not end is not
// counted: Strays names it. Where the kernel does not show marks, what left root's group and lost its parent is not found.
func EndTree(ctx context.Context, of Remains, serving Serving, grace time.Duration) (left int, err error) {
	const bound = 5 * time.Second // for KILL to have its effect
	begin := time.Now()
	for round := 0; ; round++ {
		tree, err := leftBehind(of, serving)
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

// Alone says that nothing lives below a wrapper but what serves other runs.
func Alone(wrapper agency.Process, serving Serving) bool {
	return Alive(wrapper) && len(treeOf(wrapper.PID, 0, serving)) == 0
}

func leftBehind(of Remains, serving Serving) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var roots []int
	if Alive(of.Root) {
		roots = append(roots, of.Root.PID)
	}
	var dying []int // the wrapper, of which one thread after the other ends
	for _, p := range all {
		if p.pid == of.Wrapper.PID && p.start == of.Wrapper.StartTicks {
			dying = append(dying, p.pid)
		}
		if !p.zombie && !slices.Contains(roots, p.pid) && carries(p.pid, of.Mark) {
			roots = append(roots, p.pid)
		}
	}
	if len(roots) == 0 {
		return nil, nil
	}
	daemon, server := serving.pids()
	spared := []int{os.Getpid(), daemon, server}
	others := spared
	if server > 0 {
		// What a tmux server runs has nothing to do with who started the server, though it inherits from it.
		others = append(below(all, dying, server), spared...)
	}
	roots = slices.DeleteFunc(roots, func(pid int) bool { return slices.Contains(others, pid) })
	tree := slices.Clone(roots)
	for _, pid := range below(all, spared, roots...) {
		if !slices.Contains(tree, pid) {
			tree = append(tree, pid)
		}
	}
	return slices.DeleteFunc(tree, foreign), nil
}

// foreign says that a process is another user's, whom this one may not send signals: sudo made it so.
func foreign(pid int) bool { return unix.Kill(pid, 0) == unix.EPERM }
