package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agency/test/fixture"
)

// measureSandbox starts runs at each level that this machine has, in turns and in the same
// repository, and fetches through the proxy. The container engine is the benchmark's own.
func measureSandbox(ctx context.Context, b *bench) (err error) {
	if err := measureProxy(ctx, b); err != nil {
		return err
	}
	w, repo, err := newWorldWith(ctx, b, 300)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	levels := []string{"worktree"}
	bars := map[string]*bar{"process": atMost(inMS(15*time.Millisecond), "ms")}
	if _, err := exec.LookPath("bwrap"); err == nil {
		levels = append(levels, "process")
	}
	if fixture.NoEngine() == "" {
		engine, err := fixture.NewEngine()
		if err != nil {
			return err
		}
		defer engine.End()
		w.env = append(w.env, "DOCKER_HOST=unix://"+engine.Socket)
		project := filepath.Join(repo, "agency.toml")
		if err := os.WriteFile(project, fmt.Appendf(nil, "[sandbox]\nimage = %q\n", fixture.Image), 0o600); err != nil {
			return err
		}
		levels = append(levels, "container")
	}
	if err := errors.Join(w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	took := make([]samples, len(levels))
	for i := range b.reps(30, 8) + 1 {
		for n := range levels {
			side := (i + n) % len(levels)
			one, err := createByAgency(ctx, w, repo, "--sandbox", levels[side])
			if err != nil {
				return err
			}
			if i > 0 { // the first round warms up
				took[side] = append(took[side], one)
			}
		}
	}
	for n, level := range levels[1:] {
		more := took[n+1].median() - took[0].median()
		b.table.add(row{
			what: fmt.Sprintf("agency run --sandbox %s, 300 files, more than at worktree: %s", level, ms(more)),
			got:  took[n+1].String(), beside: took[0].String(),
		}, inMS(more), bars[level])
	}
	return nil
}
