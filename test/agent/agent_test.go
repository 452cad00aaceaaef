// Package agent_test tests the scripted agent with the shells that are installed.
package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/contract"
	"agency/test/fixture"
)

// shells returns the interpreters to try: the system's own, and others by name where they exist.
func shells() []string {
	found := []string{"/bin/sh"}
	for _, name := range []string{"dash", "bash", "busybox", "ksh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// agent is one running script.
type agent struct {
	*exec.Cmd
	t   *testing.T
	dir string
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs the scenario with a shell in a new folder.
func start(t *testing.T, shell, dir string, lines ...string) *agent {
	t.Helper()
	script, err := filepath.Abs("agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	prompt := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(prompt, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	args := []string{script, prompt}
	if filepath.Base(shell) == "busybox" {
		args = append([]string{"sh"}, args...)
	}
	a := &agent{Cmd: exec.CommandContext(ctx, shell, args...), t: t, dir: dir}
	a.Dir, a.Stderr, a.WaitDelay = dir, os.Stderr, 500*time.Millisecond
	if a.in, err = a.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewReader(out)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

// line returns the next line that the agent prints.
func (a *agent) line() string {
	a.t.Helper()
	s, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatalf("read after %q: %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

// answer sends the agent a line of input.
func (a *agent) answer(s string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, s+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

// end waits for the exit and returns the remaining output and the exit status.
func (a *agent) end() (string, int) {
	a.t.Helper()
	_ = a.in.Close()
	rest, err := io.ReadAll(a.out)
	if err != nil {
		a.t.Fatal(err)
	}
	var failed *exec.ExitError
	if err := a.Wait(); err != nil && !errors.As(err, &failed) {
		a.t.Fatal(err)
	}
	return string(rest), a.ProcessState.ExitCode()
}

// contract returns the agent's last status file, without the time.
func (a *agent) contract() agency.Contract {
	a.t.Helper()
	data, err := os.ReadFile(filepath.Join(a.dir, agency.ContractFile))
	if err != nil {
		a.t.Fatal(err)
	}
	c, err := contract.Parse(data)
	if err != nil {
		a.t.Fatalf("%v in\n%s", err, data)
	}
	if _, err := time.Parse(time.RFC3339, c.UpdatedAt); err != nil {
		a.t.Error(err)
	}
	c.UpdatedAt = ""
	return c
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// hostileRepo makes a repository with a hook that fails and a signing configuration, neither of
// which may affect a commit.
func hostileRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	git(t, dir, "config", "commit.gpgsign", "true")
	hook := filepath.Join(dir, ".git", "hooks", "pre-commit")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fixture.WriteProgram(hook, "#!/bin/sh\nexit 1\n"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestScenario(t *testing.T) {
	t.Parallel()
	for _, shell := range shells() {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := hostileRepo(t)
			a := start(t, shell, dir,
				"# a task", "",
				`say  two  spaces, 'quotes' "and" \back\slashes $HOME %s *`,
				`work a "quoted" \n summary`,
				"write src/new.txt some text",
				"commit -m: add a file",
				"ask Which colour?",
				"spam 3",
				"ready Done, at last | run `make test` | twice",
			)
			if got, want := a.line(), ` two  spaces, 'quotes' "and" \back\slashes $HOME %s *`; got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			if got, want := a.line(), "? Which colour?"; got != want {
				t.Errorf("said %q, want %q", got, want)
			}
			want := agency.NewContract(time.Time{})
			want.Status, want.UpdatedAt = agency.ReportedNeedsInput, ""
			want.Summary, want.Questions = "Which colour?", []string{"Which colour?"}
			if diff := cmp.Diff(want, a.contract()); diff != "" {
				t.Errorf("while it asks (-want +got):\n%s", diff)
			}
			a.answer(` red \ or 'blue'`)
			rest, code := a.end()
			if want := "answer:  red \\ or 'blue'\nline 1 of 3\nline 2 of 3\nline 3 of 3\n"; rest != want || code != 0 {
				t.Errorf("printed %q and ended with %d, want %q and 0", rest, code, want)
			}
			want = agency.NewContract(time.Time{})
			want.Status, want.UpdatedAt = agency.ReportedReadyForReview, ""
			want.Summary, want.HowToTest = "Done, at last", "run `make test` | twice"
			if diff := cmp.Diff(want, a.contract()); diff != "" {
				t.Errorf("at the end (-want +got):\n%s", diff)
			}
			if got, want := git(t, dir, "log", "--format=%an <%ae> %s"), "Scripted Agent <agent@example.invalid> -m: add a file"; got != want {
				t.Errorf("committed %q, want %q", got, want)
			}
			if got := git(t, dir, "show", "HEAD:src/new.txt"); got != "some text" {
				t.Errorf("committed %q", got)
			}
			left, err := filepath.Glob(filepath.Join(dir, agency.StateDir, "*"))
			if err != nil || len(left) != 1 {
				t.Errorf("left %q (%v), want the contract alone", left, err)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		lines  []string
		out    string
		code   int
		status agency.ReportedStatus // empty when it reports nothing
	}{
		{"an empty prompt", nil, "", 0, ""},
		{"no line end at the end", []string{"say a", "say b"}, "a\nb\n", 0, ""},
		{"with a status", []string{"say a", "exit 7", "say b"}, "a\n", 7, ""},
		{"no user answers", []string{"ask Anyone?", "say b"}, "? Anyone?\n", 0, agency.ReportedNeedsInput},
		{"blocked", []string{"work a", "block The door is shut"}, "", 0, agency.ReportedBlocked},
		{"an unknown command", []string{"say a", "dance now"}, "a\n", 2, ""},
		{"ready without a test", []string{"ready Done"}, "", 2, ""},
		{"a command that fails", []string{"commit nothing", "say b"}, "", 128, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := start(t, "/bin/sh", t.TempDir(), tt.lines...)
			_ = a.in.Close()
			if out, code := a.end(); out != tt.out || code != tt.code {
				t.Errorf("printed %q and ended with %d, want %q and %d", out, code, tt.out, tt.code)
			}
			if tt.status != "" {
				if got := a.contract().Status; got != tt.status {
					t.Errorf("reported %s, want %s", got, tt.status)
				}
			}
		})
	}
}

func TestWaitFile(t *testing.T) {
	t.Parallel()
	a := start(t, "/bin/sh", t.TempDir(), "say waiting", "wait-file go", "say gone")
	a.line()
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := a.end(); out != "gone\n" || code != 0 {
		t.Errorf("printed %q and ended with %d", out, code)
	}
}

func TestTerm(t *testing.T) {
	t.Parallel()
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignored %v", ignore), func(t *testing.T) {
			t.Parallel()
			lines := []string{"say here", "ask More?", "say on"}
			if ignore {
				lines = append([]string{"ignore-term"}, lines...)
			}
			a := start(t, "/bin/sh", t.TempDir(), lines...)
			a.line()
			a.line()
			if err := a.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if ignore {
				a.answer("yes")
			}
			out, code := a.end()
			if ignore && (out != "answer: yes\non\n" || code != 0) {
				t.Errorf("printed %q and ended with %d", out, code)
			}
			if status := a.ProcessState.Sys().(syscall.WaitStatus); !ignore && status.Signal() != syscall.SIGTERM {
				t.Errorf("ended with %v", status)
			}
		})
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	a := start(t, "/bin/sh", t.TempDir(), "child", "ask Done?")
	var pid int
	if _, err := fmt.Sscanf(a.line(), "child %d", &pid); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	a.line()
	a.answer("yes")
	a.line()
	// The child holds standard output open, so the test must wait for the agent's end without
	// reading to the end.
	if err := a.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the child ended with its parent: %v", err)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`"`, `\`, `\u0041 \n`, "tab\there", "\x01\x1b[31m\x7f\r", "Grüße, 世界 🎉", "$(id) `id` ${HOME} *", "-n", "%s%d", "a | b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\x00") || !utf8.ValidString(text) || strings.TrimSpace(text) == "" || len(text) > 1000 {
			t.Skip()
		}
		a := start(t, "/bin/sh", t.TempDir(), "work "+text)
		if _, code := a.end(); code != 0 {
			t.Fatalf("ended with %d", code)
		}
		if got := a.contract().Summary; got != text {
			t.Errorf("reported %q, want %q", got, text)
		}
	})
}
