package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// Flags win over the spec, the spec over nothing; lists are put together.
func TestMaterialise(t *testing.T) {
	t.Parallel()
	const full = `{
		"repo": "/spec/repo", "base_ref": "main", "new_branch": "spec/branch", "name": "spec-name", "type": "plan", "tags": ["a"],
		"runner": {"kind": "custom", "name": "aider", "model": "m1", "args": ["--x"]}, "prompt": {"path": "TASK.md"},
		"inputs": [{"path": "in.md"}], "limits": {"max_minutes": 5}, "env": ["A=1"], "headless": true}`
	fromSpec := func(change func(s *agency.Spec)) agency.Spec {
		s := agency.Spec{
			Repo: "/spec/repo", BaseRef: "main", Branch: "spec/branch", Name: "spec-name", Type: "plan", Tags: []string{"a"},
			Runner: agency.SpecRunner{Kind: agency.Custom, Name: "aider", Model: "m1", Args: []string{"--x"}},
			Prompt: agency.SpecPrompt{Path: "TASK.md"}, Inputs: []agency.SpecInput{{Path: "in.md"}},
			Limits: agency.SpecLimits{MaxMinutes: 5}, Env: []string{"A=1"}, Headless: new(true),
		}
		change(&s)
		return s
	}
	task := agency.SpecPrompt{Text: "task"}
	for name, test := range map[string]struct {
		spec string
		args []string
		want agency.Spec
	}{
		"nothing":         {"", []string{"--prompt", "task"}, agency.Spec{Prompt: task}},
		"spec alone":      {full, nil, fromSpec(func(*agency.Spec) {})},
		"repo":            {full, []string{"--repo", "/r"}, fromSpec(func(s *agency.Spec) { s.Repo = "/r" })},
		"base":            {full, []string{"--base", "v1"}, fromSpec(func(s *agency.Spec) { s.BaseRef = "v1" })},
		"branch":          {full, []string{"--branch", "b"}, fromSpec(func(s *agency.Spec) { s.Branch = "b" })},
		"name":            {full, []string{"--name", "n"}, fromSpec(func(s *agency.Spec) { s.Name = "n" })},
		"no name":         {full, []string{"--name", ""}, fromSpec(func(s *agency.Spec) { s.Name = "" })},
		"type":            {full, []string{"--type", "build"}, fromSpec(func(s *agency.Spec) { s.Type = "build" })},
		"model":           {full, []string{"--model", "m2"}, fromSpec(func(s *agency.Spec) { s.Runner.Model = "m2" })},
		"runner":          {full, []string{"--runner", "codex"}, fromSpec(func(s *agency.Spec) { s.Runner.Kind, s.Runner.Name = "codex", "" })},
		"custom runner":   {full, []string{"--runner", "mine"}, fromSpec(func(s *agency.Spec) { s.Runner.Name = "mine" })},
		"called custom":   {"", []string{"--prompt", "task", "--runner", "custom"}, agency.Spec{Prompt: task, Runner: agency.SpecRunner{Kind: agency.Custom, Name: "custom"}}},
		"no limit":        {full, []string{"--max-minutes", "0"}, fromSpec(func(s *agency.Spec) { s.Limits.MaxMinutes = 0 })},
		"with a terminal": {full, []string{"--headless=false"}, fromSpec(func(s *agency.Spec) { s.Headless = new(false) })},
		"prompt":          {full, []string{"--prompt", "task"}, fromSpec(func(s *agency.Spec) { s.Prompt = task })},
		"prompt file":     {full, []string{"--prompt-file", "task.md"}, fromSpec(func(s *agency.Spec) { s.Prompt = agency.SpecPrompt{Text: "from the file\n"} })},
		"tags":            {full, []string{"--tag", "b", "--tag", "c,d"}, fromSpec(func(s *agency.Spec) { s.Tags = []string{"a", "b", "c,d"} })},
		"env":             {full, []string{"--env", "B=x,y", "--env", "A=2"}, fromSpec(func(s *agency.Spec) { s.Env = []string{"A=1", "B=x,y", "A=2"} })},
		"arguments":       {full, []string{"--", "--prompt", "y"}, fromSpec(func(s *agency.Spec) { s.Runner.Args = []string{"--x", "--prompt", "y"} })},
		"inputs": {full, []string{"--input", "docs/a.md", "--input", "/abs"}, fromSpec(func(s *agency.Spec) {
			s.Inputs = []agency.SpecInput{{Path: "in.md"}, {Path: "HOME/docs/a.md", Mode: "read"}, {Path: "/abs", Mode: "read"}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d := b.serve(always(api.RunResponse{Run: someRun("", agency.Working, "")}, nil))
			write(t, filepath.Join(b.home, "spec.json"), test.spec)
			write(t, filepath.Join(b.home, "task.md"), "from the file\n")
			args := []string{"run"}
			if test.spec != "" {
				args = append(args, "--spec", "spec.json")
			}
			if got := b.run(append(args, test.args...)...); got != agency.ExitOK {
				t.Fatalf("got %d: %s", got, b.err.String())
			}
			var req api.CreateRunRequest
			if err := json.Unmarshal(d.last, &req); err != nil {
				t.Fatal(err)
			}
			for i := range test.want.Inputs {
				test.want.Inputs[i].Path = strings.Replace(test.want.Inputs[i].Path, "HOME", b.home, 1)
			}
			if diff := cmp.Diff(test.want, req.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if req.Dir != b.home || !slices.Equal(req.Env, b.app.Env) || b.out.String() != "1122-fix-login-a1b2\n" {
				t.Errorf("got %+v and %q", req, b.out.String())
			}
		})
	}
}

func TestBadRunRequests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code agency.Code
	}{
		"no task":          {nil, agency.CodeUsage},
		"words":            {[]string{"fix", "it"}, agency.CodeUsage},
		"words before --":  {[]string{"--prompt", "x", "word", "--", "y"}, agency.CodeUsage},
		"blank":            {[]string{"--prompt", "  "}, agency.CodeSpecInvalid},
		"empty stdin":      {[]string{"--prompt", "-"}, agency.CodeSpecInvalid},
		"twice":            {[]string{"--prompt", "x", "--prompt-file", "task.md"}, agency.CodeUsage},
		"not UTF-8":        {[]string{"--prompt", "\xff"}, agency.CodeSpecInvalid},
		"folder":           {[]string{"--prompt-file", "."}, agency.CodeInvalidPath},
		"device":           {[]string{"--prompt-file", "/dev/zero"}, agency.CodeInvalidPath},
		"no spec":          {[]string{"--spec", "nowhere"}, agency.CodeInvalidPath},
		"unknown key":      {[]string{"--spec", "typo.json"}, agency.CodeSpecInvalid},
		"attach and json":  {[]string{"--prompt", "x", "--attach"}, agency.CodeUsage},
		"minutes no digit": {[]string{"--prompt", "x", "--max-minutes", "ten"}, agency.CodeUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			write(t, filepath.Join(b.home, "task.md"), "task")
			write(t, filepath.Join(b.home, "typo.json"), "{\n  \"promt\": {}}")
			d := b.serve(always(nil, errBoom))
			b.run(append([]string{"--json", "run"}, test.args...)...)
			e := b.envelope()
			if e.Error == nil || e.Error.Code != test.code || len(d.asked) != 0 {
				t.Errorf("got %+v, asked %q", e.Error, d.asked)
			}
			if name == "unknown key" && !strings.HasPrefix(e.Error.Message, `typo.json:2:3: unknown key "promt"; did you mean "prompt"?`) {
				t.Errorf("got %q", e.Error.Message)
			}
		})
	}
}

