package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// measureLand lands the work of runs, and does the same by plain git, in turns and in the same
// repository. The work changes 300 files, and the target has moved since the run began.
func measureLand(ctx context.Context, b *bench) error {
	if pairs := b.reps(20, 0); pairs > 0 {
		if err := dryLandings(ctx, b, 20_000, pairs); err != nil {
			return err
		}
	}
	if err := landings(ctx, b, 300, b.reps(20, 6)); err != nil {
		return err
	}
	if err := greenToLanded(ctx, b, 300, b.reps(20, 4)); err != nil {
		return err
	}
	return queueList(ctx, b, 200, b.reps(40, 10))
}

// dryLandings compares agency merge --dry-run with git merge-tree alone, by their difference.
func dryLandings(ctx context.Context, b *bench, files, pairs int) error {
	return landPairs(ctx, b, files, pairs, func(w *world, repo string, _ int) (ours, bare func() (time.Duration, error)) {
		return w.timing(ctx, repo, w.agency, "merge", "work", "--dry-run"), w.timing(ctx, repo, "git", "merge-tree", "--write-tree", "main", "theirs")
	}, func(ours, bare samples) {
		over := float64(ours.median()-bare.median()) / float64(time.Millisecond)
		b.table.add(row{
			what: fmt.Sprintf("merge --dry-run, %d files, %d pairs, over git merge-tree", files, pairs),
			got:  ours.String(), beside: bare.String(), ratio: fmt.Sprintf("+%.0f ms", over),
		}, over, atMost(30, " ms"))
	})
}

// landings compares agency merge --push into a branch that is checked out nowhere with a worktree of
// it, a merge there and a push. The remote is a bare repository on the same disk.
func landings(ctx context.Context, b *bench, files, pairs int) error {
	return landPairs(ctx, b, files, pairs, func(w *world, repo string, i int) (ours, bare func() (time.Duration, error)) {
		target, hand := fmt.Sprintf("target-%d", i), fmt.Sprintf("hand-%d", i)
		ours = func() (time.Duration, error) {
			if _, err := w.run(ctx, repo, "git", "branch", target, "main"); err != nil {
				return 0, err
			}
			return w.timing(ctx, repo, w.agency, "merge", "work", "--into", target, "--method", "merge", "--no-verify", "--push")()
		}
		bare = func() (time.Duration, error) {
			at := filepath.Join(w.dir, hand)
			added, err := w.timing(ctx, repo, "git", "worktree", "add", "-q", "-b", hand, at, "main")()
			if err != nil {
				return 0, err
			}
			merged, err := w.timing(ctx, at, "git", "merge", "-q", "--no-ff", "--no-edit", "theirs")()
			if err != nil {
				return 0, err
			}
			pushed, err := w.timing(ctx, at, "git", "push", "-q", "origin", hand)()
			return added + merged + pushed, err
		}
		return ours, bare
	}, func(ours, bare samples) {
		ratio := float64(ours.median()) / float64(bare.median())
		b.table.add(row{
			what: fmt.Sprintf("merge --push, %d files, %d pairs", files, pairs),
			got:  ours.String(), beside: bare.String(), ratio: fmt.Sprintf("%.2fx", ratio),
		}, ratio, atMost(2, "x"))
	})
}

// timing returns a function that runs a command and returns how long it took.
func (w *world) timing(ctx context.Context, dir string, argv ...string) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		_, took, err := timed(ctx, dir, w.env, argv...)
		return took, err
	}
}

// landPairs makes the run "work", whose branch is also called "theirs", and measures both sides in
// turns. The first pair warms up.
func landPairs(ctx context.Context, b *bench, files, pairs int, sides func(w *world, repo string, i int) (ours, bare func() (time.Duration, error)), report func(ours, bare samples)) (err error) {
	w, repo, err := newWorldWith(ctx, b, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	origin := filepath.Join(w.dir, "origin.git")
	for _, argv := range [][]string{
		{"git", "init", "-q", "--bare", origin}, {"git", "remote", "add", "origin", origin}, {"git", "push", "-q", "origin", "main"},
	} {
		if _, err := w.run(ctx, repo, argv...); err != nil {
			return err
		}
	}
	const work = `for f in $(git ls-files | head -n 300); do echo '// more' >>$f; done; git commit -qam work`
	if _, err := w.run(ctx, repo, w.agency, "run", "--name", "work", "--runner", "shell", "--headless", "--prompt", work); err != nil {
		return err
	}
	if _, err := w.run(ctx, repo, w.agency, "wait", "work", "--timeout", "2m"); err != nil {
		return err
	}
	branch, err := w.run(ctx, repo, "git", "for-each-ref", "--format=%(refname:short)", "refs/heads/agency/")
	if err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"git", "branch", "theirs", strings.TrimSpace(string(branch))},
		{"git", "commit", "-q", "--allow-empty", "-m", "more"},
	} {
		if _, err := w.run(ctx, repo, argv...); err != nil {
			return err
		}
	}
	var ours, bare samples
	for i := range pairs + 1 {
		one, other := sides(w, repo, i)
		both := []func() (time.Duration, error){one, other}
		var took [2]time.Duration
		for _, side := range []int{i % 2, 1 - i%2} {
			if took[side], err = both[side](); err != nil {
				return err
			}
		}
		if i > 0 {
			ours, bare = append(ours, took[0]), append(bare, took[1])
		}
	}
	report(ours, bare)
	return nil
}
