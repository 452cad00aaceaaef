package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agency/internal/api"
)

// level is a number of live runs and how many clients bring it about.
type level struct{ runs, clients int }

// measureScale starts more and more sleepers, and at each level looks at what they cost; then it
// stops them all.
func measureScale(ctx context.Context, b *bench) (err error) {
	repos := []string{}
	for range 10 { // git's part of a creation grows with the worktrees of a repository
		repo, err := makeRepo(ctx, b, 20)
		if err != nil {
			return err
		}
		repos = append(repos, repo)
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	levels := []level{{1, 1}, {10, 4}, {100, 4}, {400, 50}, {1000, 4}}
	if b.quick {
		levels = []level{{1, 1}, {10, 4}, {60, 50}}
	}
	live := 0
	for _, l := range levels {
		if err := b.grow(ctx, w, repos, l, l.runs-live); err != nil {
			return fmt.Errorf("%d live runs: %w", l.runs, err)
		}
		live = l.runs
	}
	began := time.Now()
	for _, repo := range repos {
		if _, err := w.run(ctx, repo, w.agency, "stop", "--all"); err != nil {
			return err
		}
	}
	took := time.Since(began)
	status, err := api.Call(ctx, w.client, api.DaemonStatus, api.Empty{})
	if err != nil {
		return err
	}
	if status.LiveRuns > 0 {
		return fmt.Errorf("%d runs live after agency stop --all", status.LiveRuns)
	}
	b.table.add(row{what: fmt.Sprintf("all of %d stopped", live), got: seconds(took)}, took.Seconds(), atMost(60, " s"))
	return nil
}

// grow starts so many more sleepers and measures the level that is reached.
func (b *bench) grow(ctx context.Context, w *world, repos []string, l level, more int) error {
	name := fmt.Sprintf("%d live runs, ", l.runs)
	if err := b.startMore(ctx, w, repos, l, more, name); err != nil {
		return err
	}
	var ours, bare, ls, show samples
	for i := range 5 {
		began := time.Now()
		handle, err := w.startRun(ctx, repos[0], "exec sleep 10000")
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(began))
		if _, err := api.Call(ctx, w.client, api.StopRun, api.RunRequest{Run: handle}); err != nil {
			return err
		}
		took, err := createByHand(ctx, w, repos[0], 10*l.runs+i)
		if err != nil {
			return err
		}
		bare = append(bare, took)
		out, took, err := timed(ctx, repos[0], w.env, w.agency, "ls", "--all-repos", "-q")
		if err != nil {
			return err
		}
		ls = append(ls, took)
		if _, took, err = timed(ctx, repos[0], w.env, w.agency, "show", firstLine(out)); err != nil {
			return err
		}
		show = append(show, took)
	}
	ratio := float64(ours.median()) / float64(bare.median())
	b.table.add(row{what: name + "one more", got: ours.String(), beside: bare.String(), ratio: fmt.Sprintf("%.2fx", ratio)}, ratio, nil)
	b.table.add(row{what: name + "ls --all-repos -q", got: ls.String()}, inMS(ls.median()), nil)
	b.table.add(row{what: name + "show", got: show.String()}, inMS(show.median()), nil)
	used, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	b.table.add(row{what: name + "memory of the daemon (RSS)", got: mib(used[0].rss)}, float64(used[0].rss)/(1<<20), atMost(120, " MiB"))
	back, answered, err := adopt(ctx, w, l.runs, 0)
	if err != nil {
		return err
	}
	b.table.add(row{what: name + "killed daemon, its next answer", got: seconds(answered)}, answered.Seconds(), nil)
	b.table.add(row{what: name + "killed daemon, all wrappers back", got: seconds(back)}, back.Seconds(), atMost(3, " s"))
	return nil
}

// startMore starts more runs, and writes how many a second there were and how even the clients' shares.
func (b *bench) startMore(ctx context.Context, w *world, repos []string, l level, more int, name string) error {
	began := time.Now()
	byClient, err := startMany(ctx, w, repos, more, l.clients)
	if err != nil {
		return err
	}
	rate := float64(more) / time.Since(began).Seconds()
	var limit *bar
	if more >= 100 {
		limit = atLeast(25, " a second")
	}
	b.table.add(row{what: fmt.Sprintf("%s%d more by %d clients", name, more, l.clients), got: fmt.Sprintf("%.1f a second", rate)}, rate, limit)
	if l.clients >= 50 {
		share := float64(slices.Min(byClient)) / float64(slices.Max(byClient))
		b.table.add(row{
			what: name + "the client with the fewest by the one with the most", got: fmt.Sprintf("%d / %d", slices.Min(byClient), slices.Max(byClient)),
			ratio: fmt.Sprintf("%.2f", share),
		}, share, atLeast(0.5, ""))
	}
	return nil
}

// startMany starts sleepers by clients that each start one after the other, until there are enough.
// The repositories take turns. It returns how many each client started.
func startMany(ctx context.Context, w *world, repos []string, runs, clients int) ([]int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(int64(runs))
	byClient := make([]int, clients)
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			for n := left.Add(-1); n >= 0 && ctx.Err() == nil; n = left.Add(-1) {
				if _, err := w.startRun(ctx, repos[int(n)%len(repos)], "exec sleep 10000"); err != nil {
					cancel(err)
					return
				}
				byClient[i]++
			}
		})
	}
	work.Wait()
	return byClient, context.Cause(ctx)
}

func firstLine(text []byte) string {
	for i, c := range text {
		if c == '\n' {
			return string(text[:i])
		}
	}
	return string(text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
