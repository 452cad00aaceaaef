package lander

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/landing"
	"agency/internal/plain"
)

// plan is what a landing starts from: the sealed source and the target.
type plan struct {
	run       *agency.Run
	repo      agency.Repo
	env       agency.Environ // in which git finds the name for the commits
	settings  agency.LandingSettings
	targetOld string
	source    source
	base      string // the source of an earlier landing that the target has; the work since then begins there; empty for none
	landed    *agency.Landing
	same      bool // nothing changed since then
}

// source is the work of a run.
type source struct {
	commit      string // with everything that is committed
	sealed      string // with everything; the same when nothing is uncommitted
	uncommitted []agency.FileChange
	nested      []string
	gone        bool      // the run has no worktree
	saved       time.Time // when the uncommitted work was saved; zero without such work
}

// plan reads everything that a landing or a review of a run depends on. The caller holds the run
// and the repository.
//
// before are the sources of the landings that come earlier in a queue: the target will have them.
func (pl *planner) plan(ctx context.Context, r *agency.Run, repo agency.Repo, asked agency.LandingSettings, before ...string) (*plan, error) {
	return pl.planWith(ctx, r, repo, asked, pl.source, before...)
}

// finder finds the work of a run.
type finder func(context.Context, *agency.Run, agency.Repo) (source, error)

func (pl *planner) planWith(ctx context.Context, r *agency.Run, repo agency.Repo, asked agency.LandingSettings, find finder, before ...string) (*plan, error) {
	p := &plan{run: r, repo: repo}
	target := func() error { return pl.planTarget(ctx, p, asked) }
	source := func() (err error) { p.source, err = find(ctx, r, repo); return err }
	if err := together(target, source); err != nil { // the source reads all files
		if agency.IsCode(err, agency.CodeNothingToLand) {
			err = pl.goneAfterLanding(ctx, p, err)
		}
		return nil, err
	}
	if err := pl.findLanded(ctx, p); err != nil || p.base != "" {
		return p, err
	}
	return p, pl.findStack(ctx, p, before)
}

// committed returns the work of a run as if everything were committed.
func (pl *planner) committed(ctx context.Context, r *agency.Run, repo agency.Repo) (source, error) {
	tip, err := pl.Git.CommitOf(ctx, repo, r.Branch)
	return source{commit: tip, sealed: tip}, err
}

// planTarget fills in the settings of a plan and the commit of its target.
func (pl *planner) planTarget(ctx context.Context, p *plan, asked agency.LandingSettings) error {
	var err error
	if p.settings, p.targetOld, err = pl.settingsAt(ctx, p.run, p.repo, asked); err != nil {
		return err
	}
	if p.settings.Target == p.run.Branch {
		return agency.Errorf(agency.CodeUsage, "%s is the branch of %s itself", p.run.Branch, p.run.Ref()).WithHint("name another branch: --into BRANCH")
	}
	if p.targetOld == "" {
		if p.targetOld, err = pl.Git.CommitOf(ctx, p.repo, p.settings.Target); err != nil {
			return noTarget(err, p.repo, p.settings.Target)
		}
	}
	return pl.noAlias(ctx, p.repo, p.settings.Target, func(of string) string { return "name that branch: --into " + plain.ShellWord(of) })
}

// noAlias refuses a target that is another name of a branch: moving it would move that branch,
// whose checkout was not checked. hint returns the way out, given that branch.
func (pl *planner) noAlias(ctx context.Context, repo agency.Repo, target string, hint func(of string) string) error {
	alias, err := pl.Git.Alias(ctx, repo, target)
	if err != nil || alias == "" {
		return err
	}
	return agency.Errorf(agency.CodeBadRef, "%s is not a branch of its own but another name of %s", target, plain.Visible(alias)).
		WithHint("%s", hint(strings.TrimPrefix(alias, "refs/heads/")))
}

