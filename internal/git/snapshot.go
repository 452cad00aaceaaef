package git

import (
	"context"
	"fmt"

	"agency"
)

// Snapshot saves everything in a worktree that is not ignored under ref, as two commits: first what
// is staged, and on top of it what is in the files. During a merge with conflicts there is no first
// commit, since git cannot write it. The worktree, its index and its HEAD stay as they are, no hook
// runs and nothing is signed. If ref exists, its reflog keeps the old value. When Snapshot returns,
// the saved work is on the disk, and the repository was seen to have all of it since the commit
// base.
//
// Saved.Files counts the files that differ from HEAD. Saved.Nested names the repositories inside
// the worktree, relative to it, whose own work is not saved.
func (g *Trees) Snapshot(ctx context.Context, repo agency.Repo, worktree, base, ref, message string) (agency.Saved, error) {
	saved, err := g.snapshot(ctx, repo, worktree, ref, message)
	if err == nil {
		err = g.Prove(ctx, repo, worktree, base, map[string]string{ref: saved.Commit})
	}
	if err != nil {
		return agency.Saved{}, fmt.Errorf("save worktree %s: %w", worktree, err)
	}
	return saved, nil
}

func (g *Trees) snapshot(ctx context.Context, repo agency.Repo, worktree, ref, message string) (agency.Saved, error) {
	s, err := g.saver(ctx, repo, worktree)
	if err != nil {
		return agency.Saved{}, err
	}
	defer s.close()
	head, err := s.head(ctx)
	if err != nil {
		return agency.Saved{}, err
	}
	e, err := s.entries(ctx)
	if err != nil {
		return agency.Saved{}, err
	}
	parent, err := s.commitIndex(ctx, e, head, message)
	if err != nil {
		return agency.Saved{}, err
	}
	if err := s.add(ctx, e); err != nil {
		return agency.Saved{}, err
	}
	tree, err := s.line(ctx, "write-tree")
	if err != nil {
		return agency.Saved{}, err
	}
	commit, err := s.commit(ctx, tree, parent, "worktree: "+message)
	if err != nil {
		return agency.Saved{}, err
	}
	files, err := s.countFiles(ctx, head, tree)
	if err != nil {
		return agency.Saved{}, err
	}
	err = g.writeRef(ctx, repo, ref, func(c *call) {
		onDisk(c)
		c.env = []string{"GIT_COMMITTER_NAME=agency", "GIT_COMMITTER_EMAIL=agency@localhost"}
	}, "update-ref", "--create-reflog", "-m", message, ref, commit)
	if err != nil {
		return agency.Saved{}, err
	}
	return agency.Saved{Ref: ref, Commit: commit, Files: files, Nested: s.nested}, nil
}

// commitIndex commits what is staged on top of head. When that is impossible, it returns head.
func (s *saver) commitIndex(ctx context.Context, e entries, head, message string) (string, error) {
	if e.unmerged {
		return head, nil
	}
	tree, err := s.line(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return s.commit(ctx, tree, head, "index: "+message)
}

// countFiles counts the files in which tree differs from head.
func (s *saver) countFiles(ctx context.Context, head, tree string) (int, error) {
	args := []string{"diff-tree", "-r", "--no-renames", "--name-only", "-z", allSubmodules, head, tree}
	if head == "" {
		args = []string{"ls-tree", "-r", "--name-only", "-z", tree}
	}
	paths, err := s.paths(ctx, args...)
	return len(paths), err
}
