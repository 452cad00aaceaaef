package maintain_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// A relative path of a configuration means the same file to a daemon, which runs in another folder.
func TestRelativeConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args, env []string
	}{
		"flag":     {args: []string{"--config", "my.toml"}},
		"flag, ./": {args: []string{"--config=./my.toml"}},
		"variable": {env: []string{"AGENCY_CONFIG=my.toml"}},
		"old name": {env: []string{"agency_CONFIG=./my.toml"}},
	} {
		b := clitest.New(t)
		want := filepath.Join(b.Home, "my.toml")
		if err := os.WriteFile(want, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.App.Env = append(b.App.Env, test.env...)
		if b.Run(append([]string{"ls"}, test.args...)...); b.Spawned != 1 {
			t.Errorf("%s: %s", name, b.Err.String())
		}
		got := b.Config
		for i := range test.env {
			got = b.Environ[len(b.Environ)-1-i]
			want = map[string]string{"variable": "AGENCY_CONFIG=", "old name": "agency_CONFIG="}[name] + want
		}
		if got != want {
			t.Errorf("%s: the daemon is to read %q, want %q", name, got, want)
		}
	}
}

// A daemon that does not listen counts as absent only if no process holds the data root.
func TestUnheardDaemon(t *testing.T) {
	t.Parallel()
	for doing, want := range map[string]string{"": "not running\n", "stopping": "stopping, pid 4711; it does not listen on "} {
		b := clitest.New(t)
		b.App.DaemonHolder = func(string) (api.Holder, error) {
			return api.Holder{PID: 4711, Doing: doing, Locked: doing != ""}, nil
		}
		status := agency.ExitOK
		if doing == "" {
			status = agency.ExitNotFound
		}
		if got := b.Run("daemon", "status"); got != status || !strings.HasPrefix(b.Out.String(), want) {
			t.Errorf("%q: got %d and %q", doing, got, b.Out.String())
		}
	}
}

// A stop returns when the daemon has released the data root, also when it was ending already, and
// it does not wait for a daemon that starts later.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	mine, next := api.Holder{PID: 4711, Doing: api.DoingStop, Locked: true}, api.Holder{PID: 4712, Doing: api.DoingStart, Locked: true}
	none := api.Holder{PID: 4711, Doing: api.DoingStop}
	for name, test := range map[string]struct {
		listens bool
		holders []api.Holder // one after the other
		want    string
	}{
		"none":            {false, []api.Holder{none}, "not running\n"},
		"ending":          {false, []api.Holder{mine, mine, none}, "stopped\n"},
		"running":         {true, []api.Holder{mine, mine, none}, "stopped; 2 runs still live\n"},
		"another by then": {true, []api.Holder{mine, mine, next}, "stopped; 2 runs still live\n"},
	} {
		b := clitest.New(t)
		asked := 0
		b.App.DaemonHolder = func(string) (api.Holder, error) {
			asked++
			return test.holders[asked-1], nil
		}
		if test.listens {
			b.Serve(clitest.Always(api.DaemonStatusResponse{PID: mine.PID, LiveRuns: 2}, nil))
		}
		if got := b.Run("daemon", "stop"); got != agency.ExitOK || b.Out.String() != test.want || asked != len(test.holders) {
			t.Errorf("%s: got %d, %q and %q after %d looks", name, got, b.Out.String(), b.Err.String(), asked)
		}
	}
}

// Ctrl-C ends a waiting stop.
func TestStopGivenUp(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.App.DaemonHolder = func(string) (api.Holder, error) {
		cancel()
		return api.Holder{PID: 4711, Doing: api.DoingStop, Locked: true}, nil
	}
	if got := b.App.Main(ctx, []string{"daemon", "stop"}); got != agency.ExitInterrupted || b.Out.Len() != 0 {
		t.Errorf("got %d and %q", got, b.Out.String())
	}
}
