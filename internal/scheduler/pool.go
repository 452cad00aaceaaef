package scheduler

import (
	"sync"

	"agency"
)

// stopsAtOnce is how many agents are stopped at once: a stop is mostly waiting.
const stopsAtOnce = 16

// landsAtOnce is how many agents land at once, each of another session. The checks take long.
const landsAtOnce = 4

// pool executes long actions, a few at once. Sessions take turns, so that a large one does not keep
// a small one waiting.
type pool struct {
	limit int
	work  *sync.WaitGroup

	mu      sync.Mutex
	running int
	closed  bool
	queues  map[agency.SessionID][]func()
	turns   []agency.SessionID // the sessions with queued actions, in the order of their turns
}

func newPool(limit int, work *sync.WaitGroup) *pool {
	return &pool{limit: limit, work: work, queues: map[agency.SessionID][]func(){}}
}

// add queues do for execution.
func (p *pool) add(id agency.SessionID, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queues[id]) == 0 {
		p.turns = append(p.turns, id)
	}
	p.queues[id] = append(p.queues[id], do)
	p.next()
}

// close drops the actions that have not begun.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// next begins as many actions as there is room for; the caller holds the lock.
func (p *pool) next() {
	for !p.closed && p.running < p.limit && len(p.turns) > 0 {
		id := p.turns[0]
		p.turns = p.turns[1:]
		do := p.queues[id][0]
		if rest := p.queues[id][1:]; len(rest) > 0 {
			p.queues[id] = rest
			p.turns = append(p.turns, id)
		} else {
			delete(p.queues, id)
		}
		p.running++
		p.work.Go(func() {
			do()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running--
			p.next()
		})
	}
}
