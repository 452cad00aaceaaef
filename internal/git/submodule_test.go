package git_test

import (
	"path/filepath"
	"strings"
	"testing"

	"agency"
)

// An agent sets git to ignore a submodule, and then moves it to another commit. agency shows that
// change like any other.
func TestIgnoredSubmodule(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	ctx := t.Context()
	commit := sh(t, repo.Root, "rev-parse", "HEAD")
	point := func(to string) {
		sh(t, repo.Root, "update-index", "--add", "--cacheinfo", "160000,"+to+",lib")
	}
	write(t, filepath.Join(repo.Root, ".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = ./lib\n\tignore = all\n")
	sh(t, repo.Root, "config", "submodule.lib.ignore", "all")
	sh(t, repo.Root, "add", ".gitmodules")
	point(sh(t, repo.Root, "rev-parse", "HEAD~1"))
	sh(t, repo.Root, "commit", "-qm", "a submodule")
	from := sh(t, repo.Root, "rev-parse", "HEAD")
	point(commit)

	saved, err := g.Snapshot(ctx, repo, repo.Root, from, "refs/agency/snapshots/r1/1", "work")
	if err != nil || saved.Files != 1 {
		t.Errorf("the snapshot has %d files, %v", saved.Files, err)
	}
	wantCode(t, g.Back(ctx, repo, repo.Root, "main", from, commit, "undo"), agency.CodeTargetDirty)
	sh(t, repo.Root, "commit", "-qm", "its next commit", "--allow-empty")
	to := sh(t, repo.Root, "rev-parse", "HEAD")
	if got, err := g.Changes(ctx, repo, from, to); err != nil || len(got) != 1 {
		t.Errorf("the changes: %v, %v", got, err)
	}
	if got, err := g.Changed(ctx, repo, from, to); err != nil || len(got) != 1 {
		t.Errorf("the changed files: %v, %v", got, err)
	}
	if got, err := g.Touched(ctx, repo, from, to, []string{"lib"}); err != nil || len(got) != 1 {
		t.Errorf("the touched files: %v, %v", got, err)
	}
	if got, err := g.DiffStat(ctx, repo, repo.Root, from, to); err != nil || got.Files != 1 {
		t.Errorf("the counts: %+v, %v", got, err)
	}
	part := agency.DiffPart{From: from, File: "lib", Limit: 1 << 20}
	if got, err := g.Diff(ctx, repo, repo.Root, to, part); err != nil || !strings.Contains(got.Patch, "+Subproject commit "+commit) {
		t.Errorf("the patch: %q, %v", got.Patch, err)
	}
}
