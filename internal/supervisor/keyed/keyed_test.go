package keyed_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency/internal/supervisor/keyed"
)

func TestLocksExclude(t *testing.T) {
	t.Parallel()
	var k keyed.Locks
	var holders, total atomic.Int32
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 200 {
				unlock, err := k.Lock(context.Background(), "one")
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders", n)
				}
				total.Add(1)
				holders.Add(-1)
				unlock()
				unlock() // a second call is allowed
			}
		})
	}
	work.Wait()
	if total.Load() != 1600 || k.Len() != 0 {
		t.Errorf("%d turns, %d locks left", total.Load(), k.Len())
	}
}

func TestLocksEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k keyed.Locks
		unlock, err := k.Lock(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		other, err := k.Lock(t.Context(), "two") // another name is another lock
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := k.Lock(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if k.Len() != 2 {
			t.Errorf("%d locks", k.Len())
		}
		// A waiter gets the lock when it is free, even after another waiter gave up.
		got := make(chan func())
		go func() {
			unlock, err := k.Lock(t.Context(), "one")
			if err != nil {
				t.Error(err)
			}
			got <- unlock
		}()
		synctest.Wait()
		unlock()
		(<-got)()
		other()
		if k.Len() != 0 {
			t.Errorf("%d locks left", k.Len())
		}
	})
}
