package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agency/internal/api"
	"agency/internal/proc"
)

// measureIdle measures the cost of a daemon while nothing happens, with runs that sleep.
func measureIdle(ctx context.Context, b *bench) (err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.table.add(row{what: "skipped", got: "there is no /proc here"}, 0, nil)
		return nil
	}
	repo, err := makeRepo(ctx, b, 20)
	if err != nil {
		return err
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	wrappers := []int{}
	for _, live := range []struct {
		runs int
		cpu  *bar
	}{{0, nil}, {10, atMost(0.5, " %")}, {100, atMost(2, " %")}} {
		if b.quick && live.runs > 10 {
			break
		}
		for len(wrappers) < live.runs {
			pid, err := startSleeper(ctx, w, repo)
			if err != nil {
				return err
			}
			wrappers = append(wrappers, pid)
		}
		if err := idle(ctx, b, w.pid, wrappers, live.cpu); err != nil {
			return err
		}
	}
	return nil
}

// startSleeper starts a run and returns its wrapper's pid.
func startSleeper(ctx context.Context, w *world, repo string) (int, error) {
	handle, err := w.startRun(ctx, repo, "exec sleep 1000")
	if err != nil {
		return 0, err
	}
	shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: handle})
	if err != nil {
		return 0, err
	}
	if len(shown.Attempts) != 1 || shown.Attempts[0].Wrapper == nil {
		return 0, fmt.Errorf("%s has no wrapper", handle)
	}
	return shown.Attempts[0].Wrapper.PID, nil
}

// idle measures during a whole interval of the daemon's rescan, 30 seconds.
func idle(ctx context.Context, b *bench, daemon int, wrappers []int, cpu *bar) error {
	window := time.Duration(b.reps(30, 5)) * time.Second
	settle := time.NewTimer(2 * time.Second)
	select {
	case <-settle.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	before, err := usageOf(append([]int{daemon}, wrappers...))
	if err != nil {
		return err
	}
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := usageOf(append([]int{daemon}, wrappers...))
	if err != nil {
		return err
	}
	percent := func(ticks int64) float64 { return 100 * float64(ticks) / ticksPerSecond / window.Seconds() }
	name := fmt.Sprintf("%d live runs, ", len(wrappers))
	used := percent(after[0].ticks - before[0].ticks)
	b.table.add(row{what: name + "cpu", got: fmt.Sprintf("%.2f %% of a core", used)}, used, cpu)
	b.table.add(row{what: name + "memory (RSS)", got: mib(after[0].rss)}, float64(after[0].rss)/(1<<20), atMost(40, " MiB"))
	if len(wrappers) == 0 {
		return nil
	}
	var ticks, rss int64
	for i := range wrappers {
		ticks += after[i+1].ticks - before[i+1].ticks
		rss += after[i+1].rss
	}
	b.table.add(row{
		what: name + "all wrappers", got: fmt.Sprintf("%.2f %% of a core, %s RSS", percent(ticks), mib(rss)),
		beside: fmt.Sprintf("%s each, shared pages counted each time", mib(rss/int64(len(wrappers)))),
	}, 0, nil)
	return nil
}

// ticksPerSecond is the unit of times in /proc, the same on every Linux that Go runs on.
const ticksPerSecond = 100

type usage struct{ ticks, rss int64 }

// usageOf returns the processor time and the memory of processes.
func usageOf(pids []int) ([]usage, error) {
	all := make([]usage, 0, len(pids))
	for _, pid := range pids {
		s, err := proc.Of(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, usage{ticks: int64(s.Own), rss: s.Resident * int64(os.Getpagesize())})
	}
	return all, nil
}
