package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"agency"
	"agency/internal/git"
	"agency/internal/sqlite"
)

// filling is a store that is filled without starting a process.
type filling struct {
	repo   string
	home   string
	record string // the folder of the record while it is filled; empty is home
	keep   int    // so many runs are not removed; 0 is all
	base   string // the commit at which the runs began
	runs   []agency.Run
}

const token = "0123456789abcdef0123456789abcdef"

// fill adds runs to the store until it has total. The first has a real worktree with a commit of
// its own, which show reads with git. No daemon may run.
func (f *filling) fill(ctx context.Context, total int, live bool) error {
	repo, err := git.New(time.Minute, f.home, f.home).Discover(ctx, f.repo)
	if err != nil {
		return err
	}
	if repo.Fingerprint, err = git.New(time.Minute, f.home, f.home).EnsureID(repo, uuid.NewString); err != nil {
		return err
	}
	base, _, err := timed(ctx, f.repo, plainEnv(f.home), "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	f.base = strings.TrimSpace(string(base))
	record := f.record
	if record == "" {
		record = f.home
	}
	store, err := sqlite.Open(ctx, filepath.Join(record, "agency.db"), time.Now)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for len(f.runs) < total {
		r := f.run(repo, len(f.runs), live)
		if len(f.runs) == 0 {
			if err := f.work(ctx, &r); err != nil {
				return err
			}
		}
		for _, dir := range []string{filepath.Join(r.Worktree, agency.StateDir), filepath.Join(r.Dir, "attempts", "1")} {
			if !live {
				break // the daemon does not look for the folders of an ended run
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		creation := agency.Creation{Spec: []byte("{}"), TokenHash: agency.TokenHash(token), Steps: []string{"files", "worktree", "scaffold", "session", "started"}}
		if err := store.CreateRun(ctx, &r, creation, agency.EventDraft{Type: agency.RunCreated, Data: map[string]any{"handle": r.Handle}}); err != nil {
			return err
		}
		f.runs = append(f.runs, r)
	}
	return nil
}

// work makes the worktree of a run, with a commit.
func (f *filling) work(ctx context.Context, r *agency.Run) error {
	_, _, err := timed(ctx, f.repo, plainEnv(f.home), "git", "worktree", "add", "-q", "-b", r.Branch, r.Worktree)
	if err == nil {
		_, _, err = timed(ctx, r.Worktree, plainEnv(f.home), "git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "--allow-empty", "-m", "work")
	}
	return err
}

// run returns run number n in the state of a working agent, or of an ended one.
func (f *filling) run(repo agency.Repo, n int, live bool) agency.Run {
	var random [10]byte
	binary.BigEndian.PutUint32(random[6:], uint32(n))
	at := epoch.Add(time.Duration(n) * time.Second)
	id := agency.NewRunID(at, random)
	contract := agency.NewContract(at)
	contract.Summary = fmt.Sprintf("Reading the tests of the login form, step %d", n)
	process := agency.Process{PID: 1 << 30, StartTicks: 123456, BootID: "00000000-0000-4000-8000-000000000000"}
	handle := fmt.Sprintf("1122-fix-login-%04x", n)
	r := agency.Run{
		ID: id, Handle: handle, Name: fmt.Sprintf("fix-login-%d", n), Type: "build", Repo: repo,
		Base: "HEAD", Commit: f.base, Branch: "agency/" + handle,
		Worktree: filepath.Join(f.home, "worktrees", repo.Fingerprint, string(id)), Dir: filepath.Join(f.home, "runs", string(id)),
		Runner: agency.Runner{Kind: "claude_code", Name: "claude_code", Args: []string{}}, Tags: []string{"worker"}, Host: "here",
		Attempt: agency.Attempt{
			Number: 1, State: agency.Running, StartedAt: &at, Pane: "%1", Wrapper: &process, RunnerProcess: &process,
			Reported: agency.Observed{Contract: &contract, At: at},
		},
	}
	if !live {
		r.Tags = []string{"done"} // no worker: the watchdog would open an alert for the work of each
		code, ended := 0, at.Add(time.Minute)
		if f.keep > 0 && n >= f.keep {
			r.RemovedAt = &ended
		}
		r.Attempt.State, r.Attempt.EndedAt, r.Attempt.ExitCode, r.Attempt.EndedBy = agency.Completed, &ended, &code, agency.EndedByRunner
	}
	return r
}
