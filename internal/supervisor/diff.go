package supervisor

import (
	"cmp"
	"context"
	"errors"
	"os"

	"agency"
	"agency/internal/plain"
)

// Limits of a diff that is shown.
const (
	diffBytes     = 128 << 10
	mostDiff      = 4 << 20
	mostDiffFiles = 2000
	mostContext   = 10000 // lines
)

// Diff returns what a run changed since the commit of the part, since its last turn, or since its base
// commit when the part names neither: in its worktree, without ignored files, or on its branch when
// the worktree is gone. The limit of the patch is 128 KiB unless the part has one. The diff is safe for
// a terminal.
func (w *Work) Diff(ctx context.Context, ref string, part agency.DiffPart) (*agency.Run, agency.Diff, error) {
	r, err := w.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Diff{}, err
	}
	if part.Limit <= 0 {
		part.Limit = diffBytes
	}
	if part.LastTurn {
		if part.From, part.Objects, err = lastTurn(r); err != nil {
			return nil, agency.Diff{}, err
		}
	}
	part.Limit, part.From = min(part.Limit, mostDiff), cmp.Or(part.From, r.Commit)
	part.Context = min(part.Context, mostContext)
	repo, err := w.repos.Of(ctx, r)
	if err != nil {
		return nil, agency.Diff{}, err
	}
	diff, err := w.diff(ctx, r, repo, part)
	if err != nil {
		return nil, agency.Diff{}, err
	}
	if len(diff.Files) > mostDiffFiles {
		diff.Files, diff.Truncated = diff.Files[:mostDiffFiles], diff.Truncated || part.File == ""
	}
	if len(diff.List) > mostDiffFiles {
		diff.List, diff.Truncated = diff.List[:mostDiffFiles], true
	}
	for i := range diff.Files {
		diff.Files[i].Path = plain.Visible(diff.Files[i].Path)
	}
	for i := range diff.List {
		diff.List[i].Path, diff.List[i].From = plain.Visible(diff.List[i].Path), plain.Visible(diff.List[i].From)
	}
	for i := range diff.LeftOut.Named {
		diff.LeftOut.Named[i].Path = plain.Visible(diff.LeftOut.Named[i].Path)
	}
	diff.Patch = plain.Visible(diff.Patch)
	return r, diff, nil
}

// diff compares the worktree of a run, or its branch when the worktree is gone. A removal moves the
// whole worktree away before it removes anything in it, so the diff is complete if the worktree is
// still in place afterwards.
func (w *Work) diff(ctx context.Context, r *agency.Run, repo agency.Repo, part agency.DiffPart) (agency.Diff, error) {
	if r.RemovedAt == nil && !isGone(r.Worktree) {
		diff, err := w.git.Diff(ctx, repo, r.Worktree, "", part)
		if !isGone(r.Worktree) {
			return diff, err
		}
	}
	to, err := w.left(ctx, r, repo)
	if err != nil {
		return agency.Diff{}, err
	}
	return w.git.Diff(ctx, repo, r.Worktree, to, part)
}

// left returns the commit with what is left of a run without a worktree: its newest snapshot, when
// that was taken on top of its branch or the branch is gone; else its branch; else its commit that
// landed last.
func (w *Work) left(ctx context.Context, r *agency.Run, repo agency.Repo) (string, error) {
	tip, err := w.git.ResolveCommit(ctx, repo.Root, "refs/heads/"+r.Branch)
	if err != nil && !agency.IsCode(err, agency.CodeBadRef) {
		return "", err
	}
	snapshots, err := w.git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return "", err
	}
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1].Commit
		on, err := w.git.ResolveCommit(ctx, repo.Root, newest+"~2") // below it is what was staged
		if err != nil && !agency.IsCode(err, agency.CodeBadRef) {
			return "", err
		}
		if tip == "" || on == tip {
			return newest, nil
		}
	}
	if tip != "" {
		return tip, nil
	}
	l, err := w.lastLanded(ctx, r.ID)
	if l != nil {
		return l.Source, nil
	}
	if err == nil {
		err = agency.Errorf(agency.CodeInvalidState, "the worktree of %s is gone, and so is its branch %s", r.Ref(), r.Branch).
			WithHint("nothing was saved of it, as it had changed nothing")
	}
	return "", err
}

// Facts returns what git reports about a run's worktree; nil when git reports nothing.
func (w *Work) Facts(ctx context.Context, r *agency.Run) *agency.GitFacts {
	facts, _ := w.facts(ctx, r)
	return facts
}

// facts returns what git reports about a run's worktree, or why it reports nothing.
func (w *Work) facts(ctx context.Context, r *agency.Run) (*agency.GitFacts, string) {
	err := w.importCommits(ctx, r)
	if err == nil {
		var facts agency.GitFacts
		if facts, err = w.git.Inspect(ctx, r.Repo, r.Worktree, r.Commit); err == nil {
			return &facts, ""
		}
	}
	repo, missing := w.repos.Of(ctx, r)
	if missing == nil {
		missing = w.repos.checkWorktree(ctx, r, repo)
	}
	return nil, agency.AsError(cmp.Or(missing, err)).Message
}

// importCommits brings the commits of an agent in a sandbox into the repository, where git looks for
// them.
func (w *Work) importCommits(ctx context.Context, r *agency.Run) error {
	if !r.Sandbox.Level.Confines() {
		return nil
	}
	_, err := w.repos.Of(ctx, r)
	return err
}

// diffStat counts what a run changed. dirty reports whether some of it is not committed.
func (w *Work) diffStat(ctx context.Context, r *agency.Run) (stat agency.DiffStat, dirty bool, err error) {
	if err := w.importCommits(ctx, r); err != nil {
		return stat, false, err
	}
	to := ""
	if r.RemovedAt != nil || isGone(r.Worktree) {
		if to, err = w.git.ResolveCommit(ctx, r.Repo.Root, "refs/heads/"+r.Branch); err != nil {
			return stat, false, err
		}
	} else {
		facts, err := w.git.Inspect(ctx, r.Repo, r.Worktree, "")
		if err != nil {
			return stat, false, err
		}
		if dirty = facts.Dirty; !dirty {
			to = facts.Head // saves a temporary index
		}
	}
	stat, err = w.git.DiffStat(ctx, r.Repo, r.Worktree, r.Commit, to)
	return stat, dirty, err
}

// isGone reports whether a path does not exist. Any other error does not prove that.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}
