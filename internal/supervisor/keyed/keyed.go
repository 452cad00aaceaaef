// Package keyed provides locks by name.
package keyed

import (
	"context"
	"sync"
)

// Locks is a set of locks by name. A lock exists only while it is held or awaited.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*waiting
}

type waiting struct {
	token chan struct{} // holds one token when free
	users int
}

// Lock takes the named lock, or fails when ctx ends. The returned function releases it.
func (k *Locks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*waiting{}
	}
	l := k.locks[name]
	if l == nil {
		l = &waiting{token: make(chan struct{}, 1)}
		l.token <- struct{}{}
		k.locks[name] = l
	}
	l.users++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, name)
		}
	}
	select {
	case <-l.token:
		return sync.OnceFunc(func() { l.token <- struct{}{}; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
