package script_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// before returns the path of the program of another version: AGENCY_BEFORE, which make upgrade builds
// from another commit, or that of sameCommit.
func before() (string, error) {
	if path := os.Getenv("AGENCY_BEFORE"); path != "" {
		return path, nil
	}
	return sameCommit()
}

// sameCommit returns the path of the program of another version that has the same operations.
func sameCommit() (string, error) {
	out, err := buildSameCommit()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(bin, "agency-v0.0.1"), err
}

// buildSameCommit builds the program of sameCommit once for all tests.
var buildSameCommit = sync.OnceValues(func() ([]byte, error) {
	args := []string{"build", "-ldflags", "-X main.version=v0.0.1", "-o", filepath.Join(bin, "agency-v0.0.1")}
	if fixture.Race {
		args = append(args, "-race")
	}
	return exec.Command("go", append(args, "agency/cmd/agency")...).CombinedOutput()
})

// refusal returns what the daemon tells a client of a version that never was.
func refusal(t *testing.T, f *fixture.Fixture) *agency.Error {
	t.Helper()
	c := api.NewClient(filepath.Join(f.Data, "agencyd.sock"), "none", nil)
	defer c.Close()
	_, err := api.Call(t.Context(), c, api.DaemonStatus, api.Empty{})
	return agency.AsError(err)
}

// await waits until holds does.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// started is a command that runs beside the test.
type started struct {
	*exec.Cmd
	out string // path of what it has printed
}

// start starts a program in the fixture. It is killed at the end of the test at the latest.
func start(t *testing.T, f *fixture.Fixture, program string, args ...string) started {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = f.Repo, f.Env, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return started{cmd, out.Name()}
}

// printed returns what the command has printed.
func (s started) printed() string {
	text, _ := os.ReadFile(s.out)
	return string(text)
}

// Runs of an older agency continue under a newer one, and back: the commands replace the daemon, but
// not while a request waits for it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	old, err := before()
	if err != nil {
		t.Fatal(err)
	}
	must := func(r fixture.Result) string {
		t.Helper()
		if r.Exit != 0 {
			t.Fatalf("exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
		}
		return r.Stdout
	}
	const task = `read line; echo "heard $line"; sleep 1000`
	must(f.Command("", old, "run", "--runner", "shell", "--name", "first", "--prompt", task))
	version := func() any { return refusal(t, f).Details["daemon_version"] }
	older := version()

	// The newer program sees the run, and acts on it.
	if list := must(f.Agency("ls")); !strings.Contains(list, "first") || version() == older {
		t.Fatalf("the daemon is still %v, and ls shows %s", version(), list)
	}
	must(f.Agency("send", "first", "the newer one"))
	await(t, "the run heard it", func() bool { return strings.Contains(f.Agency("logs", "first").Stdout, "heard the newer one") })
	must(f.Agency("run", "--runner", "shell", "--name", "second", "--prompt", task))

	// Back: a program that cannot read the record says so, and what to do; the newer daemon continues.
	if os.Getenv("AGENCY_BEFORE_RECORD") == "older" {
		r := f.Command("", old, "ls")
		if newer := version(); r.Exit != agency.ExitConflict || newer == older || !strings.Contains(r.Stderr, "cannot read its record") ||
			!strings.Contains(r.Stderr, fmt.Sprintf("hint: install version %v again", newer)) {
			t.Fatalf("exit %d, the daemon is %v: %s%s", r.Exit, newer, r.Stdout, r.Stderr)
		}
		must(f.Agency("stop", "first", "second"))
		return
	}

	// Back: the older program sees both, with what happened meanwhile.
	if list := must(f.Command("", old, "ls")); !strings.Contains(list, "first") || !strings.Contains(list, "second") || version() != older {
		t.Fatalf("the daemon is %v, and ls shows %s", version(), list)
	}
	must(f.Command("", old, "send", "second", "the older one"))
	await(t, "the run heard it", func() bool {
		return strings.Contains(f.Command("", old, "logs", "second").Stdout, "heard the older one")
	})

	keepsRequest(t, f, old, task)
	must(f.Agency("stop", "first"))
	if version() == older {
		t.Error("the daemon is still the older one")
	}
}

// keepsRequest checks that a request that changes something is not lost: the newer program says so,
// and how to continue.
func keepsRequest(t *testing.T, f *fixture.Fixture, old, task string) {
	t.Helper()
	hook := filepath.Join(f.Repo, ".git", "hooks", "post-checkout")
	gate := filepath.Join(t.TempDir(), "gate")
	if err := fixture.WriteProgram(hook, "#!/bin/sh\nuntil [ -e '"+gate+"' ]; do sleep 0.05; done\n"); err != nil {
		t.Fatal(err)
	}
	creating := start(t, f, old, "run", "--runner", "shell", "--name", "third", "--prompt", task)
	await(t, "the daemon has the request", func() bool { return refusal(t, f).Details["requests"] == 1.0 })
	if r := f.Agency("ls"); r.Exit != agency.ExitConflict || !strings.Contains(r.Stderr, "a request waits for its answer") || !strings.Contains(r.Stderr, "agency daemon stop") {
		t.Errorf("exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := creating.Wait(); err != nil {
		t.Errorf("the request was lost: %v: %s", err, creating.printed())
	}
	// It exits with 1 where the default runner is not installed.
	if r := f.Agency("doctor", "--json"); !strings.Contains(r.Stdout, `"orphans"`) {
		t.Errorf("exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
}
