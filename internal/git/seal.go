package git

import (
	"context"
	"fmt"

	"agency"
)

// Result returns a commit with everything in a worktree that is not ignored: its HEAD or, with
// uncommitted changes, a new commit on top of HEAD. The worktree, its index and its HEAD are not
// changed, no hook runs and nothing is signed.
func (g *Trees) Result(ctx context.Context, repo agency.Repo, worktree, message string) (string, error) {
	commit, _, err := g.Seal(ctx, repo, worktree, message)
	return commit, err
}

// Seal is Result, but also names the repositories inside the worktree, relative to it, with work of
// their own: the commit does not have that work.
func (g *Trees) Seal(ctx context.Context, repo agency.Repo, worktree, message string) (commit string, nested []string, err error) {
	commit, nested, err = g.seal(ctx, repo, worktree, message)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		return "", nil, fmt.Errorf("save the work: %w", err) // the error names the folder
	}
	if err != nil {
		return "", nil, fmt.Errorf("save the work in %s: %w", worktree, err)
	}
	return commit, nested, nil
}

// Holds reports whether a commit has everything in the files and in the index of a worktree: the
// files have its tree, and so has the index, unless nothing is staged. It writes only objects.
func (g *Trees) Holds(ctx context.Context, repo agency.Repo, worktree, commit string) (bool, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return false, err
	}
	defer s.close()
	e, err := s.entries(ctx)
	if err != nil || e.unmerged {
		return false, err
	}
	staged, err := s.line(ctx, "write-tree")
	if err != nil {
		return false, err
	}
	if err := s.add(ctx, e); err != nil {
		return false, err
	}
	files, err := s.line(ctx, "write-tree")
	if err != nil {
		return false, err
	}
	tree, err := s.line(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	if err != nil {
		return false, err
	}
	head, err := s.line(ctx, "rev-parse", "--verify", "--end-of-options", "HEAD^{tree}")
	return files == tree && (staged == tree || staged == head) && len(s.nested) == 0, err
}

func (g *Trees) seal(ctx context.Context, repo agency.Repo, worktree, message string) (string, []string, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return "", nil, err
	}
	defer s.close()
	head, err := s.head(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := s.addAll(ctx); err != nil {
		return "", nil, err
	}
	tree, err := s.line(ctx, "write-tree")
	if err != nil {
		return "", nil, err
	}
	if head != "" {
		was, err := s.line(ctx, "rev-parse", "--verify", head+"^{tree}")
		if err != nil || was == tree {
			return head, s.nested, err
		}
	}
	commit, err := s.commit(ctx, tree, head, message)
	return commit, s.nested, err
}
