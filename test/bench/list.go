package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// measureList lists records of growing size, from inside the repository as users do. The runs are
// put into the store without processes, and are therefore final: a daemon settles a live run
// without a process. The last store holds running runs, whose wrappers this program plays.
func measureList(ctx context.Context, b *bench) (err error) {
	repo, err := makeRepo(ctx, b, 100)
	if err != nil {
		return err
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f := &filling{repo: repo, home: w.home}
	bars := map[int]*bar{1: atMost(12, " ms")}
	for _, total := range []int{1, 100, 1000, 10_000} {
		if b.quick && total > 1000 {
			break
		}
		if err := f.fill(ctx, total, false); err != nil {
			return err
		}
		if err := w.startDaemon(ctx); err != nil {
			return err
		}
		if err := look(ctx, b, w, f, "ended", bars[total]); err != nil {
			return err
		}
		if err := w.stopDaemon(ctx); err != nil {
			return err
		}
	}
	return lookAtLive(ctx, b, repo)
}

func lookAtLive(ctx context.Context, b *bench, repo string) (err error) {
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f := &filling{repo: repo, home: w.home}
	if err := f.fill(ctx, 1000, true); err != nil {
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
	err = look(ctx, b, w, f, "active", atMost(25, " ms"))
	// The daemon stops before the crew: it would settle a thousand runs whose wrappers die.
	return errors.Join(err, w.stopDaemon(ctx))
}

// look measures the commands that show runs. The limit applies to ls.
func look(ctx context.Context, b *bench, w *world, f *filling, state string, limit *bar) error {
	reps := b.reps(40, 10)
	if len(f.runs) >= 10_000 {
		reps = 15
	}
	commands := [][]string{{"ls"}, {"ls", "--json"}, {"show", f.runs[0].Handle}}
	took := make([]samples, len(commands))
	for i := range reps + 2 {
		for n, args := range commands {
			_, d, err := timed(ctx, f.repo, w.env, append([]string{w.agency}, args...)...)
			if err != nil {
				return err
			}
			if i >= 2 { // the first two warm up
				took[n] = append(took[n], d)
			}
		}
	}
	for n, name := range []string{"ls", "ls --json", "show"} {
		held := limit
		if n > 0 {
			held = nil
		}
		b.table.add(row{
			what: fmt.Sprintf("%s, %d %s", name, len(f.runs), state), got: took[n].String(),
		}, inMS(took[n].median()), held)
	}
	return ctx.Err()
}

// epoch is the creation time of the first run in a filled store.
var epoch = time.Now().Add(-24 * time.Hour).Truncate(time.Second)