// What an agent wrote does not reach the terminal as it is.
func TestHostileRunsAreShownSafely(t *testing.T) {
	t.Parallel()
	evil := "ev\x1b]0;x\x07il\x1b[2J\u202e\r\n界"
	r := someRun("fix-login", agency.NeedsInput, evil)
	r.Problem, r.Branch, r.Error = evil, evil, evil
	word := agency.Contract{Status: agency.SaysNeedsInput, Summary: evil, Questions: []string{evil}, Blockers: []string{evil}, HowToTest: evil, Risks: []string{evil}}
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
		b := newBench(t)
		b.serve(always(answer, nil))
		args := []string{op}
		switch op {
		case "show", "wait", "rm", "resume":
			args = append(args, "fix-login")
		case "run":
			args = append(args, "--prompt", "x")
		}
		b.run(args...)
		if b.out.Len() == 0 {
			t.Errorf("%s: got nothing, %q", op, b.err.String())
		}
		clitest.CheckSafe(t, b.out.String(), "\n")
		clitest.CheckSafe(t, b.err.String(), "\n")
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	const bytes = "\x1b[31mred\x1b[0m\r\n\xff"
	b := newBench(t)
	b.serve(always(bytes, nil))
	if got := b.run("logs", "x"); got != agency.ExitOK || b.out.String() != bytes {
		t.Errorf("into a pipe: got %d and %q", got, b.out.String())
	}
	if got := b.run("logs", "x", "--json", "--stderr"); got != agency.ExitOK {
		t.Errorf("got %d", got)
	}
	data, _ := b.envelope().Data.(map[string]any)
	if data["stream"] != "stderr" || data["run"] != "x" || data["text"] != "\x1b[31mred\x1b[0m\r\n\ufffd" {
		t.Errorf("got %q", data)
	}
	b.run("logs", "x", "--json", "-f")
	if e := b.envelope(); e.Error == nil || e.Error.Code != agency.CodeUsage {
		t.Errorf("got %+v", e)
	}
}

