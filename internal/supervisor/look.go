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
	to := ""
	if _, err := os.Lstat(r.Worktree); r.RemovedAt != nil || errors.Is(err, os.ErrNotExist) {
		if to, err = s.Git.ResolveCommit(ctx, repo.Root, "refs/heads/"+r.Branch); err != nil && !agency.IsCode(err, agency.CodeBadRef) {
			return nil, agency.Diff{}, err
		} else if err != nil {
			return nil, agency.Diff{}, agency.Errorf(agency.CodeInvalidState, "the worktree of %s is gone, and so is its branch %s", r.Ref(), r.Branch).
				WithHint("what was saved of it: agency snapshot ls %s", r.Ref())
		}
	}
	diff, err := s.Git.Diff(ctx, repo, r.Worktree, r.Commit, to, min(limit, mostDiff))
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
