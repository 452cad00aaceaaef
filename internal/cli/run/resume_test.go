package run_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// Ctrl-C while the last lost run is resumed is not a failure of that run.
func TestResumeLostCutOff(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := clitest.SomeRun("fix-login", agency.LabelFailed, "")
	lost.ErrorCode = agency.CodeRunnerDisappeared
	b.Serve(func(op string, _ []byte) (any, error) {
		if op == api.ListRuns.Name {
			return api.ListRunsResponse{Runs: []api.Run{lost}}, nil
		}
		cancel()
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), nil
	})
	if got := b.App.Main(ctx, []string{"resume", "--all-lost", "--yes"}); got != agency.ExitInterrupted || b.Out.Len()+b.Err.Len() > 0 {
		t.Errorf("exit %d, %q, %q", got, b.Out.String(), b.Err.String())
	}
}

// A variable without a value gets its value from the caller's environment; agency resume sends such
// variables apart from the environment.
func TestResumeEnv(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	b.App.Env = append(b.App.Env, "TOKEN=a=b", "MODE=")
	d := b.Serve(clitest.Always(api.ResumeRunResponse{Run: clitest.SomeRun("fix-login", agency.Working, "")}, nil))
	if exit := b.Run("resume", "fix-login", "--env", "TOKEN", "--env", "MODE", "--env", "X=1"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
	}
	var req api.ResumeRunRequest
	if err := json.Unmarshal(d.Last, &req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TOKEN=a=b", "MODE=", "X=1"}, req.Set); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if exit := b.Run("resume", "fix-login", "--env", "NOPE"); exit != agency.ExitUsage || !strings.Contains(b.Err.String(), "--env NOPE=VALUE") {
		t.Errorf("exit %d: %s", exit, b.Err.String())
	}
}
