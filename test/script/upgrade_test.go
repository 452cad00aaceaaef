package script_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// before returns the program of another version: AGENCY_BEFORE, which make upgrade builds from
// another commit, or the same commit with another version.
func before(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("AGENCY_BEFORE"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "agency")
	args := []string{"build", "-ldflags", "-X main.version=v0.0.1", "-o", path}
	if fixture.Race {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "agency/cmd/agency")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

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

// Runs of an older agency go on under a newer one, and back: the commands replace the daemon, but
// not while a request waits for it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	old := before(t)
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

	// Back: the older program sees both, with what happened meanwhile.
	if list := must(f.Command("", old, "ls")); !strings.Contains(list, "first") || !strings.Contains(list, "second") || version() != older {
		t.Fatalf("the daemon is %v, and ls shows %s", version(), list)
	}
	must(f.Command("", old, "send", "second", "the older one"))
	await(t, "the run heard it", func() bool {
		return strings.Contains(f.Command("", old, "logs", "second").Stdout, "heard the older one")
	})

	// A request that waits is not lost: the newer program says so, and how to go on.
	waiting := exec.Command(old, "wait", "second")
	var waited strings.Builder
	waiting.Dir, waiting.Env, waiting.Stdout, waiting.Stderr = f.Repo, f.Env, &waited, &waited
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the daemon has the request", func() bool { return refusal(t, f).Details["requests"] == 1.0 })
	if r := f.Agency("ls"); r.Exit != agency.ExitConflict || !strings.Contains(r.Stderr, "a request waits for its answer") || !strings.Contains(r.Stderr, "agency daemon stop") {
		t.Errorf("exit %d: %s%s", r.Exit, r.Stdout, r.Stderr)
	}
	must(f.Command("", old, "stop", "second"))
	if _ = waiting.Wait(); !strings.Contains(waited.String(), "second") || strings.Contains(waited.String(), "E_DAEMON") {
		t.Errorf("the request was lost: %s", waited.String())
	}
	must(f.Agency("doctor", "--json"))
	must(f.Agency("stop", "first"))
	if version() == older {
		t.Error("the daemon is still the older one")
	}
}
