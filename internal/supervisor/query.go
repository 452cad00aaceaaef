package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/status"
)

// Derive is the status of a run now. The caller's r gets what is known of its agent; the record may be a moment behind.
func (s *Supervisor) Derive(r *agency.Run) agency.Status {
	f := s.facts(r)
	return status.Derive(f, s.moment(f))
}

// moment is the time to derive a status at. What looks like a stall is looked at again: time that a clock was set forward
// by, or that the machine slept, is no silence of the agent's.
func (s *Supervisor) moment(f status.Facts) time.Time {
	now := s.Now()
	if seems := status.Derive(f, now); seems.Label == agency.Stalled {
		return seems.Since.Add(s.Elapsed(seems.Since))
	}
	return now
}

// facts are everything that the status of a run is derived from.
func (s *Supervisor) facts(r *agency.Run) status.Facts {
	f := status.Facts{Run: r, StallThreshold: time.Duration(s.stall.Load()), SilentSince: s.silentSince(r)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.RemovedAt == nil {
		f.RecordProblem = s.broken[r.ID]
	}
	if l := s.live[r.ID]; l != nil && l.attempt == r.Attempt.Number {
		r.Attempt.Situation, f.SessionGone = *l.situation, l.unseen
		r.Attempt.LogLost = max(r.Attempt.LogLost, l.logLost)
	}
	return f
}

// RunsOf lists runs, oldest first. dir limits them to the repository that it lies in; empty is every repository.
func (s *Supervisor) RunsOf(ctx context.Context, dir string, f agency.Filter) ([]agency.Run, error) {
	if dir != "" {
		repo, err := s.Git.Discover(ctx, dir)
		if err != nil {
			return nil, err
		}
		if repo.Fingerprint == "" {
			return []agency.Run{}, nil // agency was never used here
		}
		if err := s.Repos.place(ctx, &repo, false); err != nil { // somebody may have moved or copied it
			return nil, err
		}
		f.Repo = repo.Fingerprint
	}
	return s.Records.Runs(ctx, f)
}

// RunOf is as RunsOf for the one run that a reference means: it lists that or nothing.
func (s *Supervisor) RunOf(ctx context.Context, dir, ref string, f agency.Filter) ([]agency.Run, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		repo, err := s.Git.Discover(ctx, dir)
		if err != nil {
			return nil, err
		}
		if repo.Fingerprint != r.Repo.Fingerprint {
			return []agency.Run{}, nil
		}
	}
	if r.RemovedAt != nil && !f.Removed || f.Tag != "" && !r.HasTag(f.Tag) {
		return []agency.Run{}, nil
	}
	return []agency.Run{*r}, nil
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
func (s *Supervisor) Show(ctx context.Context, ref string) (*agency.Run, *Details, error) {
	r, err := s.Records.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	s.checkRecord(r)
	d := &Details{
		InputsPath: filepath.Join(r.Dir, "inputs.json"),
		PromptPath: filepath.Join(r.Dir, "prompt.md"),
		LogPath:    filepath.Join(attemptDir(r.Dir, r.Attempt.Number), "logs", "runner.log"),
	}
	if _, err := os.Lstat(outputPath(r)); err == nil {
		d.OutputPath = outputPath(r)
	}
	if d.Attempts, err = s.Records.Attempts(ctx, r.ID); err != nil {
		return nil, nil, err
	}
	if d.Steps, err = s.Records.Steps(ctx, r.ID, r.Attempt.Number); err != nil {
		return nil, nil, err
	}
	if r.RemovedAt == nil {
		d.Git, d.GitProblem = s.Work.facts(ctx, r)
	}
	s.mu.Lock()
	if l := s.live[r.ID]; l != nil {
		d.Connected = l.link != nil
		if !l.lastOutput.IsZero() {
			last := l.lastOutput
			d.LastOutput = &last
		}
	}
	s.mu.Unlock()
	if d.LastOutput == nil {
		d.LastOutput = lastWritten(d.LogPath)
	}
	return r, d, nil
}

// lastWritten is when something was last written to a log, which outlives the wrapper that could tell; nil when never.
func lastWritten(path string) *time.Time {
	info, err := os.Lstat(path)
	if err != nil || info.Size() == 0 {
		return nil
	}
	at := info.ModTime().UTC()
	return &at
}

// Terminal finds the run whose terminal a client wants to show, and the socket of the tmux server that holds it.
func (s *Supervisor) Terminal(ctx context.Context, ref string) (r *agency.Run, socket string, err error) {
	if r, err = s.Records.Resolve(ctx, ref); err != nil {
		return nil, "", err
	}
	if err := s.checkTmux(ctx); err != nil {
		return nil, "", err
	}
	exists, err := s.Tmux.Exists(ctx, r.Session())
	if err != nil {
		return nil, "", err
	}
	if !exists {
		return nil, "", agency.Errorf(agency.CodeTmuxSessionNotFound, "%s is %s and its terminal is gone", r.Ref(), r.Attempt.State).
			WithHint("agency logs %s", r.Ref())
	}
	return r, s.Tmux.Socket(), nil
}

// Wait returns when every run has one of the wanted labels, or is settled when none is given. The end of an attempt that makes
// place for the next one is no end. On the end of ctx it returns the runs as they are together with the context's error.
func (s *Supervisor) Wait(ctx context.Context, refs []string, labels []agency.Label) ([]agency.Run, []agency.Status, error) {
	ids := make([]agency.RunID, 0, len(refs))
	for _, ref := range refs {
		r, err := s.Records.Resolve(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, r.ID)
	}
	// Some labels come with time alone, without an event.
	clock := time.NewTicker(s.pace())
	defer clock.Stop()
	for {
		changed := s.Records.Changed()
		runs, statuses, done, restarting := make([]agency.Run, 0, len(ids)), make([]agency.Status, 0, len(ids)), true, false
		for _, id := range ids {
			r, goesOn, err := s.afterRestart(ctx, id)
			if err != nil {
				return nil, nil, err
			}
			restarting = restarting || goesOn
			status := s.Derive(r)
			runs, statuses = append(runs, *r), append(statuses, status)
			reached := status.Label.Settled()
			if len(labels) > 0 {
				reached = slices.Contains(labels, status.Label)
			}
			done = done && reached
		}
		if done && !restarting {
			return runs, statuses, nil
		}
		if len(labels) > 0 && !restarting && slices.ContainsFunc(runs, func(r agency.Run) bool {
			return r.Attempt.State.Final() && !slices.Contains(labels, s.Derive(&r).Label)
		}) {
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

// afterRestart reads a run, and one whose attempt was stopped to make place for the next one only when that has begun or does not
// come: who restarts a run holds it as long, and after a crash nobody does. restarting says that ctx ended before.
func (s *Supervisor) afterRestart(ctx context.Context, id agency.RunID) (r *agency.Run, restarting bool, err error) {
	reading := context.WithoutCancel(ctx)
	r, err = s.Records.Run(reading, id)
	if err != nil || !r.Attempt.State.Final() || !r.Attempt.Restarting {
		return r, false, err
	}
	release, err := s.Records.lock(ctx, id)
	if err != nil {
		return r, true, nil //nolint:nilerr // the end of ctx is the caller's
	}
	release()
	r, err = s.Records.Run(reading, id)
	return r, false, err
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
	Stream  string // runner, stdout or stderr
	Attempt int    // 0 is the newest
	Since   time.Time
	Offset  *int64 // instead of Since: the byte to begin with, counted from the first one ever written
	Follow  bool
}

// Logs copies a log to w, after begin was told which attempt it is and with which byte it begins. With Follow it goes on until
// the attempt has ended; flush is called after each piece.
func (s *Supervisor) Logs(ctx context.Context, req LogRequest, w io.Writer, begin func(attempt int, offset int64), flush func()) error {
	r, err := s.Records.Resolve(ctx, req.Ref)
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
	log, offset, err := s.Attempts.OpenLog(attemptDir(r.Dir, n), req.Stream, req.Since, req.Offset)
	if errors.Is(err, os.ErrNotExist) {
		return agency.Errorf(agency.CodeRunNotFound, "attempt %d of %s has no log", n, r.Ref()).WithHint("agency show %s", r.Ref())
	}
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", r.Ref(), err)
	}
	defer func() { _ = log.Close() }()
	begin(n, offset)
	following := req.Follow && n == r.Attempt.Number && !r.Attempt.State.Final()
	logs := filepath.Join(attemptDir(r.Dir, n), "logs")
	hints, stop := s.listen(logs)
	defer stop()
	for {
		changed := s.Records.Changed()
		// Whether the attempt had ended is asked before reading, so that nothing written before its end is missed.
		if following {
			now, err := s.Records.Run(ctx, r.ID)
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