// together runs steps at the same time, and returns the error of the first failed one in their
// order.
func together(steps ...func() error) error {
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() { errs[i] = step() })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// noTarget returns the error, with a hint, for a missing branch to land in.
func noTarget(err error, repo agency.Repo, target string) error {
	if !agency.IsCode(err, agency.CodeBadRef) {
		return err
	}
	none := agency.Errorf(agency.CodeBadRef, "there is no branch %q in %s to land in", target, repo.Root)
	if name, full := strings.CutPrefix(target, "refs/heads/"); full {
		return none.WithHint("give the short name of the branch: --into %s", plain.ShellWord(name))
	}
	return none.WithHint("%s; or make it: git -C %s branch -- %s COMMIT", agency.AsError(err).Hint, plain.ShellWord(repo.Root), plain.ShellWord(target))
}

// Target returns the branch in which the work of a run lands: asked, or the one of the settings.
// E_BAD_REF: the repository lacks the branch.
func (pl *planner) Target(ctx context.Context, r *agency.Run, repo agency.Repo, asked string) (string, error) {
	settings, commit, err := pl.settingsAt(ctx, r, repo, agency.LandingSettings{Target: asked})
	if err == nil && commit == "" {
		_, err = pl.Git.CommitOf(ctx, repo, settings.Target)
		err = noTarget(err, repo, settings.Target)
	}
	return settings.Target, err
}

// settings returns the settings of a landing, with its target. It reads agency.toml from the
// target's commit, which an agent cannot change. When only that file names the target, it reads the
// file from the branch that is checked out.
func (pl *planner) settings(ctx context.Context, r *agency.Run, repo agency.Repo, asked agency.LandingSettings) (agency.LandingSettings, error) {
	settings, _, err := pl.settingsAt(ctx, r, repo, asked)
	return settings, err
}

// settingsAt is settings that also returns the commit of the target; empty when there is no such
// branch.
func (pl *planner) settingsAt(ctx context.Context, r *agency.Run, repo agency.Repo, asked agency.LandingSettings) (agency.LandingSettings, string, error) {
	head, err := pl.Git.Head(ctx, repo)
	if err != nil {
		return asked, "", err
	}
	user := pl.Settings()
	var ofHead agency.LandingSettings
	headCommit := ""
	target := asked.Target
	if target == "" && head != "" {
		if ofHead, headCommit, err = pl.project(ctx, repo, head); err != nil {
			return asked, "", err
		}
		target = landing.Choose(asked, ofHead, user).Target
	}
	if target == "" {
		target = user.Target
	}
	if base := strings.TrimPrefix(r.Base, "refs/heads/"); target == "" && !strings.HasPrefix(base, "agency/") && base != "" && base != "HEAD" && base != r.Branch {
		is, err := pl.Git.HasBranch(ctx, repo, base)
		if err != nil {
			return asked, "", err
		}
		if is {
			target = base
		}
	}
	if target == "" {
		target = head
	}
	if target == "" {
		return asked, "", agency.Errorf(agency.CodeUsage, "%s is on no branch, and nothing else names the branch to land in", repo.Root).
			WithHint("name a branch: --into BRANCH; or set target under [landing] in %s", agency.ProjectFile)
	}
	asked.Target = target
	if target == head && headCommit != "" {
		return landing.Choose(asked, ofHead, user), headCommit, nil
	}
	project, commit, err := pl.project(ctx, repo, target)
	return landing.Choose(asked, project, user), commit, err
}

// project returns the [landing] settings of agency.toml at a branch, and the branch's commit. They
// are empty without the branch or the file.
func (pl *planner) project(ctx context.Context, repo agency.Repo, branch string) (settings agency.LandingSettings, commit string, err error) {
	commit, err = pl.Git.CommitOf(ctx, repo, branch)
	if agency.IsCode(err, agency.CodeBadRef) || agency.IsCode(err, agency.CodeEmptyRepo) {
		return settings, "", nil
	}
	if err != nil {
		return settings, "", err
	}
	settings, err = pl.projectAt(ctx, repo, branch, commit)
	return settings, commit, err
}

