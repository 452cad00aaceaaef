package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agency/internal/api"
)

// measureCreate starts runs, and does the same by hand, in turns and in the same repository. Both
// start "sleep 1000" and are stopped before the next pair, so that neither side has more load. The
// worktrees stay until the end: on some file systems creating files is many times slower just after
// others were deleted.
func measureCreate(ctx context.Context, b *bench) error {
	for _, size := range []struct {
		files, pairs int
		bar          *bar
	}{
		{10, b.reps(30, 8), nil}, // nearly no files: what remains is the cost of a run itself
		{300, b.reps(30, 8), atMost(1.5, "x")},
		{20_000, b.reps(4, 0), atMost(1.5, "x")},
	} {
		if size.pairs == 0 {
			continue
		}
		if err := createPairs(ctx, b, size.files, size.pairs, size.bar); err != nil {
			return err
		}
	}
	return nil
}

func createPairs(ctx context.Context, b *bench, files, pairs int, limit *bar) (err error) {
	repo, err := makeRepo(ctx, b, files)
	if err != nil {
		return err
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	var ours, bare samples
	for i := range pairs + 1 {
		sides := []func() (time.Duration, error){
			func() (time.Duration, error) { return createByAgency(ctx, w, repo) },
			func() (time.Duration, error) { return createByHand(ctx, w, repo, i) },
		}
		var took [2]time.Duration
		for _, side := range []int{i % 2, 1 - i%2} {
			if took[side], err = sides[side](); err != nil {
				return err
			}
		}
		if i > 0 { // the first pair warms up
			ours, bare = append(ours, took[0]), append(bare, took[1])
		}
	}
	ratio := float64(ours.median()) / float64(bare.median())
	b.table.add(row{
		what: fmt.Sprintf("%d files, %d pairs", files, pairs),
		got:  ours.String(), beside: bare.String(), ratio: fmt.Sprintf("%.2fx", ratio),
	}, ratio, limit)
	return nil
}

func createByAgency(ctx context.Context, w *world, repo string) (time.Duration, error) {
	out, took, err := timed(ctx, repo, w.env, w.agency, "run", "--runner", "shell", "--prompt", "exec sleep 1000")
	if err != nil {
		return 0, err
	}
	_, err = api.Call(ctx, w.client, api.StopRun, api.RunRequest{Run: strings.TrimSpace(string(out))})
	return took, err
}

func createByHand(ctx context.Context, w *world, repo string, n int) (time.Duration, error) {
	branch := fmt.Sprintf("by-hand-%d", n)
	path := filepath.Join(w.dir, branch)
	_, worktree, err := timed(ctx, repo, w.env, "git", "worktree", "add", "-q", "-b", branch, path)
	if err != nil {
		return 0, err
	}
	_, session, err := timed(ctx, repo, w.env, "tmux", "-S", w.socket, "new-session", "-d", "-s", branch, "-c", path, "exec sleep 1000")
	if err != nil {
		return 0, err
	}
	_, err = w.run(ctx, repo, "tmux", "-S", w.socket, "kill-session", "-t", branch)
	return worktree + session, err
}
