package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"agency"
	"agency/internal/file"
	"agency/internal/runner"
	"agency/internal/sqlite"
)

// runFileLimit is the largest file of a run's folder that Rebuild reads, in bytes.
const runFileLimit = 16 << 20

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Added   []string  // runs that the database did not have
	Updated []string  // runs of which the database had an older state
	Skipped []Skipped // folders that could not be used
	Kept    string    // path of the old database; empty when there was none
}

// Skipped is the folder of a run that cannot be read, or that conflicts with another run.
type Skipped struct{ Path, Reason string }

// Repos finds repositories.
type Repos interface {
	Discover(ctx context.Context, dir string) (agency.Repo, error)
}

// Rebuild adds to the database what the folders of the runs record and it does not have. Without a
// database it makes a new one. It works on a copy, which replaces the database in one step. After a
// crash, either nothing has changed, or the next Finish completes the rebuild.
func (d Database) Rebuild(ctx context.Context, repos Repos) (*Rebuilt, error) {
	if _, err := d.Finish(); err != nil {
		return nil, err
	}
	path := filepath.Join(d.Temp, "rebuild", "agency.db")
	drop, err := scratch(path)
	if err != nil {
		return nil, err
	}
	defer drop()
	if info, err := os.Lstat(d.Path()); err == nil && info.Size() > 0 {
		if err := copyChecked(ctx, d.Path(), path, d.Now); err != nil {
			return nil, err
		}
	}
	done := &Rebuilt{}
	if err := d.rebuildInto(ctx, path, repos, done); err != nil {
		return nil, err
	}
	done.Kept, err = d.replace(path)
	return done, err
}

func (d Database) rebuildInto(ctx context.Context, path string, repos Repos, done *Rebuilt) (err error) {
	store, err := sqlite.Open(ctx, path, d.Now)
	if err != nil {
		return err
	}
	defer func() { err = closeWhole(store, path, err) }()
	folders, err := os.ReadDir(filepath.Join(d.Home, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agency.Errorf(agency.CodeDBError, "read the run directories: %w", err)
	}
	for _, folder := range folders {
		dir := filepath.Join(d.Home, "runs", folder.Name())
		found, err := readRunFolder(dir)
		did := ""
		if err == nil {
			found.Run.Repo = recordedRepo(ctx, repos, found.Run.Repo)
			did, err = store.Rebuild(ctx, found)
		}
		if agency.IsCode(err, agency.CodeNameExists) {
			// The folder of the other run may be older than its removal, for example because the disk
			// was full. Without its name this one is still known, by its handle.
			found.Run.Name = ""
			did, err = store.Rebuild(ctx, found)
		}
		switch {
		case agency.IsCode(err, agency.CodeDBError):
			return err // the error is not about this run
		case err != nil:
			done.Skipped = append(done.Skipped, Skipped{Path: dir, Reason: agency.AsError(err).Message})
		case did == sqlite.RunAdded:
			done.Added = append(done.Added, found.Run.Ref())
		case did == sqlite.RunUpdated:
			done.Updated = append(done.Updated, found.Run.Ref())
		}
	}
	return store.Check(ctx)
}

// ReadRun returns the run that a folder records, and that Rebuild can add.
func ReadRun(dir string) (*agency.Run, error) {
	found, err := readRunFolder(dir)
	if err != nil {
		return nil, err
	}
	return found.Run, nil
}

// readRunFolder reads what the folder of a run records: the newest copy of the run's record, its
// request, and the records of its attempts.
func readRunFolder(dir string) (*sqlite.Found, error) {
	data, err := file.ReadRegular(filepath.Join(dir, "meta.json"), runFileLimit)
	if err != nil {
		return nil, err
	}
	r := &agency.Run{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read meta.json: %w", err)
	}
	if string(r.ID) != filepath.Base(dir) || r.Repo.Fingerprint == "" || r.Attempt.Number < 1 || !knownState(r.Attempt.State) {
		return nil, errors.New("meta.json is not that of this run")
	}
	r.Dir = dir
	found := &sqlite.Found{Run: r, Spec: []byte("{}")}
	if spec, err := file.ReadRegular(filepath.Join(dir, "spec.json"), runFileLimit); err == nil {
		found.Spec = spec
	}
	readAttempts(found)
	return found, nil
}

func knownState(s agency.State) bool { return s.Final() || s == agency.Queued || s == agency.Running }

// readAttempts adds the wrappers' records of the attempts before the newest one in the copy of the
// run's record, and of those after it: the copy may be older than the last start.
func readAttempts(f *sqlite.Found) {
	r, known := f.Run, f.Run.Attempt.Number
	for n := 1; ; n++ {
		start, err := runner.ReadStart(attemptFolder(r, n))
		switch {
		case n < known:
			f.Earlier = append(f.Earlier, pastAttempt(r, n, start))
			continue
		case n > known && (start == nil || err != nil):
			return
		case n > known:
			before := r.Attempt
			if !before.State.Final() {
				before = pastAttempt(r, n-1, nil)
			}
			f.Earlier = append(f.Earlier, before)
			r.Attempt = startedAttempt(n, start)
			r.Attempt.State, r.UpdatedAt = agency.Running, start.StartedAt
		}
		if start != nil {
			f.TokenHash = start.TokenHash
		}
	}
}

func attemptFolder(r *agency.Run, n int) string {
	return filepath.Join(r.Dir, "attempts", strconv.Itoa(n))
}

func startedAttempt(n int, start *agency.Start) agency.Attempt {
	a := agency.Attempt{
		Number: n, CreatedAt: start.StartedAt, StartedAt: &start.StartedAt, Wrapper: &start.Wrapper, RunnerProcess: &start.Runner, Pane: start.Pane,
	}
	switch {
	case start.Mode != "":
		a.SetMode(start.Mode)
	case start.TTY:
		a.SetMode(agency.ModeTerminal)
	default:
		a.SetMode(agency.ModeHeadless)
	}
	return a
}

// pastAttempt returns an ended attempt, from its records. An attempt without a readable exit record
// was lost.
func pastAttempt(r *agency.Run, n int, start *agency.Start) agency.Attempt {
	a := agency.Attempt{Number: n, CreatedAt: r.CreatedAt}
	if start != nil {
		a = startedAttempt(n, start)
	}
	a.State, a.ErrorCode, a.Error = agency.Failed, agency.CodeRunnerDisappeared, "there is no record of its end"
	exit, err := runner.ReadExit(attemptFolder(r, n))
	if err != nil || exit == nil {
		return a
	}
	state, err := agency.Next(agency.Running, exit.Fact(false))
	if err != nil {
		return a
	}
	a.State, a.EndedAt, a.EndedBy, a.Signal, a.ErrorCode, a.Error = state, &exit.EndedAt, exit.EndedBy, exit.Signal, "", ""
	if state == agency.Failed {
		a.ErrorCode, a.Error = exit.Failure()
	}
	if exit.Signal == "" {
		a.ExitCode = &exit.ExitCode
	}
	return a
}

// recordedRepo completes a repository with what the folder of a run does not record. For a
// repository that is gone it assumes the usual place.
func recordedRepo(ctx context.Context, repos Repos, known agency.Repo) agency.Repo {
	found, err := repos.Discover(ctx, known.Root)
	if err == nil && found.Fingerprint == known.Fingerprint {
		return found
	}
	known.CommonDir = filepath.Join(known.Root, ".git")
	return known
}
