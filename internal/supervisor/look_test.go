package supervisor_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/supervisor"
)

// The diff of one file is whole, however many other files have changed.
func TestDiffOfOneOfManyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("fix-login")
	w.git.DiffFunc = func() (agency.Diff, error) { return agency.Diff{Files: make([]agency.FileChange, 2001)}, nil }
	for file, want := range map[string]bool{"": true, "a.go": false} {
		if _, diff, err := w.sup.Work.Diff(t.Context(), "fix-login", agency.DiffPart{File: file}); err != nil || diff.Truncated != want {
			t.Errorf("file %q: truncated %t, %v", file, diff.Truncated, err)
		}
	}
}

// A diff of a worktree that is removed meanwhile does not count, even when git notices nothing.
func TestDiffDuringRemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("fix-login")
	w.git.DiffFunc = func() (agency.Diff, error) {
		_, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login", DeleteBranch: true})
		return agency.Diff{Patch: "half of the files are deleted"}, err
	}
	_, diff, err := w.sup.Work.Diff(t.Context(), "fix-login", agency.DiffPart{})
	wantCode(t, err, agency.CodeInvalidState)
	if e := agency.AsError(err); !strings.Contains(e.Message, "is gone, and so is its branch") || !strings.Contains(e.Hint, "nothing was saved of it") || diff.Patch != "" {
		t.Errorf("got %+v, %s", e, diff.Patch)
	}
}
