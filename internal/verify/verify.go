// Package verify runs the checks of a repository on exactly one commit, in a worktree of its own,
// and remembers the verdicts, so that the same check never runs twice on the same files.
package verify

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/plain"
	"agency/internal/supervisor"
	"agency/internal/supervisor/keyed"
)

// Store is the record of verdicts.
type Store interface {
	// KnownCheck returns the newest result for a key; nil when there is none.
	KnownCheck(ctx context.Context, key agency.CheckKey) (*agency.CheckResult, error)
	// RecordCheck records a result, and that it is the newest one for a run, if there is one.
	RecordCheck(ctx context.Context, key agency.CheckKey, run agency.RunID, v *agency.CheckResult) error
	// ChecksOf returns the newest result of each check of a run's work.
	ChecksOf(ctx context.Context, run agency.RunID) ([]agency.CheckResult, error)
	// ShownLogs returns the paths of the logs of all these, for the runs that are not removed.
	ShownLogs(ctx context.Context) (map[string]bool, error)
}

// Git is what checks need from git.
type Git interface {
	ResolveCommit(ctx context.Context, dir, ref string) (string, error)
	Tree(ctx context.Context, repo agency.Repo, commit string) (string, error)
	ForkPoint(ctx context.Context, repo agency.Repo, one, other string) (string, error)
	Touched(ctx context.Context, repo agency.Repo, from, to string, patterns []string) ([]string, error)
	Inspect(ctx context.Context, repo agency.Repo, worktree, baseCommit string) (agency.GitFacts, error)
	Result(ctx context.Context, repo agency.Repo, worktree, message string) (string, error)
	Merge(ctx context.Context, repo agency.Repo, commits []string, message string) (string, error)
	Worktree(ctx context.Context, repo agency.Repo, path string) (at string, err error)
	RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error
	// AddDetached makes a worktree without a branch and without files.
	AddDetached(ctx context.Context, repo agency.Repo, path, commit, mark string) error
	// CheckOut gives a worktree exactly the files of a commit, besides ignored ones.
	CheckOut(ctx context.Context, repo agency.Repo, worktree, commit, mark string) error
}

// Projects reads the checks of repositories, as far as users trust them.
type Projects interface {
	PlanChecks(ctx context.Context, repo agency.Repo, target, commit string) (*supervisor.CheckPlan, error)
	Prepare(ctx context.Context, plan *supervisor.CheckPlan, at supervisor.Preparing) error
}

// Runs finds runs and their repositories.
type Runs interface {
	Resolve(ctx context.Context, ref string) (*agency.Run, error)
}

// Repos finds the repositories of runs.
type Repos interface {
	Of(ctx context.Context, r *agency.Run) (agency.Repo, error)
}

// Marks flags runs whose checks do not pass.
type Marks interface {
	FlagChecks(ctx context.Context, id agency.RunID, reason string) error
	UnflagChecks(ctx context.Context, id agency.RunID) error
}

// Deps are the parts that a Verifier works with.
type Deps struct {
	Store    Store
	Git      Git
	Projects Projects
	Runs     Runs
	Repos    Repos
	Marks    Marks
	RunSetup supervisor.RunSetup
	// Target returns the branch in which the work of a run would land.
	Target func(ctx context.Context, r *agency.Run, repo agency.Repo, asked string) (string, error)
	// RunCheck runs a check to its end and returns its verdict with the reason. An error means that
	// there is no verdict.
	RunCheck func(ctx context.Context, c agency.SetupCommand) (agency.Verdict, string, error)
	// EndTree ends the processes that carry a mark, and returns how many are left.
	EndTree func(ctx context.Context, mark []string, grace time.Duration) (int, error)
	Room    func() error // returns why the disk has no room for a worktree
	// Parallel returns in how many worktrees of one repository checks run at the same time at most.
	Parallel func() int
	Home     string // data root
	Logger   *slog.Logger
	Now      func() time.Time
	Random   func([]byte)
}

// Verifier runs checks. All methods may be called from several goroutines.
type Verifier struct {
	Deps
	same    keyed.Locks // held during the checks of files, by repository and tree
	trees   places
	running running
}

// New returns a Verifier.
func New(deps Deps) *Verifier { return &Verifier{Deps: deps} }

// Request asks for a verification of the work of a run.
type Request struct {
	Run         string // reference
	Into        string // the branch whose checks count; empty is the one in which the work would land
	Merged      bool   // check the work as merged with the branch
	Uncommitted bool   // include uncommitted work
	Check       string // only this one; empty is all
	NoCache     bool   // run checks again whose verdicts are known
	Approve     bool   // the user accepts changed checks
	Env         []string
	Deny        []string // patterns of variables that no check gets
	Warn        func(text string)
}

