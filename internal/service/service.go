// Package service defines how the daemon's long-lived parts start and stop.
package service

import (
	"context"
	"slices"
	"sync"
)

// Service is a part that works in the background, from Start until Stop.
type Service interface {
	// Start begins the work and returns. When it fails, nothing is left running. The end of ctx
	// does not end the work: only Stop does. Start does nothing when the service already runs.
	Start(ctx context.Context) error
	// Stop ends the work and waits until it has ended. It does nothing when the service does not
	// run.
	Stop()
}

// StartAll starts services in order. The caller must call stop, which stops them in the reverse
// order. When one fails, StartAll stops those before it and returns its error; stop is nil then.
func StartAll(ctx context.Context, services ...Service) (stop func(), err error) {
	started := []Service{}
	stop = func() {
		for _, s := range slices.Backward(started) {
			s.Stop()
		}
	}
	for _, s := range services {
		if err := s.Start(ctx); err != nil {
			stop()
			return nil, err
		}
		started = append(started, s)
	}
	return stop, nil
}

// Loop is a Service that runs one function.
type Loop struct {
	Run func(ctx context.Context) // returns when ctx ends, or earlier

	work Background
}

// Start runs the function in the background.
func (l *Loop) Start(ctx context.Context) error {
	return l.work.Start(ctx, func(ctx context.Context) error {
		l.work.Go(func() { l.Run(ctx) })
		return nil
	})
}

// Stop ends the context of the function and waits until it has returned.
func (l *Loop) Stop() { l.work.Stop() }

// Background holds the goroutines of one Service, to implement its Start and Stop. The zero value
// is stopped. It can be started again after Stop. All methods may be called from several
// goroutines.
type Background struct {
	mu     sync.Mutex
	cancel context.CancelFunc // nil while stopped
	work   sync.WaitGroup
}

// Start calls begin, which starts goroutines with Go, or fails. Only Stop ends their context. Start
// does nothing when begin has succeeded before and Stop has not been called since.
func (b *Background) Start(ctx context.Context, begin func(ctx context.Context) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := begin(ctx); err != nil {
		cancel()
		b.work.Wait()
		return err
	}
	b.cancel = cancel
	return nil
}

// Go runs f in a goroutine, which Stop waits for. begin may call it, and any caller while the
// service runs.
func (b *Background) Go(f func()) { b.work.Go(f) }

// Stop ends the context of the goroutines and waits for them. It is idempotent.
func (b *Background) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel == nil {
		return
	}
	b.cancel()
	b.work.Wait()
	b.cancel = nil
}
