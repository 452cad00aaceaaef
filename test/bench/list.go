package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/creack/pty"
)

// measureList lists records of growing size, from inside the repository as users do. The runs are
// put into the store without processes, and are therefore final: a daemon settles a live run
// without a process. The last store holds running runs, whose wrappers this program plays.
func measureList(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 100)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f := &filling{repo: repo, home: w.home}
	bars := map[int]*bar{1: atMost(12, " ms"), 10_000: atMost(60, " ms")}
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
	return lookAtLive(ctx, b)
}

func lookAtLive(ctx context.Context, b *bench) error {
	return withLive(ctx, b, func(w *world, f *filling) error { return look(ctx, b, w, f, "active", atMost(12, " ms")) })
}

// withLive calls measure with a thousand live runs, whose wrappers this program plays.
func withLive(ctx context.Context, b *bench, measure func(*world, *filling) error) (err error) {
	w, repo, err := newWorldWith(ctx, b, 100)
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
	// The daemon stops before the crew: it would settle a thousand runs whose wrappers die.
	return errors.Join(measure(w, f), w.stopDaemon(ctx))
}

// firstScreens measures ls --watch from its start until it has drawn its table on a terminal.
func firstScreens(ctx context.Context, b *bench, w *world, repo string) (samples, error) {
	var took samples
	for i := range b.reps(20, 5) + 1 {
		d, err := firstScreen(ctx, w, repo)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first one warms up
			took = append(took, d)
		}
	}
	return took, nil
}

func firstScreen(ctx context.Context, w *world, repo string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.agency, "ls", "--watch")
	cmd.Dir, cmd.Env = repo, append(slices.Clip(w.env), "TERM=xterm-256color")
	began := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 120})
	if err != nil {
		return 0, err
	}
	defer func() {
		cancel()
		_ = terminal.Close()
		_ = cmd.Wait() // it was killed
	}()
	var seen []byte
	buf := make([]byte, 1<<16)
	for !bytes.Contains(seen, []byte("SUMMARY")) {
		n, err := terminal.Read(buf)
		if err != nil {
			return 0, fmt.Errorf("agency ls --watch: %w after %q", err, seen)
		}
		seen = append(seen, buf[:n]...)
	}
	return time.Since(began), nil
}

// look measures the commands that show runs. The limit applies to ls; that of show is for any number
// of runs.
func look(ctx context.Context, b *bench, w *world, f *filling, state string, limit *bar) error {
	reps := b.reps(40, 10)
	if len(f.runs) >= 10_000 {
		reps = 15
	}
	commands := [][]string{{"ls"}, {"ls", "--json"}, {"show", f.runs[0].Handle}}
	took := make([]samples, len(commands))
	// While the daemon collects the garbage of a long list, show would take longer.
	for _, turns := range [][]int{{0, 1}, {2}} {
		for i := range reps + 2 {
			for _, n := range turns {
				_, d, err := timed(ctx, f.repo, w.env, append([]string{w.agency}, commands[n]...)...)
				if err != nil {
					return err
				}
				if i >= 2 { // the first two warm up
					took[n] = append(took[n], d)
				}
			}
		}
	}
	for n, name := range []string{"ls", "ls --json", "show"} {
		held := []*bar{limit, nil, atMost(9, " ms")}[n]
		b.table.add(row{
			what: fmt.Sprintf("%s, %d %s", name, len(f.runs), state), got: took[n].String(),
		}, inMS(took[n].median()), held)
	}
	screens, err := firstScreens(ctx, b, w, f.repo)
	if err != nil {
		return err
	}
	b.table.add(row{
		what: fmt.Sprintf("ls --watch until its first screen, %d %s", len(f.runs), state), got: screens.String(),
	}, inMS(screens.median()), limit)
	return ctx.Err()
}

// epoch is the creation time of the first run in a filled store.
var epoch = time.Now().Add(-24 * time.Hour).Truncate(time.Second)
