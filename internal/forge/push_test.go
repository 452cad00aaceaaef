package forge_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/forge"
	"agency/test/fixture"
)

// bench is a repository with a commit to push, and a bare one as its remote.
type bench struct {
	t            *testing.T
	repo, bare   string
	first, other string // commits: both start at first
	remote       *forge.Remote
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := t.TempDir()
	b := &bench{t: t, repo: filepath.Join(dir, "repo"), bare: filepath.Join(dir, "bare.git")}
	b.git(dir, "init", "-q", "--bare", b.bare)
	b.git(dir, "init", "-q", "-b", "main", b.repo)
	b.git(b.repo, "config", "user.name", "User")
	b.git(b.repo, "config", "user.email", "user@example.invalid")
	b.git(b.repo, "commit", "-q", "--allow-empty", "-m", "other")
	b.other = b.git(b.repo, "rev-parse", "HEAD")
	b.git(b.repo, "push", "-q", b.bare, "main:refs/heads/seed")
	b.git(b.repo, "commit", "-q", "--amend", "--allow-empty", "-m", "first")
	b.first = b.git(b.repo, "rev-parse", "HEAD")
	var err error
	b.remote, err = forge.Open(t.Context(), forge.Place{CommonDir: filepath.Join(b.repo, ".git"), Remote: "origin", URL: b.bare}, dir, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.remote.Close() })
	return b
}

func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// hook makes a hook of the remote.
func (b *bench) hook(script string) {
	b.t.Helper()
	if err := fixture.WriteProgram(filepath.Join(b.bare, "hooks", "pre-receive"), "#!/bin/sh\n"+script); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) push(ctx context.Context) error {
	_, err := b.remote.Push(ctx, forge.Push{Branch: "work", Commit: b.first}, func(bool) error { return nil })
	return err
}

// A push that comes to the remote just before changes what the lease expects: nothing is lost.
func TestPushLosesRace(t *testing.T) {
	b := newBench(t)
	b.hook("unset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/work " + b.other + "\n")
	err := b.push(t.Context())
	if !agency.IsCode(err, agency.CodeTargetMoved) {
		t.Error(err)
	}
	if at := b.git(b.bare, "rev-parse", "work"); at != b.other {
		t.Errorf("the branch is at %s", at)
	}
}

// What a remote writes when it refuses is shown without what acts on a terminal.
func TestPushRejected(t *testing.T) {
	b := newBench(t)
	b.hook(`printf 'no \033]0;title\007\033[31mred\033[0m work\n' >&2; exit 1` + "\n")
	err := b.push(t.Context())
	if !agency.IsCode(err, agency.CodePushRejected) || !strings.Contains(err.Error(), "pre-receive hook declined") || !strings.Contains(err.Error(), "work") {
		t.Fatal(err)
	}
	if strings.ContainsAny(err.Error(), "\x1b\a\r") {
		t.Errorf("%q", err)
	}
}

// A remote that does not answer ends at the time limit, with everything that the push started.
func TestPushSleeps(t *testing.T) {
	b := newBench(t)
	began := filepath.Join(t.TempDir(), "began")
	b.hook("echo $$ > '" + began + "'\nexec sleep 600\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if data, err := os.ReadFile(began); err == nil && len(data) > 0 {
				cancel(context.DeadlineExceeded) // the time limit comes while the hook sleeps
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	err := b.push(ctx)
	if !agency.IsCode(err, agency.CodeWaitTimeout) || !strings.Contains(err.Error(), "does not have") {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(began)
	if err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join("/proc", strings.TrimSpace(string(pid)), "cmdline")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(proc)
		if err != nil || !strings.HasPrefix(string(data), "sleep") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the hook still sleeps")
		}
	}
}

// A push that was cut off after the remote took it is a push.
func TestPushCutOff(t *testing.T) {
	b := newBench(t)
	if err := fixture.WriteProgram(filepath.Join(b.bare, "hooks", "post-receive"), "#!/bin/sh\nkill -9 $PPID\n"); err != nil {
		t.Fatal(err)
	}
	if err := b.push(t.Context()); err != nil {
		t.Error(err)
	}
	pushed, err := b.remote.Push(t.Context(), forge.Push{Branch: "work", Commit: b.first}, nil)
	if err != nil || !pushed.Already {
		t.Error(pushed, err)
	}
}

// Files that git-lfs keeps elsewhere are not pushed without what uploads them.
func TestPushLFS(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.repo, ".gitattributes"), []byte("*.bin filter=lfs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.git(b.repo, "add", "-A")
	b.git(b.repo, "commit", "-q", "-m", "large files")
	b.first = b.git(b.repo, "rev-parse", "HEAD")
	if err := b.push(t.Context()); !agency.IsCode(err, agency.CodeInvalidState) || !strings.Contains(err.Error(), "git-lfs") {
		t.Error(err)
	}
}

// A git that fails does not show that there are no such files: nothing is pushed.
func TestPushLFSUnknown(t *testing.T) {
	b := newBench(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for fails, want := range map[string]string{
		"echo 'fatal: Out of memory, malloc failed' >&2; exit 128": "Out of memory",
		"kill -9 $$": "it was killed",
	} {
		bin := t.TempDir()
		script := "#!/bin/sh\ncase \" $* \" in *\" grep \"*) " + fails + " ;; esac\nexec '" + real + "' \"$@\"\n"
		if err := fixture.WriteProgram(filepath.Join(bin, "git"), script); err != nil {
			t.Fatal(err)
		}
		env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		b.remote, err = forge.Open(t.Context(), forge.Place{CommonDir: filepath.Join(b.repo, ".git"), Remote: "origin", URL: b.bare}, bin, env)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.push(t.Context()); !agency.IsCode(err, agency.CodeGitFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", fails, err)
		}
		if refs := b.git(b.bare, "for-each-ref", "refs/heads/work"); refs != "" {
			t.Errorf("%s: pushed %s", fails, refs)
		}
		if err := b.remote.Close(); err != nil {
			t.Error(err)
		}
	}
}
