package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"agency"
)

// Live is an attempt that has not ended, with the processes that proved to be its wrapper.
type Live struct {
	Run      agency.RunID
	Attempt  int
	Wrappers []agency.Process
}

// RunOfProcess returns the run that a process belongs to: the process carries the mark of one of
// the attempts, or descends from a wrapper. It returns empty for a process of no run, such as the
// processes in serving and their descendants. It returns an error when the run cannot be
// determined, for example because the process has ended.
func RunOfProcess(pid int, live []Live, serving Serving) (agency.RunID, error) {
	if len(live) == 0 {
		return "", nil
	}
	line, err := ancestors(pid)
	if err != nil {
		return "", err
	}
	if id, err := runOfMark(pid, live); id != "" || err != nil {
		return id, err
	}
	for i, p := range line {
		of := slices.IndexFunc(live, func(l Live) bool {
			return slices.ContainsFunc(l.Wrappers, func(w agency.Process) bool { return w.PID == p.pid && w.StartTicks == p.start })
		})
		switch {
		case of < 0:
		case serves(line[:i], serving):
			return "", nil
		default:
			return live[of].Run, nil
		}
	}
	return "", nil
}

// runOfMark returns the run whose mark a process carries; empty when it carries none.
func runOfMark(pid int, live []Live) (agency.RunID, error) {
	env, err := environ(pid)
	if err != nil {
		return "", err
	}
	number, err := rlimitOf(pid)
	if err != nil {
		return "", err
	}
	for _, l := range live {
		mark := agency.AttemptMark(l.Run, l.Attempt)
		if number != 0 && number == limitOf(mark) || bytes.Contains(env, []byte(string(l.Run))) && hasEntries(env, mark) {
			return l.Run, nil
		}
	}
	return "", nil
}

// serves reports whether one of these processes is the daemon or the tmux server, either of which
// may have been started by the first agent that needed it.
func serves(line []process, serving Serving) bool {
	if len(line) == 0 {
		return false
	}
	server := listenerOf(serving.Tmux)
	return slices.ContainsFunc(line, func(p process) bool { return p.pid == os.Getpid() || p.pid == server })
}

// mostAncestors bounds the ancestors of a process: more are an error.
const mostAncestors = 256

// ancestors returns a process and its ancestors, upwards. If the ancestors change during the read,
// they are read again.
func ancestors(pid int) ([]process, error) {
	var line []process
	err := errLineChanged
	for try := 0; try < 5 && errors.Is(err, errLineChanged); try++ {
		line, err = readLine(pid)
	}
	if err != nil {
		return nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return line, nil
}

var errLineChanged = errors.New("its parents change")

func readLine(pid int) ([]process, error) {
	var line []process
	for pid > 0 {
		p, err := readProcess(pid)
		switch {
		case err != nil && len(line) > 0:
			return nil, errLineChanged
		case err != nil:
			return nil, err
		case len(line) > 0 && p.start > line[len(line)-1].start:
			return nil, errLineChanged // the parent is gone, and another process has its pid
		case len(line) == mostAncestors:
			return nil, fmt.Errorf("it has more than %d parents", mostAncestors)
		}
		line, pid = append(line, p), p.ppid
	}
	return line, nil
}
