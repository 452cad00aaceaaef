package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	w, repo, err := newWorldWith(ctx, b, 20)
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
	}{{0, nil}, {10, atMost(0.05, " %")}, {100, atMost(0.3, " %")}} {
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

// idle measures during two minutes: four intervals of the daemon's rescan, and the longest time
// that Go lets pass without collecting garbage. It begins when the start of the runs has died down
// and the daemon has looked at each silent one, which it does once, 90 seconds after the last output.
func idle(ctx context.Context, b *bench, daemon int, wrappers []int, cpu *bar) error {
	window := time.Duration(b.reps(120, 5)) * time.Second
	if err := pause(ctx, time.Duration(b.reps(110, 10))*time.Second); err != nil {
		return err
	}
	before, err := usageOf(append([]int{daemon}, wrappers...))
	if err != nil {
		return err
	}
	if err := pause(ctx, window); err != nil {
		return err
	}
	after, err := usageOf(append([]int{daemon}, wrappers...))
	if err != nil {
		return err
	}
	percent := func(used time.Duration) float64 { return 100 * used.Seconds() / window.Seconds() }
	name := fmt.Sprintf("%d live runs, ", len(wrappers))
	used := percent(after[0].cpu - before[0].cpu)
	b.table.add(row{what: name + "cpu", got: fmt.Sprintf("%.3f %% of a core", used)}, used, cpu)
	b.table.add(row{what: name + "memory (RSS)", got: mib(after[0].rss)}, float64(after[0].rss)/(1<<20), atMost(40, " MiB"))
	if len(wrappers) == 0 {
		return nil
	}
	var all time.Duration
	var rss, private int64
	for i, pid := range wrappers {
		all += after[i+1].cpu - before[i+1].cpu
		rss += after[i+1].rss
		own, err := privateMemory(pid)
		if err != nil {
			return err
		}
		private = max(private, own)
	}
	b.table.add(row{what: name + "all wrappers, cpu", got: fmt.Sprintf("%.3f %% of a core", percent(all))}, percent(all), atMost(0.005*float64(len(wrappers)), " %"))
	b.table.add(row{
		what: name + "private memory of the largest wrapper", got: mib(private),
		beside: fmt.Sprintf("%s RSS on average, with the pages that all share", mib(rss/int64(len(wrappers)))),
	}, float64(private)/(1<<20), atMost(8, " MiB"))
	return nil
}

// privateMemory returns the bytes of memory that a process shares with no other.
func privateMemory(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	var private int64
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "Private_Clean: %d kB", &kib); err == nil {
			private += kib << 10
		}
		if _, err := fmt.Sscanf(line, "Private_Dirty: %d kB", &kib); err == nil {
			private += kib << 10
		}
	}
	return private, nil
}

// pause waits, but not past the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usage is what a process has used of a processor since it began, and its memory in bytes.
type usage struct {
	cpu time.Duration
	rss int64
}

// usageOf returns the usage of processes.
func usageOf(pids []int) ([]usage, error) {
	all := make([]usage, 0, len(pids))
	for _, pid := range pids {
		s, err := proc.Of(pid)
		if err != nil {
			return nil, err
		}
		cpu, err := cpuOf(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, usage{cpu: cpu, rss: s.Resident * int64(os.Getpagesize())})
	}
	return all, nil
}

// cpuOf returns the processor time of the threads of a process in nanoseconds, which the kernel's
// scheduler counts. /proc/PID/stat counts it in ticks of 10 ms, more than an idle process uses in a
// minute.
func cpuOf(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var used time.Duration
	for _, thread := range threads {
		var ns int64
		data, err := proc.Read(thread)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		if _, err := fmt.Sscan(string(data), &ns); err != nil {
			return 0, fmt.Errorf("read %s: %w", thread, err)
		}
		used += time.Duration(ns)
	}
	return used, nil
}
