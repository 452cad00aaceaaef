package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"agency"
	"agency/internal/supervisor"
)

// Checks are the checks of a branch, which judge commits that may be the work of several runs.
type Checks struct {
	verifier *Verifier
	subject  Subject
	plan     *supervisor.CheckPlan // nil when the branch has none
}

// ChecksAt returns the checks of a branch at a commit. The errors are those of Projects.PlanChecks.
// For a branch without checks everything passes.
func (v *Verifier) ChecksAt(ctx context.Context, repo agency.Repo, target, commit string) (*Checks, error) {
	c := &Checks{verifier: v, subject: Subject{Repo: repo, Target: target, TargetCommit: commit, Merged: true}}
	var err error
	c.plan, err = v.Projects.PlanChecks(ctx, repo, target, commit)
	if agency.IsCode(err, agency.CodeNoChecks) {
		return c, nil
	}
	return c, err
}

// None reports whether nothing is checked.
func (c *Checks) None() bool { return c.plan == nil }

// Hash returns a hash of what runs: the checks and how a worktree is prepared for them. It is empty
// when nothing is checked.
func (c *Checks) Hash() string {
	if c.plan == nil {
		return ""
	}
	sum := sha256.New()
	for i := range c.plan.Project.Checks {
		_, _ = io.WriteString(sum, c.plan.Project.Checks[i].Hash(&c.plan.Project))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Guard returns E_APPROVAL_REQUIRED when the commits after from, up to to, change files that decide
// what runs.
func (c *Checks) Guard(ctx context.Context, from, to string) error {
	if c.plan == nil {
		return nil
	}
	return c.verifier.guard(ctx, c.subject.Repo, c.plan, from, to)
}

// Judge returns the verdicts on a commit, in the order of the configuration, from the record or by
// running the checks. It flags no run. The checks get env, without variables that match deny.
func (c *Checks) Judge(ctx context.Context, commit string, again bool, env, deny []string) ([]agency.CheckResult, error) {
	if c.plan == nil {
		return []agency.CheckResult{}, nil
	}
	subject := c.subject
	subject.Commit, subject.Source = commit, commit
	warn := func(text string) { c.verifier.Logger.Warn(text, "commit", commit) }
	return c.verifier.Check(ctx, &subject, c.plan, &Request{NoCache: again, Env: env, Deny: deny, Warn: warn})
}

// Blame records verdicts of Judge for the work of a run. With flag, it flags the run for them.
func (c *Checks) Blame(ctx context.Context, run agency.RunID, source string, verdicts []agency.CheckResult, flag bool) error {
	for i := range verdicts {
		verdict := verdicts[i]
		verdict.Source, verdict.Cached = source, true // it was recorded before
		if err := c.verifier.Store.RecordCheck(ctx, agency.CheckKey{}, run, &verdict); err != nil {
			return err
		}
	}
	if !flag {
		return nil
	}
	return c.verifier.mark(ctx, &Verification{Run: &agency.Run{ID: run}, Checks: verdicts}, true)
}
