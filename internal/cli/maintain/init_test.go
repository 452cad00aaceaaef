package maintain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// An empty setup is an answer: the repository wants none.
func TestInitTakesSetupAway(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	d := b.Serve(clitest.Always(api.InitRepoResponse{DryRun: true, SetupNote: "setup.sh is not there", Changes: []api.InitChange{
		{Path: "agency.toml", Action: "changed", Diff: "--- a\n+++ b\n@@ -1 +0,0 @@\n-setup = \"\x1b[31m\"\n"},
	}}, nil))
	if exit := b.Run("init", "--setup", "", "--dry-run"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.Err.String())
	}
	var req api.InitRepoRequest
	if err := json.Unmarshal(d.Last, &req); err != nil || req.Answers.Setup == nil || *req.Answers.Setup != "" {
		t.Errorf("asked for %+v, %v", req.Answers, err)
	}
	if want := "agency.toml: changed\n--- a\n+++ b\n@@ -1 +0,0 @@\n-setup = \"\"\n"; b.Out.String() != want || !strings.Contains(b.Err.String(), "note: setup.sh is not there") {
		t.Errorf("got %q and %q", b.Out.String(), b.Err.String())
	}
}
