package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency"
	"agency/internal/proc"
	"agency/internal/runner"
)

// marked is the test binary, as TestMain has it.
var marked = []string{os.Args[0], "marked"}

func setupOf(t *testing.T, script string) (agency.SetupCommand, string) {
	t.Helper()
	dir := t.TempDir()
	mark := "AGENCY_MAKING=" + dir
	return agency.SetupCommand{
		Argv: []string{"/bin/sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), mark, "COLOUR=blue"}, Mark: mark,
		Log: filepath.Join(dir, "setup.log"), Timeout: 30 * time.Second,
	}, dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSetup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, log, want string }{
		"fine":   {`echo $COLOUR; echo oops >&2; pwd >here`, "blue\noops\n", ""},
		"stdin":  {`cat; echo end`, "end\n", ""},
		"exit":   {`echo no; exit 3`, "no\nagency: setup failed with exit 3\n", "failed with exit 3"},
		"signal": {`kill -9 $$`, "agency: setup was ended by SIGKILL\n", "was ended by SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := setupOf(t, test.script)
			err := runner.RunSetup(t.Context(), marked, s, runner.Serving{}, nil)
			if got := read(t, s.Log); got != test.log {
				t.Errorf("log: got %q", got)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSetupThatCannotStart(t *testing.T) {
	t.Parallel()
	s, dir := setupOf(t, "")
	s.Argv = []string{filepath.Join(dir, "nothing")}
	if err := runner.RunSetup(t.Context(), marked, s, runner.Serving{}, nil); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("got %v", err)
	}
	s.Log = filepath.Join(dir, "link")
	if err := os.Symlink("/dev/null", s.Log); err != nil {
		t.Fatal(err)
	}
	if err := runner.RunSetup(t.Context(), marked, s, runner.Serving{}, nil); err == nil || !strings.Contains(err.Error(), "its log") {
		t.Errorf("got %v", err)
	}
}

// A setup that is not done in time is ended, and so is everything that a setup leaves in the
// background.
func TestSetupLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script  string
		timeout time.Duration
		want    string
	}{
		"too long":   {`sleep 600 & echo $! >pid; wait`, 15 * time.Second, "did not end in 15s"},
		"background": {`sleep 600 & echo $! >pid`, 30 * time.Second, ""},
		"hidden":     {`(env -i setsid sh -c 'echo $$ >pid; exec sleep 600' &) ; while [ ! -s pid ]; do sleep 0.01; done`, 30 * time.Second, ""},
		"stubborn":   {`trap '' TERM; (trap '' TERM; sleep 600) & echo $! >pid; wait`, 15 * time.Second, "did not end in 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := setupOf(t, test.script)
			s.Timeout = test.timeout
			err := runner.RunSetup(t.Context(), marked, s, runner.Serving{}, nil)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(dir, "pid"))))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); runs(pid); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d still runs", pid)
				}
			}
		})
	}
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	s, err := proc.Of(pid)
	return err != nil || s.State != 'Z'
}

func TestSetupLogIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := setupOf(t, `echo begin; head -c 20000000 /dev/zero | tr '\0' x; echo; echo the end; exit 1`)
	if err := runner.RunSetup(t.Context(), marked, s, runner.Serving{}, nil); err == nil {
		t.Error("got no error")
	}
	log := read(t, s.Log)
	if !strings.HasPrefix(log, "begin\n") || !strings.Contains(log, "bytes are left out here\n") || !strings.HasSuffix(log, "\nthe end\nagency: setup failed with exit 1\n") {
		t.Errorf("got %q ... %q", log[:20], log[len(log)-60:])
	}
	if len(log) > 17<<20 {
		t.Errorf("got %d bytes", len(log))
	}
}

func TestCheckVerdicts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script, reason string
		verdict        agency.Verdict
	}{
		"pass":   {`exit 0`, "", agency.CheckPassed},
		"fail":   {`exit 3`, "failed with exit 3", agency.CheckFailed},
		"signal": {`kill -SEGV $$`, "was ended by SIGSEGV", agency.CheckFailed},
		"killed": {`kill -9 $$`, "was ended by SIGKILL", agency.CheckBroken},
		"slow":   {`exec sleep 600`, "did not end in 300ms", agency.CheckTimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := setupOf(t, test.script)
			if test.verdict == agency.CheckTimedOut {
				c.Timeout = 300 * time.Millisecond
			}
			verdict, reason, err := runner.RunCheck(t.Context(), marked, c, runner.Serving{})
			if verdict != test.verdict || reason != test.reason || err != nil {
				t.Errorf("got %q, %q, %v", verdict, reason, err)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		t.Parallel()
		c, dir := setupOf(t, "")
		c.Argv = []string{filepath.Join(dir, "nothing")}
		if verdict, reason, err := runner.RunCheck(t.Context(), marked, c, runner.Serving{}); verdict != agency.CheckBroken || !strings.HasPrefix(reason, "cannot be started: ") || err != nil {
			t.Errorf("got %q, %q, %v", verdict, reason, err)
		}
	})
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		c, dir := setupOf(t, `touch began; exec sleep 600`)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(filepath.Join(dir, "began")); err == nil {
					cancel()
				}
			}
		}()
		if verdict, _, err := runner.RunCheck(ctx, marked, c, runner.Serving{}); verdict != "" || err == nil {
			t.Errorf("got %q, %v", verdict, err)
		}
	})
}
