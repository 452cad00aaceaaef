package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
)

// measureAdopt measures how long the wrappers of live runs take to connect to a new daemon after
// the last one was killed.
func measureAdopt(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	live := b.reps(100, 10)
	for range live {
		if _, err := startSleeper(ctx, w, repo); err != nil {
			return err
		}
	}
	var connected, listed samples
	for n := range b.reps(10, 3) {
		// The daemon is away for various times: how soon a wrapper tries again depends on that.
		c, l, err := adopt(ctx, w, live, time.Duration(n%5)*700*time.Millisecond)
		if err != nil {
			return err
		}
		connected, listed = append(connected, c), append(listed, l)
	}
	name := fmt.Sprintf("%d live runs, start of the daemon to ", live)
	b.table.add(row{what: name + "its answer", got: listed.String()}, inMS(listed.median()), nil)
	b.table.add(row{what: name + "all wrappers connected", got: connected.String()}, inMS(connected.median()), nil)
	slowest := connected.at(1)
	b.table.add(row{what: name + "all connected, slowest", got: ms(slowest)}, inMS(slowest), atMost(1000, " ms"))
	return nil
}

// adopt kills the daemon, starts another after a while, and waits until every wrapper is connected
// to it.
func adopt(ctx context.Context, w *world, live int, away time.Duration) (connected, answered time.Duration, err error) {
	page, err := api.Call(ctx, w.client, api.ListEvents, api.ListEventsRequest{Since: 1 << 40})
	if err != nil {
		return 0, 0, err
	}
	if err := syscall.Kill(w.pid, syscall.SIGKILL); err != nil {
		return 0, 0, err
	}
	w.client.Close()
	select {
	case <-time.After(away):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	began := time.Now()
	if err := w.startDaemon(ctx); err != nil {
		return 0, 0, err
	}
	answered = time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	done := errors.New("all are back")
	err = w.client.Follow(ctx, page.LastSeq, "", func() {}, func(e agency.Event) error {
		if e.Type == agency.WrapperAdopted {
			live--
		}
		if live == 0 {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		return 0, 0, fmt.Errorf("%d wrappers did not come back: %w", live, err)
	}
	return time.Since(began), answered, nil
}