// Verification is the outcome of a Request.
type Verification struct {
	Run    *agency.Run
	Target string
	Source string // the commit of the run's work
	Commit string // the commit that was checked: the source, or its merge with the target
	Merged bool
	Checks []agency.CheckResult // in the order of the configuration
}

// Passed reports whether all checks have passed.
func (v *Verification) Passed() bool {
	return !slices.ContainsFunc(v.Checks, func(c agency.CheckResult) bool { return c.Verdict != agency.CheckPassed })
}

// Verify checks the work of a run. A check that does not pass is not an error: it flags the run,
// until a later verification passes. The errors are E_UNCOMMITTED, E_MERGE_CONFLICT,
// E_APPROVAL_REQUIRED when the work changes files that decide what runs, and those of
// Projects.PlanChecks.
func (v *Verifier) Verify(ctx context.Context, req Request) (*Verification, error) {
	r, err := v.Runs.Resolve(ctx, req.Run)
	if err != nil {
		return nil, err
	}
	s, err := v.subject(ctx, r, &req)
	if err != nil {
		return nil, err
	}
	plan, err := v.Projects.PlanChecks(ctx, s.Repo, s.Target, s.TargetCommit)
	if err != nil {
		return nil, err
	}
	if err := v.hold(ctx, s, plan, req.Approve); err != nil {
		return nil, err
	}
	if req.Check != "" {
		if plan.Project.Checks, err = only(plan, req.Check); err != nil {
			return nil, err
		}
	}
	checks, err := v.Check(ctx, s, plan, &req)
	if err != nil {
		return nil, err
	}
	done := &Verification{Run: r, Target: s.Target, Source: s.Source, Commit: s.Commit, Merged: s.Merged, Checks: checks}
	return done, v.mark(ctx, done, req.Check == "")
}

// Pass returns an error unless all checks of the target pass on the commit of a subject, which is
// about to land. E_CHECK_FAILED and E_CHECK_TIMEOUT flag the run; the other errors are those of
// Verify. A target without checks passes.
func (v *Verifier) Pass(ctx context.Context, s *Subject, req *Request) error {
	plan, err := v.Projects.PlanChecks(ctx, s.Repo, s.Target, s.TargetCommit)
	if agency.IsCode(err, agency.CodeNoChecks) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := v.hold(ctx, s, plan, req.Approve); err != nil {
		return err
	}
	checks, err := v.Check(ctx, s, plan, req)
	if err != nil {
		return err
	}
	r, err := v.Runs.Resolve(ctx, string(s.Run))
	if err != nil {
		return err
	}
	if err := v.mark(ctx, &Verification{Run: r, Checks: checks}, true); err != nil {
		return err
	}
	for i := range checks {
		c := &checks[i]
		if c.Verdict == agency.CheckPassed {
			continue
		}
		code := agency.CodeCheckFailed
		if c.Verdict == agency.CheckTimedOut {
			code = agency.CodeCheckTimeout
		}
		return notPassed(r, s.Target, code, c.Name, c.Reason)
	}
	return nil
}

// notPassed returns the error for a check that does not pass on what would land.
func notPassed(r *agency.Run, target string, code agency.Code, check, reason string) error {
	return agency.Errorf(code, "the check %s of %s does not pass on what would land: %s", check, target, reason).
		WithHint("its output: agency verify %s --log %s; to land it all the same: --no-verify", r.Ref(), plain.ShellWord(check))
}

// mark flags a run whose checks do not pass, and removes the flag when all of them pass.
func (v *Verifier) mark(ctx context.Context, done *Verification, all bool) error {
	for i := range done.Checks {
		if c := &done.Checks[i]; c.Verdict != agency.CheckPassed {
			return v.Marks.FlagChecks(ctx, done.Run.ID, "check "+c.Name+" "+c.Reason)
		}
	}
	if !all {
		return nil
	}
	return v.Marks.UnflagChecks(ctx, done.Run.ID)
}

// only returns the check with a name. An unknown name is E_CHECK_NOT_FOUND.
func only(plan *supervisor.CheckPlan, name string) ([]agency.Check, error) {
	names := []string{}
	for i := range plan.Project.Checks {
		if plan.Project.Checks[i].Name == name {
			return plan.Project.Checks[i : i+1], nil
		}
		names = append(names, plan.Project.Checks[i].Name)
	}
	err := agency.Errorf(agency.CodeCheckNotFound, "%s has no check %q", plan.Target, name)
	if near := plain.Nearest(name, names); near != "" {
		return nil, err.WithHint("did you mean %s?", near)
	}
	return nil, err.WithHint("its checks are %s", strings.Join(names, ", "))
}

