package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/file"
)

// measureWatchdog measures how soon an alert arrives, and the cost of watching, with many workers
// of which one changes each second.
func measureWatchdog(ctx context.Context, b *bench) (err error) {
	repo, err := makeRepo(ctx, b, 20)
	if err != nil {
		return err
	}
	if err := watchMany(ctx, b, repo); err != nil {
		return err
	}
	return watchSilent(ctx, b, repo)
}

func watchMany(ctx context.Context, b *bench, repo string) (err error) {
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	// These workers have no processes and change only as the benchmark writes.
	w.env = append(w.env, "AGENCY_WATCHDOG_STUCK_THRESHOLD=10000")
	f := &filling{repo: repo, home: w.home}
	if err := f.fill(ctx, b.reps(1000, 100), true); err != nil {
		return err
	}
	crew, err := newCrew(f)
	if err != nil {
		return err
	}
	defer crew.close()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	if err := crew.connect(ctx, filepath.Join(w.home, "agencyd.sock")); err != nil {
		return err
	}
	wt, err := wait(ctx, w)
	if err != nil {
		return err
	}
	defer wt.cancel()
	before, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	began := time.Now()
	took, err := askEachSecond(ctx, f, wt, b.reps(60, 10))
	if err != nil {
		return err
	}
	window := time.Since(began)
	after, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d workers, one asks each second, ", len(f.runs))
	p99 := took.at(0.99)
	b.table.add(row{what: name + "question to alert", got: took.String() + ", p99 " + ms(p99)}, inMS(p99), atMost(250, " ms"))
	used := 100 * (after[0].cpu - before[0].cpu).Seconds() / window.Seconds()
	b.table.add(row{what: name + "daemon's cpu", got: fmt.Sprintf("%.2f %% of a core", used)}, used, atMost(3, " %"))
	b.table.add(row{what: name + "memory (RSS)", got: mib(after[0].rss)}, float64(after[0].rss)/(1<<20), atMost(80, " MiB"))
	// The daemon stops before the crew: it would settle a thousand runs whose wrappers die.
	return w.stopDaemon(ctx)
}

// askEachSecond lets one worker after the other ask, and measures how long each alert takes.
func askEachSecond(ctx context.Context, f *filling, wt *waiter, times int) (samples, error) {
	began := time.Now()
	var took samples
	for n := range times {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(n) * time.Second))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r := &f.runs[n*7%len(f.runs)]
		asked, err := ask(r, fmt.Sprintf("Question %d?", n))
		if err != nil {
			return nil, err
		}
		opened, err := wt.until(ctx, func(e agency.Event) bool { return e.Type == agency.AlertOpened && e.RunID == r.ID })
		if err != nil {
			return nil, err
		}
		took = append(took, opened.Sub(asked))
	}
	return took, nil
}

// ask makes a worker ask a question, and returns the time.
func ask(r *agency.Run, question string) (time.Time, error) {
	c := agency.NewContract(time.Now())
	c.Status, c.Questions = agency.ReportedNeedsInput, []string{question}
	data, err := json.Marshal(c)
	if err != nil {
		return time.Time{}, err
	}
	began := time.Now()
	return began, file.WriteAtomic(filepath.Join(r.Worktree, agency.ContractFile), data)
}

// watchSilent measures how long after its stuck timeout a worker that hangs gets its alert.
func watchSilent(ctx context.Context, b *bench, repo string) (err error) {
	const poll, intervals = time.Second, 3
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.env = append(w.env, "AGENCY_WATCHDOG_POLL_INTERVAL=1", fmt.Sprintf("AGENCY_WATCHDOG_STUCK_THRESHOLD=%d", intervals))
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	wt, err := wait(ctx, w)
	if err != nil {
		return err
	}
	defer wt.cancel()
	var late samples
	for range b.reps(5, 2) {
		if _, err := w.startRun(ctx, repo, "exec sleep 1000"); err != nil {
			return err
		}
		began, err := wt.until(ctx, func(e agency.Event) bool { return e.Type == agency.AttemptStarted })
		if err != nil {
			return err
		}
		opened, err := wt.until(ctx, func(e agency.Event) bool { return e.Type == agency.AlertOpened })
		if err != nil {
			return err
		}
		late = append(late, opened.Sub(began.Add(intervals*poll)))
	}
	slowest := late.at(1)
	b.table.add(row{what: "a worker that hangs, after its time", got: late.String() + ", slowest " + ms(slowest)}, inMS(slowest),
		atMost(inMS(poll), " ms (one interval)"))
	return nil
}
