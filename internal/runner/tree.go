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

// below returns all processes under the roots, without the roots themselves, without those that
// ended, and without the spared processes and those under them.
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

// Busy reports whether a program of this name works in one of the directories, or below. Where the
// kernel does not report the directory of a process, any running one counts.
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
			continue // it ended, or belongs to another user
		}
		for _, dir := range dirs {
			if at == "" || within(at, dir) {
				return true, nil
			}
		}
	}
	return false, nil
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func signalAll(pids []int, signals ...unix.Signal) {
	for _, sig := range signals {
		for _, pid := range pids {
			_ = unix.Kill(pid, sig) // one that has ended already is fine
		}
	}
}

// Remains are what may be left of an attempt, or of a setup, whose wrapper was killed.
type Remains struct {
	Wrapper agency.Process // zero when unknown
	Root    agency.Process // the runner; zero when unknown
	Mark    []string
}

// emptyLooks is how many looks in a row, killEvery apart, prove that nothing is left: a process can
// start another one and end while the kernel's list is read, which then has neither.
const emptyLooks = 2

// EndTree ends what a killed wrapper left behind: the runner and all processes below it, and every
// process that carries the mark, with all below it. A dying wrapper releases its lock before its
// children lose it as their parent; until then they are below the tmux server, and still count as
// the wrapper's. Each process gets TERM, and KILL after the grace. EndTree returns how many are
// left, which is 0 unless ctx ended or the kernel keeps one. It spares what serves other runs, and
// the caller, and does not count processes that this user must not end; Strays returns those. Where
// the kernel does not show marks, it does not find a process that left root's group and lost its
// parent.
func EndTree(ctx context.Context, of Remains, serving Serving, grace time.Duration) (left int, err error) {
	const bound = 5 * time.Second // for KILL to take effect
	begin := time.Now()
	for round, empty := 0, 0; ; round++ {
		tree, err := leftBehind(of, serving)
		if len(tree) == 0 {
			empty++
		} else {
			empty = 0
		}
		if err != nil || empty == emptyLooks || time.Since(begin) > grace+bound {
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

// Alone reports whether nothing lives below a wrapper for certain, except what serves other runs.
func Alone(wrapper agency.Process, serving Serving) bool {
	if alive, err := Alive(wrapper); !alive || err != nil {
		return false
	}
	tree, err := treeOf(wrapper.PID, 0, serving)
	return err == nil && len(tree) == 0
}

func leftBehind(of Remains, serving Serving) ([]int, error) {
	at, err := lookAround()
	if err != nil {
		return nil, err
	}
	all := at.all
	var roots []int
	switch alive, err := Alive(of.Root); {
	case err != nil:
		return nil, err
	case alive:
		roots = append(roots, of.Root.PID)
	}
	var dying []int // the wrapper, if it has not ended completely yet
	for _, p := range all {
		if p.pid == of.Wrapper.PID && p.start == of.Wrapper.StartTicks {
			dying = append(dying, p.pid)
		}
	}
	for _, pid := range at.marked(of.Mark) {
		if !slices.Contains(roots, pid) {
			roots = append(roots, pid)
		}
	}
	if len(roots) == 0 {
		return nil, nil
	}
	daemon, server := serving.pids()
	spared := []int{os.Getpid(), daemon, server}
	others := spared
	if server > 0 {
		// What a tmux server runs is unrelated to the process that started the server, though it
		// inherits from it.
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

// foreign reports whether a process belongs to another user, for example through sudo, so that this
// one may not signal it.
func foreign(pid int) bool { return unix.Kill(pid, 0) == unix.EPERM }
