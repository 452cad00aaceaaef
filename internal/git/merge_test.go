package git_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/git"
)

// worktree makes a worktree with a new branch at main.
func worktree(t *testing.T, g *git.Git, repo agency.Repo, branch string) string {
	t.Helper()
	path := filepath.Join(tempDir(t), branch)
	check(t, g.AddWorktree(t.Context(), repo, path, branch, "main", agency.OwnPrograms))
	return path
}

// A result contains committed and uncommitted work, and making it changes nothing in the worktree.
func TestResult(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	path := worktree(t, g, repo, "work")
	head := strings.TrimSpace(sh(t, path, "rev-parse", "HEAD"))
	got, err := g.Result(t.Context(), repo, path, "rest")
	if err != nil || got != head {
		t.Fatalf("a clean worktree came to %s, %v, want its HEAD %s", got, err, head)
	}
	write(t, filepath.Join(path, "new"), "new\n")
	write(t, filepath.Join(path, "a"), "changed\n")
	write(t, filepath.Join(path, "staged"), "staged\n")
	sh(t, path, "add", "staged")
	before := sh(t, path, "status", "--porcelain")
	got, err = g.Result(t.Context(), repo, path, "rest")
	check(t, err)
	if after := sh(t, path, "status", "--porcelain"); after != before {
		t.Errorf("the worktree is\n%s, and was\n%s", after, before)
	}
	for file, want := range map[string]string{"new": "new", "a": "changed", "staged": "staged"} {
		if content := sh(t, repo.Root, "show", got+":"+file); content != want {
			t.Errorf("%s is %q in the result", file, content)
		}
	}
	if parent := strings.TrimSpace(sh(t, repo.Root, "rev-parse", got+"^")); parent != head {
		t.Errorf("the result is on %s, want %s", parent, head)
	}
}

// Results are merged without a worktree, a hook or an identity; a merge that adds nothing makes no
// commit.
func TestMerge(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "config", "commit.gpgSign", "true")
	for _, name := range []string{"pre-merge-commit", "commit-msg", "post-merge"} {
		hook(t, repo, name, "exit 1")
	}
	commits := []string{}
	for _, name := range []string{"x", "y", "z"} {
		path := worktree(t, g, repo, name)
		write(t, filepath.Join(path, name), name+"\n")
		commit, err := g.Result(t.Context(), repo, path, name)
		check(t, err)
		commits = append(commits, commit)
	}
	main := strings.TrimSpace(sh(t, repo.Root, "rev-parse", "main"))
	merged, err := g.Merge(t.Context(), repo, append([]string{main}, commits...), "results")
	check(t, err)
	for _, name := range []string{"a", "x", "y", "z"} {
		sh(t, repo.Root, "cat-file", "-e", merged+":"+name)
	}
	if parents := strings.Fields(sh(t, repo.Root, "log", "-1", "--format=%P", merged)); len(parents) != 2 || parents[1] != commits[2] {
		t.Errorf("the parents are %v", parents)
	}
	for _, order := range [][]string{{main, commits[0]}, {commits[0], main}, {commits[0], commits[0]}} {
		if got, err := g.Merge(t.Context(), repo, order, "results"); err != nil || got != commits[0] {
			t.Errorf("merging %v is %s, %v, want %s", order, got, err, commits[0])
		}
	}
	if got, err := g.Merge(t.Context(), repo, []string{main, commits[0], merged, commits[1]}, "results"); err != nil || got != merged {
		t.Errorf("merging what one of them holds is %s, %v, want %s", got, err, merged)
	}
	for _, from := range []string{commits[0], merged, main} {
		if got, err := g.Descends(t.Context(), repo, merged, from); err != nil || !got {
			t.Errorf("that %.12s is on top of %.12s is %v, %v", merged, from, got, err)
		}
	}
	if got, err := g.Descends(t.Context(), repo, commits[0], commits[1]); err != nil || got {
		t.Errorf("one result is on top of another: %v, %v", got, err)
	}
	if status := sh(t, repo.Root, "status", "--porcelain"); status != "" {
		t.Errorf("the user's own checkout is %s", status)
	}
}

func TestMergeConflict(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	commits := []string{}
	for _, name := range []string{"x", "y"} {
		path := worktree(t, g, repo, name)
		write(t, filepath.Join(path, "a"), name+"\n")
		write(t, filepath.Join(path, "odd \x1b[31mname"), name+"\n")
		write(t, filepath.Join(path, name), name+"\n")
		commit, err := g.Result(t.Context(), repo, path, name)
		check(t, err)
		commits = append(commits, commit)
	}
	_, err := g.Merge(t.Context(), repo, commits, "results")
	if !agency.IsCode(err, agency.CodeMergeConflict) {
		t.Fatalf("got %v", err)
	}
	e := agency.AsError(err)
	if files, _ := e.Details["files"].([]string); !slices.Equal(files, []string{"a", "odd \x1b[31mname"}) {
		t.Errorf("the files are %q", e.Details["files"])
	}
	if e.Message != "conflict in a, odd [31mname" {
		t.Errorf("the message is %q", e.Message)
	}
}

// An agent makes every conflict a union, and joins histories with a graft. Git still finds the
// conflict, and the real history.
func TestMergeWithoutTheRepositorysInfo(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	branches := map[string]string{}
	for _, name := range []string{"ours", "theirs"} {
		sh(t, repo.Root, "switch", "-q", "-c", name, "main")
		write(t, filepath.Join(repo.Root, "a"), name+"\n")
		sh(t, repo.Root, "commit", "-qam", name)
		branches[name] = sh(t, repo.Root, "rev-parse", name)
	}
	ours, theirs := branches["ours"], branches["theirs"]
	write(t, filepath.Join(repo.CommonDir, "info", "attributes"), "* merge=union\n")
	_, err := g.MergeTree(t.Context(), repo, ours, theirs)
	wantCode(t, err, agency.CodeMergeConflict)
	_, err = g.Merge(t.Context(), repo, []string{ours, theirs}, "merge")
	wantCode(t, err, agency.CodeMergeConflict)
	write(t, filepath.Join(repo.CommonDir, "info", "grafts"), theirs+" "+ours+"\n")
	if in, err := g.Descends(t.Context(), repo, theirs, ours); err != nil || in {
		t.Errorf("the graft counts: %v, %v", in, err)
	}
}
