package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/sqlite"
)

// queueList measures agency queue ls with entries of runs that are put into the store. They are held,
// so that the daemon leaves them alone.
func queueList(ctx context.Context, b *bench, entries, reps int) (err error) {
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
	if err := f.fill(ctx, entries, false); err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, filepath.Join(w.home, "agency.db"), time.Now)
	if err != nil {
		return err
	}
	for i := range f.runs {
		r := &f.runs[i]
		err = errors.Join(err, store.AddQueueEntry(ctx, &agency.QueueEntry{
			RunID: r.ID, Repo: r.Repo.Fingerprint, Target: "main", Source: f.base, State: agency.EntryHeld, Reason: "held: agency queue hold", By: agency.User,
		}))
	}
	if err := errors.Join(err, store.Close(), w.startDaemon(ctx)); err != nil {
		return err
	}
	list := w.timing(ctx, repo, w.agency, "queue", "ls")
	var took samples
	for i := range reps + 2 {
		d, err := list()
		if err != nil {
			return err
		}
		if i >= 2 { // the first two warm up
			took = append(took, d)
		}
	}
	ms := float64(took.median()) / float64(time.Millisecond)
	b.table.add(row{what: fmt.Sprintf("queue ls, %d entries", entries), got: took.String()}, ms, atMost(15, " ms"))
	return nil
}

// greenToLanded measures the time from the end of a check to the record of the landing: the work of one
// run lands in one branch after the other, each with files of its own.
func greenToLanded(ctx context.Context, b *bench, files, reps int) (err error) {
	repo, err := makeRepo(ctx, b, files)
	if err != nil {
		return err
	}
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := errors.Join(w.configure("[worktrees]\nstandby = 0\n"), w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	ended := filepath.Join(w.dir, "ended")
	check := fmt.Sprintf("[[check]]\nname = \"test\"\nrun = [\"sh\", \"-c\", \"date +%%s%%N >%s\"]\n", ended)
	if err := os.WriteFile(filepath.Join(repo, agency.ProjectFile), []byte(check), 0o600); err != nil {
		return err
	}
	const branches = `git add -A; git commit -qm checks; for i in $(seq 0 %d); do echo $i >number; git add number; git commit -qm $i; git branch target-$i; done; git checkout -q target-0`
	for _, argv := range [][]string{
		{"sh", "-c", fmt.Sprintf(branches, reps)},
		{w.agency, "trust", "--target", "main"},
		{w.agency, "run", "--no-setup", "--name", "work", "--runner", "shell", "--headless", "--prompt", "echo more >work; git add work; git commit -qm work"},
		{w.agency, "wait", "work", "--timeout", "2m"},
	} {
		if _, err := w.run(ctx, repo, argv...); err != nil {
			return err
		}
	}
	var took samples
	for i := range reps + 1 {
		landed, err := landing(ctx, w, repo, fmt.Sprintf("target-%d", i))
		if err != nil {
			return err
		}
		data, err := os.ReadFile(ended)
		if err != nil {
			return err
		}
		green, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil {
			return err
		}
		if i > 0 { // the first one warms up
			took = append(took, landed.Sub(time.Unix(0, green)))
		}
	}
	ms := float64(took.median()) / float64(time.Millisecond)
	b.table.add(row{what: fmt.Sprintf("queue: green to landed, %d files, %d times", files, reps), got: took.String()}, ms, atMost(200, " ms"))
	return nil
}

// landing queues the run "work" for a branch, and returns when it had landed there.
func landing(ctx context.Context, w *world, repo, target string) (time.Time, error) {
	if _, err := w.run(ctx, repo, w.agency, "queue", "add", "work", "--into", target); err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := w.run(ctx, repo, w.agency, "queue", "show", "work", "--json")
		if err != nil {
			return time.Time{}, err
		}
		var shown struct{ Data api.QueueResponse }
		if err := json.Unmarshal(out, &shown); err != nil {
			return time.Time{}, err
		}
		for i := range shown.Data.Entries {
			switch e := &shown.Data.Entries[i].Entry; {
			case e.Target != target:
			case e.State == agency.EntryLanded:
				return e.ChangedAt, nil
			case e.State.Final() || e.Held():
				return time.Time{}, fmt.Errorf("the work is %s for %s: %s", e.State, target, e.Reason)
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
