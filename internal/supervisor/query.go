package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// Query lists, shows and waits for runs, and reads their logs.
type Query struct {
	store          *Records
	live           *Live
	repos          *Repos
	work           *Work
	observer       *observe.Observer
	terminals      *observe.Terminals
	launcher       *launcher
	git            Git
	tmux           Tmux
	attempts       Attempts
	log            *slog.Logger
	rescanInterval *rescanInterval
}

// RunsOf returns runs, oldest first. dir limits them to the repository that contains it; empty is
// every repository. The runs are shared, and only to be read.
func (q *Query) RunsOf(ctx context.Context, dir string, f agency.Filter) ([]*agency.Run, error) {
	if dir != "" {
		repo, err := q.Repo(ctx, dir)
		if err != nil {
			return nil, err
		}
		if repo.Fingerprint == "" {
			return []*agency.Run{}, nil
		}
		f.Repo = repo.Fingerprint
	}
	return q.store.List(ctx, f)
}

// Repo returns the repository of a folder; without a fingerprint where agency was never used.
func (q *Query) Repo(ctx context.Context, dir string) (agency.Repo, error) {
	repo, err := q.git.Recall(ctx, dir)
	if err != nil || repo.Fingerprint == "" {
		return repo, err
	}
	return repo, q.repos.place(ctx, &repo, false) // it may have been moved or copied
}

// RunOf is RunsOf limited to the run that a reference means: it returns that run or none.
func (q *Query) RunOf(ctx context.Context, dir, ref string, f agency.Filter) ([]*agency.Run, error) {
	r, err := q.store.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		repo, err := q.git.Recall(ctx, dir)
		if err != nil {
			return nil, err
		}
		if repo.Fingerprint != r.Repo.Fingerprint {
			return []*agency.Run{}, nil
		}
	}
	if r.RemovedAt != nil && !f.Removed || f.Tag != "" && !r.HasTag(f.Tag) {
		return []*agency.Run{}, nil
	}
	return []*agency.Run{r}, nil
}

