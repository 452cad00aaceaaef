package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"agency/internal/api"
	"agency/internal/plain"
)

// measureFirst measures how long the first answer takes after a daemon was killed and all its
// agents ended meanwhile, and how many runs it still shows as live.
func measureFirst(ctx context.Context, b *bench) error {
	live := b.reps(100, 10)
	var answers samples
	wrong := 0
	for range b.reps(5, 1) {
		took, shown, err := firstAnswer(ctx, b, live)
		if err != nil {
			return err
		}
		answers, wrong = append(answers, took), wrong+shown
	}
	what := fmt.Sprintf("first answer after a killed daemon with %d runs that ended meanwhile", live)
	b.table.add(row{what: what, got: answers.String()}, inMS(answers.at(1)), atMost(2000, " ms"))
	b.table.add(row{what: "runs that it showed as live", got: strconv.Itoa(wrong)}, 0, nil)
	if wrong > 0 {
		return fmt.Errorf("%d runs whose exit record was there were shown as live", wrong)
	}
	return nil
}

// firstAnswer starts runs, kills the daemon, ends the agents, and asks the next daemon once all
// their exit records exist.
func firstAnswer(ctx context.Context, b *bench, live int) (took time.Duration, shown int, err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(ctx); err != nil {
		return 0, 0, err
	}
	end := filepath.Join(w.home, "end")
	for range live {
		if _, err := w.startRun(ctx, repo, "while [ ! -e "+plain.ShellWord(end)+" ]; do sleep 0.1; done"); err != nil {
			return 0, 0, err
		}
	}
	if err := syscall.Kill(w.pid, syscall.SIGKILL); err != nil {
		return 0, 0, err
	}
	w.client.Close()
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		return 0, 0, err
	}
	for {
		records, err := filepath.Glob(filepath.Join(w.home, "runs", "*", "attempts", "1", "runner_done.json"))
		if err != nil {
			return 0, 0, err
		}
		if len(records) == live {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
	began := time.Now()
	if err := w.startDaemon(ctx); err != nil {
		return 0, 0, err
	}
	list, err := api.Call(ctx, w.client, api.ListRuns, api.ListRunsRequest{})
	took = time.Since(began)
	for i := range list.Runs {
		if !list.Runs[i].State.Final() {
			shown++
		}
	}
	return took, shown, err
}
