package git_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
	"agency/test/fixture"
)

// TestMain keeps the user's own git configuration out, and sets variables as a hook of git would:
// every test thereby shows that git does not inherit them.
func TestMain(m *testing.M) { os.Exit(run(m)) }

// scratch is the data folder of every Git in the tests.
var scratch string

func run(m *testing.M) int {
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL":    "/dev/null",
		"GIT_CONFIG_NOSYSTEM":  "1",
		"GIT_DIR":              "/nonexistent/dir",
		"GIT_WORK_TREE":        "/nonexistent/tree",
		"GIT_COMMON_DIR":       "/nonexistent/common",
		"GIT_INDEX_FILE":       "/nonexistent/index",
		"GIT_OBJECT_DIRECTORY": "/nonexistent/objects",
		"GIT_NAMESPACE":        "other",
		"GIT_QUARANTINE_PATH":  "/nonexistent/quarantine",
		"GIT_CONFIG_COUNT":     "1",
		"GIT_CONFIG_KEY_0":     "core.bare",
		"GIT_CONFIG_VALUE_0":   "true",
		"LANGUAGE":             "de",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	var err error
	if scratch, err = os.MkdirTemp("", "agency-git-test-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	return m.Run()
}

func newGit() *git.Git { return git.New(30*time.Second, scratch, scratch) }

// sh runs git for the setup of a test, with an identity, and returns its output without the last
// newline.
func sh(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := try(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// tempDir returns a canonical temporary folder: on macOS the usual one is reached through a link.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}

// newRepo makes a repository with two commits on main: file a, then b in a folder.
func newRepo(t *testing.T, dir string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
	sh(t, dir, "init", "-q", "-b", "main")
	write(t, filepath.Join(dir, "a"), "one\n")
	sh(t, dir, "add", "-A")
	sh(t, dir, "commit", "-qm", "first")
	write(t, filepath.Join(dir, "sub", "b"), "two\n")
	sh(t, dir, "add", "-A")
	sh(t, dir, "commit", "-qm", "second")
}

// setup returns a new repository, discovered.
func setup(t *testing.T) (*git.Git, agency.Repo) {
	t.Helper()
	dir := filepath.Join(tempDir(t), "repo")
	newRepo(t, dir)
	g := newGit()
	repo, err := g.Discover(t.Context(), dir)
	check(t, err)
	return g, repo
}

func write(t *testing.T, path, content string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(content), 0o644))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode checks the code of an error, and that a terminal can show its text.
func wantCode(t *testing.T, err error, want agency.Code) {
	t.Helper()
	if !agency.IsCode(err, want) {
		t.Fatalf("error is %v, want %s", err, want)
	}
	e := agency.AsError(err)
	if strings.ContainsAny(e.Message+e.Hint, "\x1b\r") {
		t.Errorf("the message holds control characters: %q", e.Message)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got, err := newGit().Version(t.Context())
	check(t, err)
	if got == "" || got[0] < '1' || got[0] > '9' || strings.ContainsAny(got, " \n") {
		t.Errorf("version is %q", got)
	}
}

func TestGitNotFound(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := newGit().Version(t.Context())
	wantCode(t, err, agency.CodeGitNotFound)
	if e := agency.AsError(err); !strings.Contains(e.Hint, "install") {
		t.Errorf("hint is %q", e.Hint)
	}
}

// A git that takes too long is ended with everything that its hooks started.
func TestTimeoutEndsHooks(t *testing.T) {
	t.Parallel()
	_, repo := setup(t)
	pidFile := filepath.Join(repo.CommonDir, "pid")
	hook(t, repo, "post-checkout", `trap "" TERM; echo $$ > "`+pidFile+`"; sleep 1000 & wait; sleep 1000`)
	path := filepath.Join(tempDir(t), "wt")
	err := git.New(5*time.Second, scratch, scratch).AddWorktree(t.Context(), repo, path, "b", "HEAD", agency.OwnPrograms)
	wantCode(t, err, agency.CodeWorktreeFailed)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want one that wraps context.DeadlineExceeded", err)
	}
	data, err := os.ReadFile(pidFile)
	check(t, err)
	waitFor(t, "the hook to end", func() bool { return gone(strings.TrimSpace(string(data))) })
	wantNothingLeft(t, repo, path, "b")
}

// gone reports whether a process has ended, reaped or not.
func gone(pid string) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A process that a hook leaves behind with agency's pipe open does not delay agency.
func TestLingeringHook(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	pidFile := filepath.Join(repo.CommonDir, "pid")
	hook(t, repo, "post-checkout", `sleep 1000 & echo $! > "`+pidFile+`"`)
	check(t, g.AddWorktree(t.Context(), repo, filepath.Join(tempDir(t), "wt"), "b", "HEAD", agency.OwnPrograms))
	data, err := os.ReadFile(pidFile)
	check(t, err)
	check(t, exec.Command("kill", strings.TrimSpace(string(data))).Run())
}

// An answer without its end, as a daemon reads it that stood still at a bad time, is no answer.
// What only holds the standard error of a git does not matter.
func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	g, repo := setup(t)
	for holds, whole := range map[string]bool{">/dev/null": true, "2>/dev/null": false} {
		out, err := g.Runs(t.Context(), repo.Root, "echo one; sleep 1000 "+holds+" & echo $! >pid")
		if whole && (out != "one\n" || err != nil) || !whole && err == nil {
			t.Errorf("sleep %s: got %q, %v", holds, out, err)
		}
		data, err := os.ReadFile(filepath.Join(repo.Root, "pid"))
		check(t, err)
		check(t, exec.Command("kill", strings.TrimSpace(string(data))).Run())
	}
}

func hook(t *testing.T, repo agency.Repo, name, script string) {
	t.Helper()
	path := filepath.Join(repo.CommonDir, "hooks", name)
	check(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), fixture.WriteProgram(path, "#!/bin/sh\n"+script+"\n")))
}

func TestDubiousOwnership(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a repository to another user")
	}
	g, repo := setup(t)
	for _, path := range []string{repo.Root, repo.CommonDir} {
		check(t, syscall.Chown(path, 12345, 12345))
	}
	_, err := g.Discover(t.Context(), repo.Root)
	wantCode(t, err, agency.CodePermissionDenied)
	if e := agency.AsError(err); !strings.Contains(e.Hint, "safe.directory "+repo.Root) {
		t.Errorf("hint is %q", e.Hint)
	}
	_, err = g.ResolveCommit(t.Context(), repo.Root, "HEAD")
	wantCode(t, err, agency.CodePermissionDenied)
}

func FuzzLastLine(f *testing.F) {
	for _, s := range []string{"", "fatal: x\n", "a\nerror: b\x1b[31m\r\n\n", "\u202e\xff", strings.Repeat("x", 1000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stderr string) {
		got := git.LastLine(stderr)
		if strings.ContainsAny(got, "\n\r\x1b\x00\u202e") || len([]rune(got)) > 401 {
			t.Errorf("%q became %q", stderr, got)
		}
	})
}