// RunsWithIDs is RunsOf limited to the runs with these ids, oldest first. An id of no run is left out.
func (q *Query) RunsWithIDs(ctx context.Context, dir string, ids []agency.RunID, f agency.Filter) ([]*agency.Run, error) {
	all := []*agency.Run{}
	ids = slices.Sorted(slices.Values(ids)) // an id begins with the time at which it was made
	for _, id := range slices.Compact(ids) {
		runs, err := q.RunOf(ctx, dir, string(id), f)
		if agency.IsCode(err, agency.CodeRunNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(runs) == 1 && runs[0].ID == id { // ref may be a name or a handle
			all = append(all, runs...)
		}
	}
	return all, nil
}

// Details is what show adds to a run's record.
type Details struct {
	Attempts   []agency.Attempt
	Steps      []agency.Step
	Git        *agency.GitFacts
	GitProblem string
	Connected  bool
	LastOutput *time.Time
	InputsPath string
	PromptPath string
	LogPath    string
	OutputPath string // empty while there is none
}

// Show gathers everything about a run.
func (q *Query) Show(ctx context.Context, ref string) (*agency.Run, *Details, error) {
	r, err := q.store.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	d := &Details{
		InputsPath: filepath.Join(r.Dir, "inputs.json"),
		PromptPath: filepath.Join(r.Dir, agency.TaskFile),
		LogPath:    filepath.Join(observe.AttemptDir(r.Dir, r.Attempt.Number), "logs", "runner.log"),
	}
	var beside sync.WaitGroup // git takes longer than all the rest
	defer beside.Wait()
	if r.RemovedAt == nil {
		beside.Go(func() { d.Git, d.GitProblem = q.work.facts(ctx, r) })
	}
	q.observer.CheckRecord(r)
	if _, err := os.Lstat(observe.OutputPath(r)); err == nil {
		d.OutputPath = observe.OutputPath(r)
	}
	if d.Attempts, err = q.store.Attempts(ctx, r.ID); err != nil {
		return nil, nil, err
	}
	if d.Steps, err = q.store.Steps(ctx, r.ID, r.Attempt.Number); err != nil {
		return nil, nil, err
	}
	// The end of an attempt is in the record a moment before its link is dropped.
	if l, ok := q.live.get(r.ID); ok && l.attempt == r.Attempt.Number {
		d.Connected = l.link != nil && !r.Attempt.State.Final()
	}
	if seen, ok := q.observer.Seen(r.ID); ok && !seen.OutputAt.IsZero() {
		d.LastOutput = &seen.OutputAt
	}
	if d.LastOutput == nil {
		d.LastOutput = lastWritten(d.LogPath)
	}
	return r, d, nil
}

// lastWritten returns when a log was last written, which is known even without its wrapper; nil
// when never.
func lastWritten(path string) *time.Time {
	info, err := os.Lstat(path)
	if err != nil || info.Size() == 0 {
		return nil
	}
	at := info.ModTime().UTC()
	return &at
}

// Terminal finds the run whose terminal a client wants to show, and the socket of the tmux server
// that holds it.
func (q *Query) Terminal(ctx context.Context, ref string) (r *agency.Run, socket string, err error) {
	if r, err = q.store.Resolve(ctx, ref); err != nil {
		return nil, "", err
	}
	if err := q.launcher.checkTmux(ctx); err != nil {
		return nil, "", err
	}
	exists, err := q.tmux.Exists(ctx, r.Session())
	if err != nil {
		return nil, "", err
	}
	if !exists {
		return nil, "", agency.Errorf(agency.CodeTmuxSessionNotFound, "the terminal of %s is gone", r.Ref()).
			WithHint("agency logs %s", r.Ref())
	}
	return r, q.tmux.Socket(), nil
}

// Wait returns when every run has one of the wanted labels, or is settled when none is given. An
// attempt that ends because the next one replaces it does not count as settled. An agent of a
// session that has not begun is waited for. When ctx ends, it returns the runs as they are, without
// those of agents that have not begun, and the context's error.
func (q *Query) Wait(ctx context.Context, refs []string, labels []agency.Label) ([]agency.Run, []agency.Status, error) {
	ids := make([]agency.RunID, len(refs)) // empty for an agent that has not begun
	// Some labels change with time alone, without an event.
	clock := time.NewTicker(q.rescanInterval.every())
	defer clock.Stop()
	for {
		changed := q.store.Changed()
		runs, statuses := make([]agency.Run, 0, len(ids)), make([]agency.Status, 0, len(ids))
		done, missed, restarting := true, false, false
		for i, ref := range refs {
			if ids[i] == "" {
				r, err := q.store.Resolve(context.WithoutCancel(ctx), ref)
				if agency.UnbegunAgent(err) != "" {
					done = false
					continue
				}
				if err != nil {
					return nil, nil, err
				}
				ids[i] = r.ID
			}
			r, goesOn, err := q.afterRestart(ctx, ids[i])
			if err != nil {
				return nil, nil, err
			}
			status := q.observer.Derive(r)
			runs, statuses = append(runs, *r), append(statuses, status)
			reached := status.Label.Settled()
			if len(labels) > 0 {
				reached = slices.Contains(labels, status.Label)
				missed = missed || !reached && r.Attempt.State.Final()
			}
			done, restarting = done && reached, restarting || goesOn
		}
		switch {
		case restarting: // the next attempt decides
		case done:
			return runs, statuses, nil
		case missed:
			return runs, statuses, agency.Errorf(agency.CodeInvalidState, "a run has ended without reaching %s", joinLabels(labels))
		}
		select {
		case <-changed:
		case <-clock.C:
		case <-ctx.Done():
			return runs, statuses, ctx.Err()
		}
	}
}

// afterRestart reads a run. If its attempt was stopped for a restart, it waits until the next
// attempt has begun or is known not to come: a restart holds the lock of the run until then, and
// after a crash no process holds it. restarting reports that ctx ended before that.
func (q *Query) afterRestart(ctx context.Context, id agency.RunID) (r *agency.Run, restarting bool, err error) {
	reading := context.WithoutCancel(ctx)
	r, err = q.store.Run(reading, id)
	if err != nil || !r.Attempt.State.Final() || !r.Attempt.Restarting {
		return r, false, err
	}
	release, err := q.store.lock(ctx, id)
	if err != nil {
		return r, true, nil //nolint:nilerr // the caller returns the error of ctx
	}
	release()
	r, err = q.store.Run(reading, id)
	return r, false, err
}

// Restarting reports whether the restart for which the newest attempt of a run was stopped continues, or
// has begun the next attempt.
func (q *Query) Restarting(ctx context.Context, id agency.RunID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // no wait for the restart
	defer cancel()
	r, restarting, err := q.afterRestart(ctx, id)
	return err == nil && (restarting || !r.Attempt.State.Final()), err
}

func joinLabels(labels []agency.Label) string {
	words := make([]string, 0, len(labels))
	for _, l := range labels {
		words = append(words, string(l))
	}
	return strings.Join(words, " or ")
}

// LogRequest chooses a part of a log.
type LogRequest struct {
	Ref     string
	Stream  string // runner, stdout, stderr or wire
	Attempt int    // 0 is the newest
	From    observe.LogStart
	Follow  bool
}

// Logs copies a log to w. Before the copy it calls begin with the attempt and the offset of the
// first byte. With Follow it continues until the attempt has ended; it calls flush after each
// piece.
func (q *Query) Logs(ctx context.Context, req LogRequest, w io.Writer, begin func(attempt int, offset int64), flush func()) error {
	r, err := q.store.Resolve(ctx, req.Ref)
	if err != nil {
		return err
	}
	n := req.Attempt
	if n == 0 {
		n = r.Attempt.Number
	}
	if n < 1 || n > r.Attempt.Number {
		return agency.Errorf(agency.CodeRunNotFound, "%s has no attempt %d; it has %d", r.Ref(), n, r.Attempt.Number)
	}
	log, offset, err := q.attempts.OpenLog(observe.AttemptDir(r.Dir, n), req.Stream, req.From)
	if errors.Is(err, os.ErrNotExist) {
		return agency.Errorf(agency.CodeRunNotFound, "attempt %d of %s has no log", n, r.Ref()).WithHint("agency show %s", r.Ref())
	}
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", r.Ref(), err)
	}
	defer func() { _ = log.Close() }()
	begin(n, offset)
	following := req.Follow && n == r.Attempt.Number && !r.Attempt.State.Final()
	logs := filepath.Join(observe.AttemptDir(r.Dir, n), "logs")
	hints, stop := q.observer.Listen(logs)
	defer stop()
	for {
		changed := q.store.Changed()
		// The end of the attempt is checked before reading, so that nothing written before its end
		// is missed.
		if following {
			now, err := q.store.Run(ctx, r.ID)
			if err != nil {
				return err
			}
			following = now.Attempt.Number == n && !now.Attempt.State.Final()
		}
		copied, err := io.Copy(w, log)
		if err != nil {
			return err
		}
		if copied > 0 {
			flush()
		}
		if !following {
			return nil
		}
		select {
		case <-hints:
		case <-changed:
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// Worker returns a run as the watchdog needs it, and when its output last had something new (zero
// is unknown).
func (q *Query) Worker(ctx context.Context, id agency.RunID) (*agency.Run, agency.Status, time.Time, error) {
	r, err := q.store.Run(ctx, id)
	if err != nil {
		return nil, agency.Status{}, time.Time{}, err
	}
	var drafts time.Time
	if seen, ok := q.observer.Seen(id); ok && seen.Attempt == r.Attempt.Number {
		drafts = seen.OutputChanged
	}
	status := q.observer.Derive(r)
	return r, status, drafts, nil
}
