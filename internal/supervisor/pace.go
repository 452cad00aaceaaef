package supervisor

import (
	"sync/atomic"
	"time"
)

// retryPolicy is the time between two rescans.
type retryPolicy struct {
	nanoseconds atomic.Int64
	changed     chan struct{} // holds one token after a change
}

func newRetryPolicy(d time.Duration) *retryPolicy {
	p := &retryPolicy{changed: make(chan struct{}, 1)}
	p.nanoseconds.Store(int64(d))
	return p
}

func (p *retryPolicy) set(d time.Duration) {
	p.nanoseconds.Store(int64(d))
	select {
	case p.changed <- struct{}{}:
	default: // a change is pending already
	}
}

func (p *retryPolicy) every() time.Duration { return time.Duration(p.nanoseconds.Load()) }
