package runner

import "sync"

// look is the result of one reading of all processes.
type look struct {
	all     []process
	carried map[int]carried // of the processes that have not ended, by pid
	err     error
	done    chan struct{}
}

// carried holds the two places in which a process can carry a mark.
type carried struct {
	environ []byte
	limit   uint64
}

// has reports whether a process carries the mark, in its initial environment or in its limits.
func (c carried) has(mark []string) bool {
	return len(mark) > 0 && (hasEntries(c.environ, mark) || c.limit == limitOf(mark))
}

// marked returns the processes that carry the mark.
func (l *look) marked(mark []string) []int {
	var found []int
	for _, p := range l.all {
		if c, ok := l.carried[p.pid]; ok && c.has(mark) {
			found = append(found, p.pid)
		}
	}
	return found
}

// looks are the readings by this process: at most one is under way, and at most one waits for it.
var looks struct {
	sync.Mutex
	waiting *look
	turn    sync.Mutex // held by the one that is under way
}

// lookAround reads all processes. Callers that wait at the same time share a reading, which begins
// after each of them asked: when a tmux server with hundreds of runs dies, the remains of all runs
// are looked for at once.
func lookAround() (*look, error) {
	looks.Lock()
	l := looks.waiting
	if l != nil {
		looks.Unlock()
		<-l.done
		return l, l.err
	}
	l = &look{done: make(chan struct{})}
	looks.waiting = l
	looks.Unlock()

	looks.turn.Lock()
	looks.Lock()
	looks.waiting = nil // it begins, so it shows nothing to those that ask from now on
	looks.Unlock()
	l.read()
	looks.turn.Unlock()
	close(l.done)
	return l, l.err
}

func (l *look) read() {
	if l.all, l.err = processes(); l.err != nil {
		return
	}
	l.carried = make(map[int]carried, len(l.all))
	for _, p := range l.all {
		if p.zombie {
			continue
		}
		var c carried
		if c.environ, l.err = environ(p.pid); l.err != nil {
			return
		}
		if c.limit, l.err = rlimitOf(p.pid); l.err != nil {
			return
		}
		l.carried[p.pid] = c
	}
}