// projectAt returns the [landing] settings of agency.toml at a commit of a branch.
func (pl *planner) projectAt(ctx context.Context, repo agency.Repo, branch, commit string) (agency.LandingSettings, error) {
	data, found, err := pl.Git.File(ctx, repo, commit, agency.ProjectFile, agency.ProjectLimit)
	if err != nil || !found {
		return agency.LandingSettings{}, err
	}
	p, err := pl.Parse(agency.ProjectFile+" of "+branch, data)
	return p.Landing, err
}

// source seals the work of a run: what is committed on its branch, and what is not. Without a
// worktree it uses the newest snapshot.
func (pl *planner) source(ctx context.Context, r *agency.Run, repo agency.Repo) (source, error) {
	tip, err := pl.Git.CommitOf(ctx, repo, r.Branch)
	if err != nil && !agency.IsCode(err, agency.CodeBadRef) {
		return source{}, err
	}
	if _, gone := os.Lstat(r.Worktree); r.RemovedAt != nil || errors.Is(gone, fs.ErrNotExist) {
		return pl.saved(ctx, r, repo, tip)
	}
	facts, err := pl.Git.Inspect(ctx, repo, r.Worktree, "")
	if err != nil {
		return source{}, err
	}
	if facts.Branch != r.Branch && facts.Head != tip || tip == "" {
		at := "is on no branch, at the commit " + short(facts.Head)
		if facts.Branch != "" {
			at = "has the branch " + facts.Branch + " checked out"
		}
		moved := agency.Errorf(agency.CodeSourceMoved, "the worktree of %s %s, not %s", r.Ref(), at, r.Branch)
		git, branch := "git -C "+plain.ShellWord(r.Worktree), plain.ShellWord(r.Branch)
		hint := "to land what is there, make it the branch of the run: " + git + " switch -C " + branch
		if tip == "" {
			return source{}, moved.WithHint("%s; the branch itself is gone", hint)
		}
		return source{}, moved.WithHint("%s; to go back to its branch: %s switch %s", hint, git, branch)
	}
	s := source{commit: tip, sealed: tip}
	if !facts.Dirty {
		return s, nil
	}
	saved, nested, err := pl.Git.Seal(ctx, repo, r.Worktree, "work of "+r.Ref()+" that was not committed")
	if err != nil {
		return source{}, err
	}
	s.sealed, s.nested = saved, nested
	s.uncommitted, err = pl.Git.Changes(ctx, repo, tip, saved)
	return s, err
}

// saved returns the work of a run without a worktree: its branch, and the snapshot of the
// uncommitted work on it.
func (pl *planner) saved(ctx context.Context, r *agency.Run, repo agency.Repo, tip string) (source, error) {
	snapshots, err := pl.Git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return source{}, err
	}
	s := source{commit: tip, sealed: tip, gone: true}
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1]
		// The parent of a snapshot is what was staged, whose parent is what was committed.
		head, err := pl.Git.ResolveCommit(ctx, repo.Root, newest.Commit+"~2")
		if agency.IsCode(err, agency.CodeBadRef) {
			head, err = r.Commit, nil
		}
		if err != nil {
			return source{}, err
		}
		if tip == "" || head == tip {
			s.commit, s.sealed = head, newest.Commit
			if s.uncommitted, err = pl.Git.Changes(ctx, repo, head, newest.Commit); err != nil {
				return source{}, err
			}
			if s.saved = newest.At; len(s.uncommitted) == 0 {
				s.sealed, s.saved = head, time.Time{}
			}
		}
	}
	if s.commit == "" {
		return source{}, agency.Errorf(agency.CodeNothingToLand, "%s was removed with its branch, and nothing of it was saved", r.Ref()).
			WithHint("give its task to a new run: agency run TASK")
	}
	return s, nil
}

