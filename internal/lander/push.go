package lander

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/landing"
	"agency/internal/plain"
)

// Push is what a client needs to push the work of a run, or the target of a landing.
type Push struct {
	Run     *agency.Run
	Place   Place
	Branch  string        // on the remote
	Commit  string        // the new commit of the branch
	Known   []agency.Push // earlier ones to the same branch of the same remote, the oldest first
	Rewrite bool          // the branch may lose what agency itself pushed there
}

// Place is a remote of a repository.
type Place struct {
	CommonDir string // of the repository
	Settings  string // the name of the recorded settings by which git reaches the remote; empty for none
	Remote    string // its name, or its URL
	URL       string
}

// Plan returns what to push for a run: the commits of its branch, to the given branch or one of the
// same name, on the given remote or that of the settings. Nothing changes.
//
// E_UNCOMMITTED: the run has uncommitted work. E_NOTHING_TO_LAND: it has no commits of its own.
// E_BAD_REF: git refuses the given name of a branch.
func (ps *Pushes) Plan(ctx context.Context, ref, remote, branch string) (*Push, error) {
	r, err := ps.Runs.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	repo, err := ps.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := ps.mayLand(r); err != nil {
		return nil, err
	}
	if err := ps.checkName(ctx, repo, branch); err != nil {
		return nil, err
	}
	p := &plan{run: r, repo: repo}
	if p.settings, err = ps.settings(ctx, r, repo, agency.LandingSettings{Remote: remote}); err != nil {
		return nil, err
	}
	if p.source, err = ps.source(ctx, r, repo); err != nil {
		return nil, err
	}
	p.settings.Uncommitted = agency.RefuseUncommitted
	commit, err := ps.seal(ctx, p)
	if err != nil {
		return nil, forPush(err, r)
	}
	if commit == r.Commit {
		return nil, agency.Errorf(agency.CodeNothingToLand, "%s has committed nothing since it began", r.Ref()).WithHint("look at it: agency review %s", r.Ref())
	}
	push := &Push{Run: r, Commit: commit, Branch: branch, Rewrite: true}
	if branch == "" {
		push.Branch = r.Branch
	}
	return push, ps.placePush(ctx, push, repo, p.settings.Remote)
}

// checkName refuses an invalid name of a branch on a remote; an empty one is allowed.
func (ps *Pushes) checkName(ctx context.Context, repo agency.Repo, branch string) error {
	if name, full := strings.CutPrefix(branch, "refs/heads/"); full {
		return agency.Errorf(agency.CodeBadRef, "the branch %q begins with refs/heads/: give its short name", branch).WithHint("--branch %s", plain.ShellWord(name))
	}
	if branch == "" {
		return nil
	}
	err := ps.Git.CheckBranch(ctx, repo, branch)
	if agency.IsCode(err, agency.CodeBranchExists) {
		return nil // in the user's repository, which proves nothing about the remote
	}
	return err
}

// forPush returns E_UNCOMMITTED with a hint for a push, which cannot include uncommitted work.
func forPush(err error, r *agency.Run) error {
	if e := agency.AsError(err); e.Code == agency.CodeUncommitted {
		at := plain.ShellWord(r.Worktree)
		return e.WithHint("ask the agent to commit: %s; or commit it yourself: git -C %s add -A && git -C %s commit", askCommand(r, "commit your work"), at, at)
	}
	return err
}

