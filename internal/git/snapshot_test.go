package git_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/git"
)

var time0 = time.Unix(1_700_000_000, 0)

// fingerprint returns a hash of each file of a worktree and of what git keeps about the worktree,
// except its store of objects and agency's own refs.
func fingerprint(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir() && slices.Contains([]string{".git/objects", ".git/refs", ".git/logs", ".git/worktrees"}, rel):
			return filepath.SkipDir
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			files[rel] = fmt.Sprintf("%x", sha256.Sum256(data))
			return err
		}
		files[rel] = d.Type().String()
		return nil
	}))
	return files
}

// workIn does work of many kinds in a worktree: staged and not, removed, ignored, links and odd
// names.
func workIn(t *testing.T, path string) {
	t.Helper()
	write(t, filepath.Join(path, "a"), "staged\n")
	sh(t, path, "-c", "core.hooksPath=/dev/null", "add", "a")
	write(t, filepath.Join(path, "a"), "staged\nand changed\n")
	check(t, os.Remove(filepath.Join(path, "sub", "b")))
	write(t, filepath.Join(path, "crlf"), "x\r\n")
	write(t, filepath.Join(path, "x.ignored"), "x")
	check(t, os.Symlink("/etc/passwd", filepath.Join(path, "link")))
	check(t, syscall.Mkfifo(filepath.Join(path, "pipe"), 0o644))
	for _, name := range oddNames {
		write(t, filepath.Join(path, "d", name), "new "+name)
	}
}

// A snapshot contains the staged and the unstaged work, and taking it changes nothing.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "config", "commit.gpgSign", "true")
	sh(t, repo.Root, "config", "core.autocrlf", "input")
	sh(t, repo.Root, "config", "core.safecrlf", "true")
	for _, name := range []string{"pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction"} {
		hook(t, repo, name, `echo ran >> "`+filepath.Join(repo.CommonDir, "hooks-ran")+`"; exit 1`)
	}
	write(t, filepath.Join(repo.CommonDir, "info", "exclude"), "*.ignored\n")
	check(t, os.RemoveAll(filepath.Join(repo.CommonDir, "hooks", "reference-transaction")))
	path := filepath.Join(tempDir(t), "wt")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	hook(t, repo, "reference-transaction", `echo ran >> "`+filepath.Join(repo.CommonDir, "hooks-ran")+`"; exit 1`)
	_ = os.Remove(filepath.Join(repo.CommonDir, "hooks-ran"))

	workIn(t, path)
	admin := filepath.Join(repo.CommonDir, "worktrees", "wt")
	before := []map[string]string{fingerprint(t, path), fingerprint(t, admin), fingerprint(t, repo.Root)}

	saved, err := g.Snapshot(t.Context(), repo, path, "", "refs/agency/snapshots/r/1", "run r")
	check(t, err)
	after := []map[string]string{fingerprint(t, path), fingerprint(t, admin), fingerprint(t, repo.Root)}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the snapshot changed something:\n%s", diff)
	}
	want := agency.Saved{Ref: "refs/agency/snapshots/r/1", Commit: saved.Commit, Files: 4 + len(oddNames), Nested: []string{}}
	if diff := cmp.Diff(want, saved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for spec, want := range map[string]string{
		saved.Commit + ":a":              "staged\nand changed",
		saved.Commit + "^:a":             "staged",
		saved.Commit + "^^:a":            "one",
		saved.Commit + ":link":           "/etc/passwd",
		saved.Commit + ":d/new\nline":    "new new\nline",
		saved.Commit + ":d/🚦 été":        "new 🚦 été",
		"refs/agency/snapshots/r/1:crlf": "x",
	} {
		if got := sh(t, repo.Root, "cat-file", "blob", spec); got != want {
			t.Errorf("%q is %q, want %q", spec, got, want)
		}
	}
	for _, missing := range []string{":sub/b", ":x.ignored", ":pipe"} {
		if _, err := try(repo.Root, "rev-parse", "--verify", saved.Commit+missing); err == nil {
			t.Errorf("%s is in the snapshot", missing)
		}
	}
	if got, want := sh(t, repo.Root, "rev-parse", saved.Commit+"^^"), sh(t, path, "rev-parse", "HEAD"); got != want {
		t.Errorf("the snapshot stands on %s, want HEAD %s", got, want)
	}
	if got := sh(t, repo.Root, "log", "-1", "--format=%an %ae %cn %ce %G?", saved.Commit); got != "agency agency@localhost agency agency@localhost N" {
		t.Errorf("author is %q", got)
	}
}

