package inspect_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
	"agency/internal/cli/command"
)

// An agent's text is printed without its control characters.
func TestHostileRunsAreShownSafely(t *testing.T) {
	t.Parallel()
	evil := "ev\x1b]0;x\x07il\x1b[2J\u202e\r\n界"
	r := clitest.SomeRun("fix-login", agency.NeedsInput, evil)
	r.Problem, r.Branch, r.Error = evil, evil, evil
	word := agency.Contract{Status: agency.ReportedNeedsInput, Summary: evil, Questions: []string{evil}, Blockers: []string{evil}, HowToTest: evil, Risks: []string{evil}}
	for op, answer := range map[string]any{
		"ls": api.ListRunsResponse{Runs: []api.Run{r}}, "show": api.ShowRunResponse{
			Run: r, Contract: &word, Attempts: []agency.Attempt{{Error: evil}}, GitProblem: evil, Inputs: []agency.Input{{Path: evil}},
		},
		"wait":   api.WaitRunsResponse{Runs: []api.Run{r}},
		"rm":     api.RemoveRunResponse{Branch: evil, Warnings: []string{evil}},
		"doctor": api.DoctorResponse{Checks: []api.Check{{Level: "ok", Text: evil, Fix: evil}}},
		"resume": api.ResumeRunResponse{Run: r, Note: evil},
		"run":    api.RunResponse{Run: r},
	} {
		b := clitest.New(t)
		b.Serve(clitest.Always(answer, nil))
		args := []string{op}
		switch op {
		case "show", "wait", "rm", "resume":
			args = append(args, "fix-login")
		case "run":
			args = append(args, "--prompt", "x")
		}
		b.Run(args...)
		if b.Out.Len() == 0 {
			t.Errorf("%s: got nothing, %q", op, b.Err.String())
		}
		clitest.CheckSafe(t, b.Out.String(), "\n")
		clitest.CheckSafe(t, b.Err.String(), "\n")
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	const bytes = "\x1b[31mred\x1b[0m\r\n\xff"
	b := clitest.New(t)
	b.Serve(clitest.Always(bytes, nil))
	if got := b.Run("logs", "x"); got != agency.ExitOK || b.Out.String() != bytes {
		t.Errorf("into a pipe: got %d and %q", got, b.Out.String())
	}
	if got := b.Run("logs", "x", "--json", "--stderr"); got != agency.ExitOK {
		t.Errorf("got %d", got)
	}
	data, _ := b.Envelope().Data.(map[string]any)
	if data["stream"] != "stderr" || data["run"] != "x" || data["text"] != "\x1b[31mred\x1b[0m\r\n\ufffd" {
		t.Errorf("got %q", data)
	}
	b.Run("logs", "x", "--json", "-f")
	if e := b.Envelope(); e.Error == nil || e.Error.Code != agency.CodeUsage {
		t.Errorf("got %+v", e)
	}
}

func TestListAsksForItsRepository(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want func(home string) api.ListRunsRequest
	}{
		{nil, func(home string) api.ListRunsRequest { return api.ListRunsRequest{Dir: home} }},
		{[]string{"--all-repos", "--all"}, func(string) api.ListRunsRequest { return api.ListRunsRequest{Removed: true} }},
		{[]string{"--repo", "sub"}, func(home string) api.ListRunsRequest {
			return api.ListRunsRequest{Dir: filepath.Join(home, "sub")}
		}},
		{[]string{"--status", "needs-input,failed", "--status", "ready_for_review", "--tag", "x"}, func(home string) api.ListRunsRequest {
			return api.ListRunsRequest{Dir: home, Status: []string{"needs-input", "failed", "ready_for_review"}, Tag: "x"}
		}},
	} {
		b := clitest.New(t)
		d := b.Serve(clitest.Always(api.ListRunsResponse{Runs: []api.Run{}}, nil))
		b.Run(append([]string{"ls"}, test.args...)...)
		var got api.ListRunsRequest
		if err := json.Unmarshal(d.Last, &got); err != nil {
			t.Fatal(err)
		}
		want := test.want(b.Home)
		want.Fields, want.Order = command.RunFields(command.PipeColumns()...), api.OrderByNeed
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.args, diff)
		}
	}
	// Outside of every repository, ls lists all runs.
	b := clitest.New(t)
	d := b.Serve(func(_ string, body []byte) (any, error) {
		if strings.Contains(string(body), b.Home) {
			return nil, agency.Errorf(agency.CodeNotGitRepo, "no repository")
		}
		return api.ListRunsResponse{Runs: []api.Run{}}, nil
	})
	if got := b.Run("ls"); got != agency.ExitOK || len(d.Asked) != 2 || !strings.Contains(b.Err.String(), "no runs here") {
		t.Errorf("got %d, asked %q, %q", got, d.Asked, b.Err.String())
	}
	if got := b.Run("ls", "--repo", "."); got != agency.ExitError {
		t.Errorf("a repository that was named: got %d", got)
	}
}
