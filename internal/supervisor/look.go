package supervisor

import (
	"context"
	"errors"
	"os"

	"agency"
	"agency/internal/file"
)

// Limits of what is shown of a run.
const (
	outputLines   = 50
	mostOutput    = 500 // lines
	shownResult   = 64 << 10
	diffBytes     = 128 << 10
	mostDiff      = 4 << 20
	mostDiffFiles = 2000
)

// Shown is what a run's agent shows, and what it came to.
type Shown struct {
	Lines  []string // the last ones of its terminal, or of its log
	Result string   // output.md, the beginning of it; empty while there is none
}

// Output is the end of what a run's agent shows, and what it came to; safe for a terminal. lines 0 is 50.
func (s *Supervisor) Output(ctx context.Context, ref string, lines int) (*agency.Run, Shown, error) {
	r, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, Shown{}, err
	}
	if lines <= 0 {
		lines = outputLines
	}
	shown := Shown{Lines: s.Preview(ctx, r, min(lines, mostOutput))}
	data, err := file.ReadRegular(outputPath(r), outputLimit)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Log.Warn("read output.md", "run", r.ID, "err", err)
	}
	shown.Result = agency.Visible(string(data[:min(len(data), shownResult)]))
	return r, shown, nil
}

// Diff is what a run changed: everything in its worktree that is not ignored, or on its branch when the worktree is gone,
// against the commit that it began at. The patch has so many bytes at most, 0 is 128 KiB. It is safe for a terminal.
func (s *Supervisor) Diff(ctx context.Context, ref string, limit int) (*agency.Run, agency.Diff, error) {
	r, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Diff{}, err
	}
	if limit <= 0 {
		limit = diffBytes
	}
	repo, err := s.repoOf(ctx, r)
	if err != nil {
		return nil, agency.Diff{}, err
	}
	diff, err := s.diff(ctx, r, repo, min(limit, mostDiff))
	if err != nil {
		return nil, agency.Diff{}, err
	}
	if len(diff.Files) > mostDiffFiles {
		diff.Files, diff.Truncated = diff.Files[:mostDiffFiles], true
	}
	for i := range diff.Files {
		diff.Files[i].Path = agency.Visible(diff.Files[i].Path)
	}
	for i := range diff.LeftOut.Named {
		diff.LeftOut.Named[i].Path = agency.Visible(diff.LeftOut.Named[i].Path)
	}
	diff.Patch = agency.Visible(diff.Patch)
	return r, diff, nil
}

// diff compares the worktree of a run, or its branch when that is gone. A removal moves the worktree away in one go before it removes
// anything in it, so what was read is all of it if the worktree is in its place afterwards.
func (s *Supervisor) diff(ctx context.Context, r *agency.Run, repo agency.Repo, limit int) (agency.Diff, error) {
	if r.RemovedAt == nil && !isGone(r.Worktree) {
		diff, err := s.Git.Diff(ctx, repo, r.Worktree, r.Commit, "", limit)
		if !isGone(r.Worktree) {
			return diff, err
		}
	}
	to, err := s.Git.ResolveCommit(ctx, repo.Root, "refs/heads/"+r.Branch)
	if agency.IsCode(err, agency.CodeBadRef) {
		return agency.Diff{}, agency.Errorf(agency.CodeInvalidState, "the worktree of %s is gone, and so is its branch %s", r.Ref(), r.Branch).
			WithHint("what was saved of it: agency snapshot ls %s", r.Ref())
	}
	if err != nil {
		return agency.Diff{}, err
	}
	return s.Git.Diff(ctx, repo, r.Worktree, r.Commit, to, limit)
}

// isGone reports whether nothing is at a path. That it cannot be seen proves nothing.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}
