package supervisor

import (
	"sync/atomic"
	"time"
)

// rescanInterval is the time between two rescans.
type rescanInterval struct {
	nanoseconds atomic.Int64
	changed     chan struct{} // holds one token after a change
}

func newRescanInterval(d time.Duration) *rescanInterval {
	p := &rescanInterval{changed: make(chan struct{}, 1)}
	p.nanoseconds.Store(int64(d))
	return p
}

func (p *rescanInterval) set(d time.Duration) {
	p.nanoseconds.Store(int64(d))
	select {
	case p.changed <- struct{}{}:
	default: // a change is pending already
	}
}

func (p *rescanInterval) every() time.Duration { return time.Duration(p.nanoseconds.Load()) }