// A change of the same size, in the second in which git wrote its index, cannot be seen from size
// and time. Git then reads the file, but only because the index is not younger than the file. The
// copied index must keep that property.
func TestSnapshotSeesRacyChange(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "config", "core.trustctime", "false") // the test cannot set these times
	path, index := filepath.Join(repo.Root, "a"), filepath.Join(repo.CommonDir, "index")
	for i := range 5 {
		write(t, path, fmt.Sprintf("%03d\n", i))
		check(t, os.Chtimes(path, time0, time0))
		sh(t, repo.Root, "add", "a")
		want := fmt.Sprintf("%03d", i+100)
		write(t, path, want+"\n")
		check(t, os.Chtimes(path, time0, time0))
		check(t, os.Chtimes(index, time0, time0))
		saved, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "m")
		check(t, err)
		if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":a"); got != want {
			t.Fatalf("the snapshot has %q, the file %q", got, want)
		}
	}
	// Each snapshot replaced the one before, and the reflog keeps them.
	if got := strings.Count(sh(t, repo.Root, "reflog", "show", "refs/agency/snapshots/r/1"), "\n"); got != 4 {
		t.Errorf("the reflog has %d lines, want 5", got+1)
	}
}

func TestSnapshotDuringMerge(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "checkout", "-q", "-b", "other", "HEAD~1")
	write(t, filepath.Join(repo.Root, "a"), "theirs\n")
	sh(t, repo.Root, "commit", "-qam", "theirs")
	sh(t, repo.Root, "checkout", "-q", "main")
	write(t, filepath.Join(repo.Root, "a"), "ours\n")
	sh(t, repo.Root, "commit", "-qam", "ours")
	if out, err := try(repo.Root, "merge", "other"); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	before := fingerprint(t, repo.Root)
	saved, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "m")
	check(t, err)
	if diff := cmp.Diff(before, fingerprint(t, repo.Root)); diff != "" {
		t.Errorf("the snapshot changed something:\n%s", diff)
	}
	if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":a"); !strings.Contains(got, "<<<<<<<") {
		t.Errorf("a is %q", got)
	}
	if got, want := sh(t, repo.Root, "rev-parse", saved.Commit+"^"), sh(t, repo.Root, "rev-parse", "HEAD"); got != want {
		t.Errorf("the snapshot stands on %s, want HEAD %s", got, want)
	}
}

func TestSnapshotBeforeFirstCommit(t *testing.T) {
	t.Parallel()
	g, dir := newGit(), tempDir(t)
	sh(t, dir, "init", "-q")
	repo := agency.Repo{Root: dir, CommonDir: filepath.Join(dir, ".git")}
	saved, err := g.Snapshot(t.Context(), repo, dir, "", "refs/agency/snapshots/r/1", "empty")
	check(t, err)
	if saved.Files != 0 {
		t.Errorf("an empty worktree has %d files", saved.Files)
	}
	write(t, filepath.Join(dir, "a"), "x\n")
	saved, err = g.Snapshot(t.Context(), repo, dir, "", "refs/agency/snapshots/r/2", "one file")
	check(t, err)
	if got := sh(t, dir, "cat-file", "blob", saved.Commit+":a"); got != "x" || saved.Files != 1 {
		t.Errorf("a is %q, %d files", got, saved.Files)
	}
}

