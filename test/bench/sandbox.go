package main

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// measureSandbox starts runs at the levels process and worktree, in turns and in the same
// repository. Without bubblewrap it measures nothing.
func measureSandbox(ctx context.Context, b *bench) (err error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil //nolint:nilerr // the row is left out
	}
	w, repo, err := newWorldWith(ctx, b, 300)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	levels := []string{"worktree", "process"}
	took := make([]samples, len(levels))
	for i := range b.reps(30, 8) + 1 {
		for n := range levels {
			side := (i + n) % len(levels)
			one, err := createByAgency(ctx, w, repo, "--sandbox", levels[side])
			if err != nil {
				return err
			}
			if i > 0 { // the first pair warms up
				took[side] = append(took[side], one)
			}
		}
	}
	more := took[1].median() - took[0].median()
	b.table.add(row{what: "agency run --sandbox process, 300 files, more than at worktree: " + ms(more), got: took[1].String(), beside: took[0].String()},
		inMS(more), atMost(inMS(15*time.Millisecond), "ms"))
	return nil
}