// Subject is what is checked: one commit, with the checks of a branch.
type Subject struct {
	Run          agency.RunID // whose work it is; empty for none
	Repo         agency.Repo
	Target       string // branch
	TargetCommit string
	Source       string
	Commit       string
	Merged       bool // Commit is the source merged with the target
}

// subject finds out what to check.
func (v *Verifier) subject(ctx context.Context, r *agency.Run, req *Request) (*Subject, error) {
	repo, err := v.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &Subject{Run: r.ID, Repo: repo, Merged: req.Merged}
	if s.Target, err = v.Target(ctx, r, repo, req.Into); err != nil {
		return nil, err
	}
	if s.TargetCommit, err = v.Git.ResolveCommit(ctx, repo.Root, "refs/heads/"+s.Target); err != nil {
		return nil, err
	}
	if s.Source, err = v.source(ctx, r, repo, req.Uncommitted); err != nil {
		return nil, err
	}
	s.Commit = s.Source
	if s.Merged {
		s.Commit, err = v.Git.Merge(ctx, repo, []string{s.TargetCommit, s.Source}, "Merge "+r.Branch)
	}
	return s, err
}

// hold refuses work that changes the files that decide what runs, unless the user approves it.
func (v *Verifier) hold(ctx context.Context, s *Subject, plan *supervisor.CheckPlan, approved bool) error {
	if approved {
		return nil
	}
	from := s.TargetCommit
	if !s.Merged {
		var err error
		if from, err = v.Git.ForkPoint(ctx, s.Repo, s.TargetCommit, s.Commit); err != nil {
			return err
		}
	}
	return v.guard(ctx, s.Repo, plan, from, s.Commit)
}

// guard refuses commits that change the files that decide what a plan runs.
func (v *Verifier) guard(ctx context.Context, repo agency.Repo, plan *supervisor.CheckPlan, from, to string) error {
	files, err := v.Git.Touched(ctx, repo, from, to, plan.Guarded)
	if err != nil || len(files) == 0 {
		return err
	}
	for i := range files {
		files[i] = plain.Visible(files[i])
	}
	const most = 5
	named := strings.Join(files[:min(len(files), most)], ", ")
	if len(files) > most {
		named += ", ..."
	}
	return agency.Errorf(agency.CodeApprovalRequired, "the work changes what the checks of %s run: %s", plan.Target, named).
		WithHint("look: git diff %.12s %.12s -- %s; when it is right: --approve", from, to, plain.ShellWord(files[0])).
		WithDetail("files", files)
}

// Check returns the verdicts of all checks of a plan on the commit of a subject, and records them.
// It takes known verdicts that last from the record.
func (v *Verifier) Check(ctx context.Context, s *Subject, plan *supervisor.CheckPlan, req *Request) ([]agency.CheckResult, error) {
	treeHash, err := v.Git.Tree(ctx, s.Repo, s.Commit)
	if err != nil {
		return nil, err
	}
	env := environment(req.Env, req.Deny)
	job := &job{Verifier: v, subject: s, plan: plan, tree: treeHash, env: env, envHash: environmentHash(env), warn: req.Warn}
	defer job.close()
	verdicts := make([]agency.CheckResult, 0, len(plan.Project.Checks))
	for i := range plan.Project.Checks {
		verdict, err := job.check(ctx, &plan.Project.Checks[i], req.NoCache)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, *verdict)
	}
	return verdicts, nil
}

// source returns the commit of a run's work.
func (v *Verifier) source(ctx context.Context, r *agency.Run, repo agency.Repo, uncommitted bool) (string, error) {
	at, err := v.Git.Worktree(ctx, repo, r.Worktree)
	if err != nil {
		return "", err
	}
	if r.RemovedAt != nil || at != r.Worktree {
		return v.Git.ResolveCommit(ctx, repo.Root, "refs/heads/"+r.Branch)
	}
	facts, err := v.Git.Inspect(ctx, repo, r.Worktree, "")
	switch {
	case err != nil:
		return "", err
	case facts.Branch != r.Branch:
		return "", agency.Errorf(agency.CodeInvalidState, "the worktree of %s is on %s, not on its branch %s", r.Ref(), cmp.Or(facts.Branch, "no branch"), r.Branch).
			WithHint("git -C %s switch %s", plain.ShellWord(r.Worktree), plain.ShellWord(r.Branch))
	case !facts.Dirty:
		return facts.Head, nil
	case uncommitted:
		return v.Git.Result(ctx, repo, r.Worktree, "Work of "+r.Ref())
	default:
		return "", agency.Errorf(agency.CodeUncommitted, "%s has work that is not committed: %d changed, %d new", r.Ref(), facts.Changed, facts.Untracked).
			WithHint("check it too: agency verify %s --include-uncommitted; what it is: agency review %s", r.Ref(), r.Ref())
	}
}
