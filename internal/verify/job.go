package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/supervisor"
)

// job is one verification. It takes a landing worktree when the first check must run.
type job struct {
	*Verifier
	subject *Subject
	plan    *supervisor.CheckPlan
	tree    string // of the commit
	env     []string
	envHash string
	warn    func(text string)

	at     *tree // nil until a check must run
	done   func()
	broken string // why no check can run; empty when checks can
}

func (j *job) close() {
	if j.done != nil {
		j.done()
	}
}

// check returns the verdict of one check, from the record or by running it.
func (j *job) check(ctx context.Context, c *agency.Check, noCache bool) (*agency.CheckResult, error) {
	key := agency.CheckKey{Repo: j.subject.Repo.Fingerprint, Tree: j.tree, Check: c.Hash(&j.plan.Project), Env: j.envHash}
	if !noCache {
		if known, err := j.Store.KnownCheck(ctx, key); err != nil {
			return nil, err
		} else if known != nil && known.Verdict.Lasts() {
			known.Source, known.Target, known.Merged, known.Cached = j.subject.Source, j.subject.Target, j.subject.Merged, true
			return known, j.Store.RecordCheck(ctx, key, j.subject.Run, known)
		}
	}
	if j.at == nil {
		if err := j.begin(ctx); err != nil {
			return nil, err
		}
		// Another verification may have come to the same verdict while this one waited.
		if !noCache {
			return j.check(ctx, c, false)
		}
	}
	end := j.running.begin(key)
	defer end()
	result, err := j.run(ctx, c)
	if err != nil {
		return nil, err
	}
	killpoint.At("check.ended")
	if err := j.Store.RecordCheck(ctx, key, j.subject.Run, result); err != nil {
		return nil, err
	}
	killpoint.At("check.recorded")
	return result, nil
}

// begin takes a landing worktree and prepares it. Only one verification at a time checks the same
// files.
func (j *job) begin(ctx context.Context) (err error) {
	unlock, err := j.same.Lock(ctx, j.subject.Repo.Fingerprint+" "+j.tree)
	if err != nil {
		return err
	}
	at, free, err := j.open(ctx, j.subject.Repo, j.subject.Commit)
	if err != nil {
		unlock()
		return err
	}
	j.at, j.done = at, func() { free(); unlock() }
	if err := os.MkdirAll(j.logs(), 0o700); err != nil {
		return err
	}
	log := filepath.Join(j.logs(), "setup-"+filepath.Base(j.at.path)+".log")
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		return err
	}
	err = j.Projects.Prepare(ctx, j.plan, supervisor.Preparing{
		Repo: j.subject.Repo, Worktree: j.at.path, Env: j.at.environ(j.env), Mark: j.at.mark, Log: log,
		CheckOut: func() error { return j.checkOut(ctx) }, Run: j.RunSetup, Warn: j.warn,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if agency.IsCode(err, agency.CodeSetupFailed) {
		j.broken, err = agency.AsError(err).Message, nil
	}
	killpoint.At("checks.prepared")
	return err
}

// logs returns the folder of the logs of all checks.
func (j *job) logs() string { return filepath.Join(j.Home, logsFolder) }

// logsFolder is the folder of the logs of checks in the data root.
const logsFolder = "checks"

func (j *job) checkOut(ctx context.Context) error {
	return j.Git.CheckOut(ctx, j.subject.Repo, j.at.path, j.subject.Commit, j.at.mark)
}

// environ returns the environment of a program in the landing worktree.
func (t *tree) environ(env []string) []string {
	return append(append([]string{}, env...), "PWD="+t.path, t.mark)
}

// run runs a check until it passes, as often as its retries allow. Before each try it restores the
// files of the commit.
func (j *job) run(ctx context.Context, c *agency.Check) (*agency.CheckResult, error) {
	var random [10]byte
	j.Random(random[:])
	began := j.Now()
	id := agency.NewCheckID(began, random)
	result := &agency.CheckResult{
		ID: id, Name: c.Name, Commit: j.subject.Commit, Tree: j.tree, Began: began.UTC(), Log: filepath.Join(j.logs(), id+".log"),
		Source: j.subject.Source, Target: j.subject.Target, Merged: j.subject.Merged,
	}
	for result.Verdict != agency.CheckPassed && result.Runs <= c.Retries {
		if err := j.once(ctx, c, result); err != nil {
			return nil, err
		}
		if result.Verdict == agency.CheckBroken {
			break
		}
	}
	result.Ended = j.Now().UTC()
	return result, nil
}

// once runs a check once.
func (j *job) once(ctx context.Context, c *agency.Check, result *agency.CheckResult) error {
	result.Runs++
	if j.broken != "" {
		result.Verdict, result.Reason = agency.CheckBroken, "cannot run: "+j.broken
		return note(result)
	}
	if err := j.checkOut(ctx); err != nil {
		return err
	}
	env := j.at.environ(j.env)
	argv, err := supervisor.FindProgram(c.Run, j.at.path, env)
	if err != nil {
		result.Verdict, result.Reason = agency.CheckBroken, err.Error()
		return note(result)
	}
	result.Verdict, result.Reason, err = j.RunCheck(ctx, agency.SetupCommand{
		Argv: argv, Dir: j.at.path, Env: env, Mark: j.at.mark, Log: result.Log, Timeout: c.Timeout,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("run the check %s: %w", c.Name, err)
	}
	return nil
}

// note writes why a check did not run into the file for its output.
func note(result *agency.CheckResult) error {
	return os.WriteFile(result.Log, []byte("agency: check "+result.Reason+"\n"), 0o600)
}