// A snapshot stores a file as the recorded filter makes it, and fails while agency cannot read that
// record: without the filter, a secret would be stored in plain text. The next run restores a record
// that was changed.
func TestSnapshotNeedsFilter(t *testing.T) {
	t.Parallel()
	_, repo := setup(t)
	records := tempDir(t)
	g := git.New(30*time.Second, scratch, records)
	write(t, filepath.Join(repo.Root, ".gitattributes"), "secret filter=lock\n")
	sh(t, repo.Root, "config", "filter.lock.clean", "tr a-z A-Z")
	repo, err := g.Record(t.Context(), repo)
	check(t, err)
	write(t, filepath.Join(repo.Root, "secret"), "word")
	record := filepath.Join(records, repo.GitConfig)
	check(t, os.Remove(record))
	check(t, os.Mkdir(record, 0o700)) // it is there, and cannot be read
	saved, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "m")
	if err == nil || !strings.Contains(err.Error(), "read the recorded git configuration of "+repo.Root) {
		t.Errorf("without the record: got %+v, %v", saved, err)
	}
	check(t, os.Remove(record))
	write(t, record, "changed")
	_, err = g.Record(t.Context(), repo) // as the next run does
	check(t, err)
	saved, err = g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/2", "m")
	check(t, err)
	if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":secret"); got != "WORD" {
		t.Errorf("the secret is stored as %q", got)
	}
}

// Repositories inside the worktree that have unsaved work are named, and do not prevent the
// snapshot.
func TestSnapshotNested(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	library := filepath.Join(tempDir(t), "library")
	newRepo(t, library)
	for _, name := range []string{"clean", "dirty", "new file", "ahead", "committed", "stashed", "absent", "broken"} {
		sh(t, repo.Root, "submodule", "add", "-q", library, "m/"+name)
	}
	sh(t, repo.Root, "commit", "-qm", "submodules")
	path := filepath.Join(tempDir(t), "wt")
	check(t, g.AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms))
	sh(t, path, "submodule", "-q", "update", "--init")
	in := func(parts ...string) string { return filepath.Join(append([]string{path}, parts...)...) }
	write(t, in("m", "dirty", "a"), "changed")
	write(t, in("m", "new file", "c"), "new")
	sh(t, in("m", "ahead"), "commit", "-q", "--allow-empty", "-m", "x")
	sh(t, in("m", "committed"), "commit", "-q", "--allow-empty", "-m", "x")
	sh(t, path, "commit", "-qm", "use it", "m/committed")
	write(t, in("m", "stashed", "a"), "changed")
	sh(t, in("m", "stashed"), "stash", "-q")
	sh(t, path, "submodule", "-q", "deinit", "m/absent")
	write(t, in("m", "broken", ".git"), "gitdir: /nonexistent\n")

	newRepo(t, in("nested\nrepo"))
	sh(t, path, "init", "-q", "deep/er/no commit")
	write(t, in("deep", "er", "no commit", "f"), "x")
	write(t, in("deep", "er", "beside"), "x")
	sh(t, path, "worktree", "add", "-q", "-b", "inner", "inner*worktree")

	saved, err := g.Snapshot(t.Context(), repo, path, "", "refs/agency/snapshots/r/1", "m")
	check(t, err)
	want := []string{"deep/er/no commit", "inner*worktree", "m/ahead", "m/broken", "m/committed", "m/dirty", "m/new file", "m/stashed", "nested\nrepo"}
	got := slices.Sorted(slices.Values(saved.Nested))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":deep/er/beside"); got != "x" {
		t.Errorf("the file beside a nested repository is %q", got)
	}
}

// A snapshot of a sparse checkout does not treat the files outside it as deleted.
func TestSnapshotSparse(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	sh(t, repo.Root, "sparse-checkout", "set", "elsewhere")
	write(t, filepath.Join(repo.Root, "outside", "new"), "x\n")
	saved, err := g.Snapshot(t.Context(), repo, repo.Root, "", "refs/agency/snapshots/r/1", "m")
	check(t, err)
	if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":outside/new"); got != "x" {
		t.Errorf("the new file is %q", got)
	}
	if got := sh(t, repo.Root, "cat-file", "blob", saved.Commit+":sub/b"); got != "two" {
		t.Errorf("the file that is not checked out is %q", got)
	}
}
