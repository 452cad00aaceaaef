package git

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/killpoint"
)

// madeFor is the entry in the reflog of the branch that AddWorktree makes for a worktree by itself.
// Git writes it together with the branch, so it proves who made the branch even after a crash. The
// last part of the path is unique.
func madeFor(path string) string {
	return "agency: make the branch of " + path[strings.LastIndexByte(path, '/')+1:]
}

// startOf names the commit of a worktree whose HEAD is detached, as the start of a branch that git
// makes while it checks out. Git writes it into the reflog of the branch.
func startOf(path string) string {
	return "worktrees/" + path[strings.LastIndexByte(path, '/')+1:] + "/HEAD"
}

// provesMaker reports whether the first entry in the reflog of a branch proves that AddWorktree
// made the branch for the worktree at path.
func provesMaker(entry, path string) bool {
	return entry == madeFor(path) || entry == "branch: Created from "+startOf(path)
}

// addBranch makes the branch of the worktree at path, which must not exist.
func (g *Worktrees) addBranch(ctx context.Context, repo agency.Repo, path, branch, commit string, env []string) error {
	ref := "refs/heads/" + branch
	with := func(c *call) { c.env = env }
	return g.writeRef(ctx, repo, ref, with, "update-ref", "--no-deref", "--create-reflog", "-m", madeFor(path), "--end-of-options", ref, commit, "")
}

// undoing is the ref that keeps the commit of a branch while UndoBranch deletes the branch. Git
// first deletes the reflog, which proves who made the branch, and may be killed before it deletes
// the branch: then this ref is the proof.
func undoing(path string) string {
	return "refs/agency/undoing/" + path[strings.LastIndexByte(path, '/')+1:]
}

// MadeBranch reports whether AddWorktree made the branch for the worktree at path. It returns false for
// a branch that does not exist or has no reflog, unless a crash interrupted UndoBranch while it deleted
// the branch. A branch that cannot be read is an error.
func (g *Worktrees) MadeBranch(ctx context.Context, repo agency.Repo, path, branch string) (bool, error) {
	log, err := g.refs.reflog(ctx, repo, branch)
	if err != nil || slices.ContainsFunc(log, func(entry string) bool { return provesMaker(entry, path) }) {
		return err == nil, err
	}
	there, err := g.refs.HasBranch(ctx, repo, branch)
	if err != nil || !there || len(log) > 0 {
		return false, err
	}
	return hasRef(func(args ...string) (string, error) { return g.run(ctx, repo, args...) }, repo.CommonDir, undoing(path))
}

// UndoBranch deletes the branch that AddWorktree made for the worktree at path, if it never moved
// from the commit and no worktree has it checked out. left reports whether the branch stays. A
// branch that AddWorktree did not make is not touched, and does not count as left.
func (g *Worktrees) UndoBranch(ctx context.Context, repo agency.Repo, path, branch, commit string) (left bool, err error) {
	made, err := g.MadeBranch(ctx, repo, path, branch)
	if err != nil {
		return false, err
	}
	if made {
		if left, err = g.deleteMade(ctx, repo, path, branch, commit); left || err != nil {
			return left, err
		}
	}
	return false, g.refs.Unpin(ctx, repo, undoing(path)) // an earlier undo may have been cut off after the deletion
}

// deleteMade deletes a branch that AddWorktree made, unless a worktree uses it or it has moved.
func (g *Worktrees) deleteMade(ctx context.Context, repo agency.Repo, path, branch, commit string) (left bool, err error) {
	log, err := g.refs.reflog(ctx, repo, branch)
	if err != nil {
		return true, err
	}
	at, err := g.run(ctx, repo, "for-each-ref", "--format=%(objectname) %(worktreepath)", "refs/heads/"+branch)
	if err != nil || len(log) > 0 && !provesMaker(log[0], path) || at != commit+" \n" {
		return true, err
	}
	if err := g.refs.Pin(ctx, repo, undoing(path), commit); err != nil {
		return true, err
	}
	killpoint.At("branch.undoing")
	if err := g.refs.DeleteBranchAt(ctx, repo, branch, commit); err != nil {
		return true, err
	}
	return g.refs.HasBranch(ctx, repo, branch)
}
