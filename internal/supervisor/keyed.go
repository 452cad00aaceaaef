package supervisor

import (
	"context"
	"sync"
)

// keyed is a set of locks by name. A lock exists only while somebody holds it or waits for it.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*waiting
}

type waiting struct {
	token chan struct{} // holds one token when free
	users int
}

// lock takes the named lock, or gives up with ctx. The returned function frees it.
func (k *keyed) lock(ctx context.Context, name string) (unlock func(), err error) {
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
