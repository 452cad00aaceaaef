package supervisor

import (
	"sync/atomic"
	"time"
)

// pace is the time between two rescans.
type pace struct {
	nanoseconds atomic.Int64
	changed     chan struct{} // holds one token after a change
}

func newPace(d time.Duration) *pace {
	p := &pace{changed: make(chan struct{}, 1)}
	p.nanoseconds.Store(int64(d))
	return p
}

func (p *pace) set(d time.Duration) {
	p.nanoseconds.Store(int64(d))
	select {
	case p.changed <- struct{}{}:
	default: // the change is to be noticed already
	}
}

func (p *pace) every() time.Duration { return time.Duration(p.nanoseconds.Load()) }
