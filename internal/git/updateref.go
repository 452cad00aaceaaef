package git

import (
	"context"
	"fmt"

	"agency"
)

// CreateBranch makes a branch at a commit. An existing branch is never moved: it is
// E_BRANCH_EXISTS.
func (g *Refs) CreateBranch(ctx context.Context, repo agency.Repo, branch, commit string) error {
	err := g.writeRef(ctx, repo, "refs/heads/"+branch, nil, "branch", "--no-track", "--", branch, commit)
	switch {
	case err == nil:
		return nil
	case said(err, "already exists"):
		return agency.Errorf(agency.CodeBranchExists, "the branch %q exists", branch).WithHint("give another name with --branch")
	default:
		return fmt.Errorf("create branch %q: %w", branch, err)
	}
}

// move moves a branch, without the files of a worktree that has it checked out. E_TARGET_MOVED: it
// does not point to from, and nothing has changed.
func (g *Refs) move(ctx context.Context, repo agency.Repo, branch, from, to, reason string) error {
	ref := "refs/heads/" + branch
	err := g.writeRef(ctx, repo, ref, onDisk, "update-ref", "--create-reflog", "-m", reason, "--end-of-options", ref, to, from)
	if err == nil {
		return nil
	}
	if said(err, "but expected") || said(err, "unable to resolve reference") {
		return movedMeanwhile(branch, from)
	}
	// A git process that was killed may have moved it before it died.
	if now, unknown := g.CommitOf(context.WithoutCancel(ctx), repo, branch); unknown == nil && now == to {
		return nil
	}
	return fmt.Errorf("move %q: %w", branch, err)
}

func movedMeanwhile(branch, from string) error {
	return agency.Errorf(agency.CodeTargetMoved, "%q moved meanwhile: it is no longer at %.12s", branch, from).WithHint("try again")
}

// Pin makes git keep a commit under a ref, which must be new or point to that commit already.
func (g *Refs) Pin(ctx context.Context, repo agency.Repo, ref, commit string) error {
	if err := g.writeRef(ctx, repo, ref, onDisk, "update-ref", "--end-of-options", ref, commit); err != nil {
		return fmt.Errorf("keep %.12s as %s: %w", commit, ref, err)
	}
	return nil
}

// Unpin removes refs; missing ones are not an error.
func (g *Refs) Unpin(ctx context.Context, repo agency.Repo, refs ...string) error {
	for _, ref := range refs {
		if err := g.writeRef(ctx, repo, ref, nil, "update-ref", "-d", "--end-of-options", ref); err != nil {
			return fmt.Errorf("remove %s: %w", ref, err)
		}
	}
	return nil
}
