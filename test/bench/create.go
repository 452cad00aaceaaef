package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
		standby      bool // a worktree that was made ahead waits for each run
		bar          *bar
	}{
		{10, b.reps(30, 8), false, atMost(1.6, "x")}, // nearly no files: what remains is the cost of a run itself
		{300, b.reps(30, 8), false, atMost(1.25, "x")},
		{20_000, b.reps(4, 0), false, atMost(0.7, "x")},
		{20_000, b.reps(4, 0), true, atMost(0.25, "x")},
	} {
		if size.pairs == 0 {
			continue
		}
		if err := createPairs(ctx, b, size.files, size.pairs, size.standby, size.bar); err != nil {
			return err
		}
	}
	if b.quick {
		return nil
	}
	return createWithSetup(ctx, b)
}

// createWithSetup starts runs in a repository whose setup takes half a minute, and that ran ahead
// of each run but the first.
func createWithSetup(ctx context.Context, b *bench) (err error) {
	repo, err := makeRepo(ctx, b, 300)
	if err != nil {
		return err
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if known, err := w.knowsStandbys(ctx); err != nil || !known {
		return err
	}
	project := "[scripts]\nsetup = [\"sleep\", \"30\"]\nsetup_inputs = [\"d000\"]\n"
	if err := os.WriteFile(filepath.Join(repo, "agency.toml"), []byte(project), 0o600); err != nil {
		return err
	}
	for _, argv := range [][]string{{"git", "add", "agency.toml"}, {"git", "commit", "-q", "-m", "a setup"}, {w.agency, "trust"}} {
		if _, err := w.run(ctx, repo, argv...); err != nil {
			return err
		}
	}
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	first, err := createByAgency(ctx, w, repo)
	if err != nil {
		return err
	}
	var ahead samples
	for range 3 {
		if err := w.awaitStandby(ctx); err != nil {
			return err
		}
		took, err := createByAgency(ctx, w, repo)
		if err != nil {
			return err
		}
		ahead = append(ahead, took)
	}
	b.table.add(row{
		what: "300 files and a setup of 30 s, from a standby", got: ahead.String(), beside: samples{first}.String(),
	}, inMS(ahead.median()), atMost(1000, " ms"))
	return nil
}

func createPairs(ctx context.Context, b *bench, files, pairs int, standby bool, limit *bar) (err error) {
	w, repo, err := newWorldWith(ctx, b, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	known, err := w.knowsStandbys(ctx)
	switch {
	case err != nil:
		return err
	case standby && !known: // an older program, which is compared
		return nil
	case known && !standby:
		if err := w.configure("[worktrees]\nstandby = 0\n"); err != nil {
			return err
		}
	}
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
			if standby && i > 0 {
				if err := w.awaitStandby(ctx); err != nil {
					return err
				}
			}
			// Who flushes next would wait for what the other side, or the making of a standby, wrote.
			syscall.Sync()
			if took[side], err = sides[side](); err != nil {
				return err
			}
		}
		if i > 0 { // the first pair warms up
			ours, bare = append(ours, took[0]), append(bare, took[1])
		}
	}
	ratio := float64(ours.median()) / float64(bare.median())
	what := fmt.Sprintf("%d files, %d pairs", files, pairs)
	if standby {
		what += ", from a standby"
	}
	b.table.add(row{
		what: what,
		got:  ours.String(), beside: bare.String(), ratio: fmt.Sprintf("%.2fx", ratio),
	}, ratio, limit)
	return nil
}

// createByAgency starts a run with these flags, ends it, and returns how long the start took.
func createByAgency(ctx context.Context, w *world, repo string, flags ...string) (time.Duration, error) {
	argv := append([]string{w.agency, "run", "--runner", "shell", "--prompt", "exec sleep 1000"}, flags...)
	out, took, err := timed(ctx, repo, w.env, argv...)
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

// knowsStandbys reports whether the program makes worktrees ahead of runs.
func (w *world) knowsStandbys(ctx context.Context) (bool, error) {
	out, err := w.run(ctx, w.dir, w.agency, "config", "show")
	return strings.Contains(string(out), "worktrees.standby"), err
}

// awaitStandby waits until a worktree was made ahead.
func (w *world) awaitStandby(ctx context.Context) error {
	for {
		resp, err := api.Call(ctx, w.client, api.ListStandbys, api.Empty{})
		if err != nil || len(resp.Standbys) > 0 && resp.Standbys[0].Ready {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
