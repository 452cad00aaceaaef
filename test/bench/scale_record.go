package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// kept is the number of ended runs that are not removed in a record of mostly removed ones.
const kept = 100

// measureRecord measures what looks at runs, in records of growing size, and how long the daemon
// takes to start. All runs have ended. In one record all but the first hundred are removed, in the
// other none is.
func measureRecord(ctx context.Context, b *bench) error {
	for _, removed := range []bool{true, false} {
		if err := growRecord(ctx, b, removed); err != nil {
			return err
		}
	}
	return nil
}

func growRecord(ctx context.Context, b *bench, removed bool) (err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	// Each run is a flush to the disk: the record is filled in memory where there is such a folder.
	memory, err := os.MkdirTemp("/dev/shm", "agb")
	if err != nil {
		memory = w.home
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(memory)) }()
	}
	f := &filling{repo: repo, home: w.home, record: memory}
	if removed {
		f.keep = kept
	}
	what := "ended runs"
	if removed {
		what = "ended and removed runs"
	}
	for _, total := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		if b.quick && total > 1000 || !removed && total > 10_000 { // what is kept is looked at, run by run
			break
		}
		if err := f.fill(ctx, total, false); err != nil {
			return err
		}
		if memory != w.home {
			if err := copyFile(filepath.Join(memory, "agency.db"), filepath.Join(w.home, "agency.db")); err != nil {
				return err
			}
		}
		if err := b.lookAtRecord(ctx, w, f, fmt.Sprintf("%d %s, ", total, what), removed); err != nil {
			return err
		}
	}
	return nil
}

// lookAtRecord measures a daemon with a record. The bars are those of a record without ended runs:
// nothing grows with them.
func (b *bench) lookAtRecord(ctx context.Context, w *world, f *filling, name string, bars bool) error {
	began := time.Now()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	started := time.Since(began)
	limit := func(limit float64, unit string) *bar {
		if !bars {
			return nil
		}
		return atMost(limit, unit)
	}
	b.table.add(row{what: name + "start of the daemon", got: ms(started)}, inMS(started), limit(500, " ms"))
	for _, c := range []struct {
		name string
		argv []string
		bar  *bar
	}{
		{"ls", []string{"ls"}, limit(60, " ms")},
		{"show", []string{"show", f.runs[0].Handle}, limit(50, " ms")},
		{"gc", []string{"gc", "--older-than", "0s"}, limit(500, " ms")},
	} {
		var took samples
		before, err := cpuOf(w.pid)
		if err != nil {
			return err
		}
		reps := b.reps(6, 3)
		for i := range reps {
			_, d, err := timed(ctx, f.repo, w.env, append([]string{w.agency}, c.argv...)...)
			if err != nil {
				return err
			}
			if i > 0 { // the first warms up
				took = append(took, d)
			}
		}
		after, err := cpuOf(w.pid)
		if err != nil {
			return err
		}
		b.table.add(row{
			what: name + c.name, got: took.String(), beside: fmt.Sprintf("%s of processor time of the daemon", ms((after-before)/time.Duration(reps))),
		}, inMS(took.median()), c.bar)
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	used, err := usageOf([]int{w.pid})
	if err != nil {
		return err
	}
	b.table.add(row{
		what: name + "the daemon", got: mib(used[0].rss), beside: fmt.Sprintf("%.2f s of processor time since its start", used[0].cpu.Seconds()),
	}, float64(used[0].rss)/(1<<20), limit(120, " MiB"))
	return w.stopDaemon(ctx)
}

// copyFile replaces the file to by a copy of from.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
