package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// Over is an attempt that has ended.
type Over struct {
	Run     agency.RunID
	Attempt int
	Dirs    []string // where the run's worktree is or was; none when they are not to be examined
}

// Stray is a process that is related to an attempt that has ended.
type Stray struct {
	PID     int
	Program string
	Of      Over
	Marked  bool // the attempt started it; otherwise it only works in the worktree, and may belong to anything
	Foreign bool // it belongs to another user
}

// Strays returns the processes of attempts that have ended: those that carry a mark, and those that
// have the worktree as their working directory or have a file in it open. It leaves out the daemon
// and what it runs now.
func Strays(over []Over, serving Serving) ([]Stray, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	marks, dirs := make(map[uint64]Over, len(over)), map[string]Over{}
	for _, o := range over {
		marks[limitOf(agency.AttemptMark(o.Run, o.Attempt))] = o
		for _, dir := range o.Dirs {
			dirs[dir] = o
		}
	}
	daemon, server := serving.pids()
	ours := append(below(all, nil, os.Getpid()), os.Getpid(), daemon, server)
	found := []Stray{}
	for _, p := range all {
		if p.zombie || slices.Contains(ours, p.pid) {
			continue
		}
		of, marked, err := markedBy(p.pid, marks)
		works := false
		if err == nil && !marked {
			of, works, err = worksIn(p.pid, dirs)
		}
		if err != nil {
			return nil, err
		}
		if !marked && !works {
			continue
		}
		found = append(found, Stray{PID: p.pid, Program: p.name, Of: of, Marked: marked, Foreign: foreign(p.pid)})
	}
	return found, nil
}

// markedBy returns the attempt whose mark a process carries.
func markedBy(pid int, marks map[uint64]Over) (of Over, found bool, err error) {
	value, err := rlimitOf(pid)
	if err != nil {
		return of, false, err
	}
	if of, found = marks[value]; found {
		return of, true, nil
	}
	env, err := environ(pid)
	of, found = marks[limitOf([]string{entry(env, "AGENCY_RUN_ID"), entry(env, "AGENCY_ATTEMPT")})]
	return of, found, err
}

// worksIn returns the attempt in whose worktree a process works.
func worksIn(pid int, dirs map[string]Over) (of Over, works bool, err error) {
	if len(dirs) == 0 {
		return of, false, nil
	}
	paths, err := openPaths(pid)
	for _, path := range paths {
		path = strings.TrimSuffix(path, " (deleted)")
		for up := path; filepath.IsAbs(up) && len(up) > 1; up = filepath.Dir(up) {
			if o, found := dirs[up]; found {
				return o, true, nil
			}
		}
	}
	return of, false, err
}
