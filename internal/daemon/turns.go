package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"agency/internal/api"
)

// How many requests of agents in sandboxes the daemon works on at once, in total and of an agent
// together with those above and below it, and how long they may take to read an answer.
const (
	turnsOfAll   = 8
	turnsOfATree = 2
	sandboxReads = 30 * time.Second
)

// takesTurns reports whether an operation makes the daemon work for an agent in a sandbox, without
// the limits of that agent.
func takesTurns(operation string) bool {
	return slices.Contains([]string{api.CreateRun.Name, api.ResumeRun.Name, api.RemoveRun.Name, api.ShowRun.Name, api.DiffRun.Name, api.ListMessages.Name}, operation)
}

// turns admits the requests of agents in sandboxes one after the other, so that no agent keeps others
// waiting.
type turns struct {
	all chan struct{} // has a token for each request that is worked on

	mu    sync.Mutex
	trees map[string]*treeTurns // by the topmost run; those with requests
}

type treeTurns struct {
	tokens chan struct{} // one for each request that is worked on or whose answer is being read
	users  int           // requests that have or await a token
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, turnsOfAll), trees: map[string]*treeTurns{}}
}

// take waits for the turn of a request of a tree. The caller calls worked when the answer is ready,
// and answered when it is sent. ok is false when ctx ended first.
func (t *turns) take(ctx context.Context, tree string) (worked, answered func(), ok bool) {
	t.mu.Lock()
	of := t.trees[tree]
	if of == nil {
		of = &treeTurns{tokens: make(chan struct{}, turnsOfATree)}
		t.trees[tree] = of
	}
	of.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(t.trees, tree)
		}
	}
	select {
	case of.tokens <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, nil, false
	}
	answered = func() { <-of.tokens; leave() }
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		answered()
		return nil, nil, false
	}
	return func() { <-t.all }, answered, true
}
