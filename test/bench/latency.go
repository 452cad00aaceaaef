package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
)

// measureLatency causes changes and waits for them on the stream of events.
func measureLatency(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 50)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	if err := statusLatency(ctx, b, w, repo); err != nil {
		return err
	}
	if err := watchLatency(ctx, b, w, repo); err != nil {
		return err
	}
	return exitLatency(ctx, b, w, repo)
}

// waiter passes the events of the record on as they arrive.
type waiter struct {
	events chan seen
	cancel context.CancelFunc
}

type seen struct {
	agency.Event
	at time.Time
}

func wait(ctx context.Context, w *world) (*waiter, error) {
	status, err := api.Call(ctx, w.client, api.DaemonStatus, api.Empty{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	wt := &waiter{events: make(chan seen, 1024), cancel: cancel}
	go func() {
		defer close(wt.events)
		_ = w.client.Follow(ctx, status.LastSeq, "", func() {}, func(e agency.Event) error {
			wt.events <- seen{e, time.Now()}
			return nil
		})
	}()
	return wt, nil
}

// until returns when the first event arrives for which awaited returns true.
func (wt *waiter) until(ctx context.Context, awaited func(e agency.Event) bool) (time.Time, error) {
	timeout := time.After(10 * time.Second)
	for {
		select {
		case e, ok := <-wt.events:
			if !ok {
				return time.Time{}, errors.New("the stream of events ended")
			}
			if awaited(e.Event) {
				return e.at, nil
			}
		case <-timeout:
			return time.Time{}, errors.New("an awaited event did not come within 10 seconds")
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// statusLatency replaces the status file, as agents do, and waits for the event.
func statusLatency(ctx context.Context, b *bench, w *world, repo string) error {
	handle, err := w.startRun(ctx, repo, "exec sleep 1000")
	if err != nil {
		return err
	}
	shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: handle})
	if err != nil {
		return err
	}
	wt, err := wait(ctx, w)
	if err != nil {
		return err
	}
	defer wt.cancel()
	var took samples
	for i := range b.reps(200, 50) {
		summary := fmt.Sprintf("Step %d", i)
		begin, err := replaceContract(shown.Run.Worktree, summary)
		if err != nil {
			return err
		}
		end, err := wt.until(ctx, func(e agency.Event) bool {
			var said struct{ Summary string }
			return e.Type == agency.ContractChanged && json.Unmarshal(e.Data, &said) == nil && said.Summary == summary
		})
		if err != nil {
			return err
		}
		took = append(took, end.Sub(begin))
	}
	b.table.add(percentiles("status file replaced -> event", took), inMS(took.at(0.99)), atMost(50, " ms"))
	return nil
}

// replaceContract replaces the status file in a worktree, and returns the time.
func replaceContract(worktree, summary string) (time.Time, error) {
	path := filepath.Join(worktree, agency.ContractFile)
	contract := agency.NewContract(time.Now())
	contract.Summary = summary
	data, err := json.Marshal(contract)
	if err != nil {
		return time.Time{}, err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	return at, os.Rename(path+".new", path)
}

// watchLatency replaces the status file and waits until agency ls --watch shows it.
func watchLatency(ctx context.Context, b *bench, w *world, repo string) (err error) {
	handle, err := w.startRun(ctx, repo, "exec sleep 1000")
	if err != nil {
		return err
	}
	shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: handle})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	watch := exec.CommandContext(ctx, b.agency, "ls", "--watch")
	watch.Dir, watch.Env = repo, w.env
	watch.Cancel = func() error { return watch.Process.Signal(os.Interrupt) }
	out, err := watch.StdoutPipe()
	if err != nil {
		return err
	}
	if err := watch.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = watch.Wait() // it was interrupted
	}()
	lines := bufio.NewScanner(out)
	until := func(text string) error {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return nil
			}
		}
		return fmt.Errorf("agency ls --watch ended before it showed %q: %w", text, errors.Join(lines.Err(), ctx.Err()))
	}
	if err := until(handle); err != nil {
		return err
	}
	var took samples
	for i := range b.reps(200, 50) {
		summary := fmt.Sprintf("Look %d.", i)
		begin, err := replaceContract(shown.Run.Worktree, summary)
		if err != nil {
			return err
		}
		if err := until(summary); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	b.table.add(percentiles("status file replaced -> ls --watch", took), inMS(took.at(0.99)), atMost(100, " ms"))
	return nil
}

// exitLatency ends runners one after the other. Each waits on a pipe, so the test chooses the
// moment.
func exitLatency(ctx context.Context, b *bench, w *world, repo string) error {
	type run struct {
		id   agency.RunID
		gate *os.File
	}
	runs := []run{}
	defer func() {
		for _, r := range runs {
			_ = r.gate.Close()
		}
	}()
	for i := range b.reps(50, 10) {
		path := filepath.Join(w.dir, fmt.Sprintf("gate-%d", i))
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			return err
		}
		gate, err := os.OpenFile(path, os.O_RDWR, 0) // for reading too: opening does not wait for the other side
		if err != nil {
			return err
		}
		runs = append(runs, run{gate: gate})
		handle, err := w.startRun(ctx, repo, "read line < "+path+"; exit 0")
		if err != nil {
			return err
		}
		shown, err := api.Call(ctx, w.client, api.ShowRun, api.RunRequest{Run: handle})
		if err != nil {
			return err
		}
		runs[i].id = shown.Run.ID
	}
	wt, err := wait(ctx, w)
	if err != nil {
		return err
	}
	defer wt.cancel()
	var took samples
	for _, r := range runs {
		begin := time.Now()
		if _, err := r.gate.WriteString("go\n"); err != nil {
			return err
		}
		end, err := wt.until(ctx, func(e agency.Event) bool {
			var ended struct{ State agency.State }
			return e.Type == agency.AttemptEnded && e.RunID == r.id && json.Unmarshal(e.Data, &ended) == nil && ended.State == agency.Completed
		})
		if err != nil {
			return err
		}
		took = append(took, end.Sub(begin))
	}
	b.table.add(percentiles("runner's exit -> completed", took), inMS(took.at(0.99)), atMost(100, " ms"))
	return nil
}

func percentiles(what string, s samples) row {
	return row{
		what: fmt.Sprintf("%s, %d times", what, len(s)),
		got:  fmt.Sprintf("p50 %s, p99 %s", ms(s.median()), ms(s.at(0.99))),
	}
}
