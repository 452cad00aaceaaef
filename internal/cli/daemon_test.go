package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
)

// A configuration that is named relatively is the same one for a daemon, which runs elsewhere.
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
		b := newBench(t)
		want := filepath.Join(b.home, "my.toml")
		if err := os.WriteFile(want, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.app.Env = append(b.app.Env, test.env...)
		if b.run(append([]string{"ls"}, test.args...)...); b.spawned != 1 {
			t.Errorf("%s: %s", name, b.err.String())
		}
		got := b.config
		for i := range test.env {
			got = b.environ[len(b.environ)-1-i]
			want = map[string]string{"variable": "AGENCY_CONFIG=", "old name": "agency_CONFIG="}[name] + want
		}
		if got != want {
			t.Errorf("%s: the daemon is to read %q, want %q", name, got, want)
		}
	}
}

// A daemon that does not listen is none only if nobody has the data root to himself.
func TestUnheardDaemon(t *testing.T) {
	t.Parallel()
	for doing, want := range map[string]string{"": "not running\n", "stopping": "stopping, pid 4711; it does not listen on "} {
		b := newBench(t)
		b.app.DaemonHolder = func(string) (api.Holder, error) {
			return api.Holder{PID: 4711, Doing: doing, Held: doing != ""}, nil
		}
		status := agency.ExitOK
		if doing == "" {
			status = agency.ExitNotFound
		}
		if got := b.run("daemon", "status"); got != status || !strings.HasPrefix(b.out.String(), want) {
			t.Errorf("%q: got %d and %q", doing, got, b.out.String())
		}
	}
}

// A stop returns when the daemon has let go of the data root, also of one that was ending already, and not later when there is another
// one by then.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	mine, next := api.Holder{PID: 4711, Doing: api.DoingStop, Held: true}, api.Holder{PID: 4712, Doing: api.DoingStart, Held: true}
	none := api.Holder{PID: 4711, Doing: api.DoingStop}
	for name, test := range map[string]struct {
		listens bool
		holders []api.Holder // one after the other
		want    string
	}{
		"none":            {false, []api.Holder{none}, "not running\n"},
		"ending":          {false, []api.Holder{mine, mine, none}, "stopped\n"},
		"running":         {true, []api.Holder{mine, mine, none}, "stopped; 2 live runs going on\n"},
		"another by then": {true, []api.Holder{mine, mine, next}, "stopped; 2 live runs going on\n"},
	} {
		b := newBench(t)
		asked := 0
		b.app.DaemonHolder = func(string) (api.Holder, error) {
			asked++
			return test.holders[asked-1], nil
		}
		if test.listens {
			b.serve(always(api.DaemonStatusResponse{PID: mine.PID, LiveRuns: 2}, nil))
		}
		if got := b.run("daemon", "stop"); got != agency.ExitOK || b.out.String() != test.want || asked != len(test.holders) {
			t.Errorf("%s: got %d, %q and %q after %d looks", name, got, b.out.String(), b.err.String(), asked)
		}
	}
}

// Ctrl-C ends a stop that waits.
func TestStopGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.app.DaemonHolder = func(string) (api.Holder, error) {
		cancel()
		return api.Holder{PID: 4711, Doing: api.DoingStop, Held: true}, nil
	}
	if got := b.app.Main(ctx, []string{"daemon", "stop"}); got != agency.ExitInterrupted || b.out.Len() != 0 {
		t.Errorf("got %d and %q", got, b.out.String())
	}
}

// Who follows waits after an end that somebody asked for until there is another daemon, and after no other end; it tells once.
func TestFollowersWait(t *testing.T) {
	t.Parallel()
	stopping, stopped := api.Holder{PID: 4711, Doing: api.DoingStop, Held: true}, api.Holder{PID: 4711, Doing: api.DoingStop}
	begun, runs := api.Holder{PID: 4712, Doing: api.DoingStart, Held: true}, api.Holder{PID: 4712, Doing: api.DoingServe, Held: true}
	restoring := api.Holder{PID: 4713, Doing: api.DoingRestore, Held: true}
	for name, holders := range map[string][]api.Holder{
		"killed":        {{PID: 4711, Doing: api.DoingServe}},
		"stopped":       {stopping, stopped, stopped, begun, runs},
		"restored":      {stopped, restoring, begun, runs},
		"next one died": {stopped, begun, {PID: 4712, Doing: api.DoingStart}},
	} {
		b := newBench(t)
		asked := 0
		b.app.DaemonHolder = func(string) (api.Holder, error) {
			asked++
			return holders[asked-1], nil
		}
		if err := b.app.AwaitNext(t.Context(), b.home); err != nil || asked != len(holders) {
			t.Errorf("%s: %v after %d looks", name, err, asked)
		}
		if told := strings.Count(b.err.String(), "the daemon was stopped"); told != min(1, len(holders)-1) {
			t.Errorf("%s: told %d times: %q", name, told, b.err.String())
		}
	}
}