// PlanTarget returns what to push after a landing: the target as it is now. E_INVALID_STATE: it
// does not have the landing.
func (ps *Pushes) PlanTarget(ctx context.Context, id agency.LandingID, remote string) (*Push, error) {
	landed, err := ps.Store.Landing(ctx, id)
	if err != nil {
		return nil, err
	}
	if landed.State != agency.LandingLanded {
		return nil, agency.Errorf(agency.CodeInvalidState, "the landing %s is %s", landed.ID, landed.State)
	}
	r, err := ps.Runs.Resolve(ctx, string(landed.RunID))
	if err != nil {
		return nil, err
	}
	repo, err := ps.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	settings, err := ps.settings(ctx, r, repo, agency.LandingSettings{Target: landed.Target, Remote: remote})
	if err != nil {
		return nil, err
	}
	now, err := ps.Git.CommitOf(ctx, repo, landed.Target)
	if err != nil {
		return nil, noTarget(err, repo, landed.Target)
	}
	has, err := ps.Git.Descends(ctx, repo, now, landed.Candidate)
	if err != nil {
		return nil, err
	}
	if !has {
		return nil, agency.Errorf(agency.CodeInvalidState, "%q is at %s, and no longer has the landing %s", landed.Target, short(now), landed.ID).
			WithHint("land it again: agency merge %s --into %s --push", r.Ref(), plain.ShellWord(landed.Target))
	}
	push := &Push{Run: r, Commit: now, Branch: landed.Target}
	return push, ps.placePush(ctx, push, repo, settings.Remote)
}

// placePush fills in the destination of a push.
func (ps *Pushes) placePush(ctx context.Context, push *Push, repo agency.Repo, remote string) error {
	var err error
	if push.Place, err = ps.remote(ctx, repo, remote); err != nil {
		return err
	}
	all, err := ps.Store.Pushes(ctx, push.Run.ID)
	push.Known = slices.DeleteFunc(all, func(p agency.Push) bool { return p.URL != plain.SafeURL(push.Place.URL) || p.Branch != push.Branch })
	return err
}

func (ps *Pushes) remote(ctx context.Context, repo agency.Repo, remote string) (Place, error) {
	at, err := ps.Git.Remote(ctx, repo, remote)
	return Place{CommonDir: repo.CommonDir, Settings: repo.GitRemotes, Remote: remote, URL: at}, err
}

// PullRequest is what a client needs to make the pull request of a run, or to find it.
type PullRequest struct {
	Run         *agency.Run
	Place       Place
	Kind        agency.ForgeKind
	Method      agency.LandingMethod
	Branch      string // with the work, on the remote
	Base        string
	Title, Body string // untrusted
}

// PlanPR returns the content of a run's pull request. checks are the newest verdicts on its work.
func (ps *Pushes) PlanPR(ctx context.Context, ref, remote, base string, checks []agency.CheckResult) (*PullRequest, error) {
	r, err := ps.Runs.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	repo, err := ps.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	settings, err := ps.settings(ctx, r, repo, agency.LandingSettings{Target: base, Remote: remote})
	if err != nil {
		return nil, err
	}
	pr := &PullRequest{Run: r, Kind: settings.Forge, Method: settings.Method, Branch: r.Branch, Base: settings.Target}
	if pr.Place, err = ps.remote(ctx, repo, settings.Remote); err != nil {
		return nil, err
	}
	var messages []string
	if tip, err := ps.Git.CommitOf(ctx, repo, r.Branch); err == nil {
		if messages, err = ps.Git.Messages(ctx, repo, r.Commit, tip); err != nil {
			return nil, err
		}
	} else if !agency.IsCode(err, agency.CodeBadRef) {
		return nil, err
	}
	pr.Title, pr.Body = landing.PullRequest(&landing.Offer{
		ID: r.ID, Ref: r.Ref(), Task: task(r), Report: r.Attempt.OwnReport(), Messages: messages, Checks: checks,
	})
	return pr, nil
}

// RecordPR records the pull request of a run. Once it is merged with all that the run has
// committed, the run is merged.
func (ps *Pushes) RecordPR(ctx context.Context, ref string, pr *agency.PullRequest) (*agency.Run, error) {
	r, err := ps.Marks.RecordPR(ctx, ref, pr)
	killpoint.At("pr.recorded")
	if err != nil || pr.State != agency.PRMerged || r.MergedAt != nil {
		return r, err
	}
	repo, err := ps.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	tip, err := ps.Git.CommitOf(ctx, repo, r.Branch)
	if agency.IsCode(err, agency.CodeBadRef) {
		tip, err = pr.Commit, nil // the branch is gone
	}
	if err != nil || tip != pr.Commit {
		return r, err
	}
	return ps.Marks.Merge(ctx, r.ID, true)
}