func TestListAsksForItsRepository(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want func(home string) api.ListRunsRequest
	}{
		{nil, func(home string) api.ListRunsRequest { return api.ListRunsRequest{Dir: home, Status: []string{}} }},
		{[]string{"--all-repos", "--all"}, func(string) api.ListRunsRequest { return api.ListRunsRequest{Removed: true, Status: []string{}} }},
		{[]string{"--repo", "sub"}, func(home string) api.ListRunsRequest {
			return api.ListRunsRequest{Dir: filepath.Join(home, "sub"), Status: []string{}}
		}},
		{[]string{"--status", "needs-input,failed", "--status", "ready_for_review", "--tag", "x"}, func(home string) api.ListRunsRequest {
			return api.ListRunsRequest{Dir: home, Status: []string{"needs-input", "failed", "ready_for_review"}, Tag: "x"}
		}},
	} {
		b := newBench(t)
		d := b.serve(always(api.ListRunsResponse{Runs: []api.Run{}}, nil))
		b.run(append([]string{"ls"}, test.args...)...)
		var got api.ListRunsRequest
		if err := json.Unmarshal(d.last, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want(b.home), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.args, diff)
		}
	}
	// Outside of every repository it is all runs.
	b := newBench(t)
	d := b.serve(func(_ string, body []byte) (any, error) {
		if strings.Contains(string(body), b.home) {
			return nil, agency.Errorf(agency.CodeNotGitRepo, "no repository")
		}
		return api.ListRunsResponse{Runs: []api.Run{}}, nil
	})
	if got := b.run("ls"); got != agency.ExitOK || len(d.asked) != 2 || !strings.Contains(b.err.String(), "no runs here") {
		t.Errorf("got %d, asked %q, %q", got, d.asked, b.err.String())
	}
	if got := b.run("ls", "--repo", "."); got != agency.ExitError {
		t.Errorf("a repository that was named: got %d", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A variable without a value has the one that it has here; agency resume sends them beside the environment.
func TestResumeEnv(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.app.Env = append(b.app.Env, "TOKEN=a=b", "MODE=")
	d := b.serve(always(api.ResumeRunResponse{Run: someRun("fix-login", agency.Working, "")}, nil))
	if exit := b.run("resume", "fix-login", "--env", "TOKEN", "--env", "MODE", "--env", "X=1"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.err.String())
	}
	var req api.ResumeRunRequest
	if err := json.Unmarshal(d.last, &req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TOKEN=a=b", "MODE=", "X=1"}, req.Set); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if exit := b.run("resume", "fix-login", "--env", "NOPE"); exit != agency.ExitUsage || !strings.Contains(b.err.String(), "--env NOPE=VALUE") {
		t.Errorf("exit %d: %s", exit, b.err.String())
	}
}

// An empty setup is an answer: there shall be none.
func TestInitTakesSetupAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.serve(always(api.InitRepoResponse{DryRun: true, SetupNote: "setup.sh is not there", Changes: []api.InitChange{
		{Path: "agency.toml", Action: "changed", Diff: "--- a\n+++ b\n@@ -1 +0,0 @@\n-setup = \"\x1b[31m\"\n"},
	}}, nil))
	if exit := b.run("init", "--setup", "", "--dry-run"); exit != agency.ExitOK {
		t.Fatalf("exit %d: %s", exit, b.err.String())
	}
	var req api.InitRepoRequest
	if err := json.Unmarshal(d.last, &req); err != nil || req.Answers.Setup == nil || *req.Answers.Setup != "" {
		t.Errorf("asked for %+v, %v", req.Answers, err)
	}
	if want := "agency.toml: changed\n--- a\n+++ b\n@@ -1 +0,0 @@\n-setup = \"\"\n"; b.out.String() != want || !strings.Contains(b.err.String(), "note: setup.sh is not there") {
		t.Errorf("got %q and %q", b.out.String(), b.err.String())
	}
}