// findLanded looks for the newest landing of the run that the target still has. The work since then
// begins at the source of that landing. Git itself does not know that the target has it, when the
// work was squashed or rebased.
func (pl *planner) findLanded(ctx context.Context, p *plan) error {
	all, err := pl.Store.Landings(ctx, p.run.ID)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		before := &all[i]
		if before.State != agency.LandingLanded || before.Target != p.settings.Target {
			continue
		}
		has, err := pl.Git.Descends(ctx, p.repo, p.targetOld, before.Candidate)
		if err != nil {
			return err
		}
		if !has {
			continue // the user threw it away, perhaps without those before it
		}
		p.landed = before
		if err := pl.nothingSince(ctx, p, before); err != nil {
			return err
		}
		since, err := pl.Git.Descends(ctx, p.repo, p.source.sealed, before.Source)
		if err == nil && !since {
			since, err = pl.sealedBefore(ctx, p, before)
		}
		if err != nil {
			return err
		}
		if since {
			p.base = before.Source
		}
		p.same, err = pl.sameTree(ctx, p.repo, p.source.sealed, before.Source)
		return err
	}
	return nil
}

// nothingSince takes the landed work for the work of a run without a worktree, if nothing was
// committed or saved since: the landing keeps the work that was uncommitted then, and no snapshot
// does.
func (pl *planner) nothingSince(ctx context.Context, p *plan, before *agency.Landing) error {
	if !p.source.gone || p.source.saved.After(before.CreatedAt) {
		return nil
	}
	all, err := pl.Git.Descends(ctx, p.repo, before.Source, p.source.commit)
	if err == nil && all {
		p.source = source{commit: p.source.commit, sealed: before.Source, gone: true}
	}
	return err
}

// goneAfterLanding returns the error that a run has landed, if nothing is left of it but what
// landed; otherwise the error of its source.
func (pl *planner) goneAfterLanding(ctx context.Context, p *plan, gone error) error {
	all, err := pl.Store.Landings(ctx, p.run.ID)
	if err != nil {
		return err
	}
	for i := range slices.Backward(all) {
		before := &all[i]
		if before.State != agency.LandingLanded || before.Target != p.settings.Target {
			continue
		}
		if has, err := pl.Git.Descends(ctx, p.repo, p.targetOld, before.Candidate); err != nil || !has {
			return gone
		}
		p.landed = before
		return orNothing(p, nil)
	}
	return gone
}

// sealedBefore reports whether the source of an earlier landing was sealed on top of a commit that
// the run still has: it contains files that were uncommitted then, and may be committed now.
func (pl *planner) sealedBefore(ctx context.Context, p *plan, before *agency.Landing) (bool, error) {
	if p.settings.Method != agency.LandSquash {
		return false, nil // the commits themselves land, and git knows where they begin
	}
	parent, err := pl.Git.ResolveCommit(ctx, p.repo.Root, before.Source+"~1")
	if agency.IsCode(err, agency.CodeBadRef) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	messages, err := pl.Git.Messages(ctx, p.repo, parent, before.Source)
	if err != nil || len(messages) != 1 || landing.WithTrailer(messages[0], p.run.Handle) != strings.TrimRight(messages[0], "\n")+"\n" {
		return false, err
	}
	return pl.Git.Descends(ctx, p.repo, p.source.sealed, parent)
}

func (pl *planner) sameTree(ctx context.Context, repo agency.Repo, a, b string) (bool, error) {
	one, err := pl.Git.Tree(ctx, repo, a)
	if err != nil {
		return false, err
	}
	other, err := pl.Git.Tree(ctx, repo, b)
	return one == other, err
}

// from returns the commit after which the work of a plan begins in the run's history.
func (p *plan) from() string {
	if p.base != "" {
		return p.base
	}
	return p.targetOld
}

// task returns the user's task, which agency keeps in a file; empty for a script, and when the file
// cannot be read.
func task(r *agency.Run) string {
	if r.Runner.Kind == agency.Shell {
		return ""
	}
	data, err := file.ReadRegular(filepath.Join(r.Dir, agency.TaskFile), agency.PromptLimit)
	if err != nil {
		return ""
	}
	return string(data)
}

func short(commit string) string { return commit[:min(len(commit), 12)] }
