package run_test

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

// fullSpec has every member of a spec.
const fullSpec = `{
	"repo": "/spec/repo", "base_ref": "main", "new_branch": "spec/branch", "name": "spec-name", "type": "plan", "tags": ["a"],
	"runner": {"kind": "custom", "name": "aider", "model": "m1", "args": ["--x"]}, "prompt": {"path": "TASK.md"},
	"inputs": [{"path": "in.md"}], "limits": {"max_minutes": 5}, "env": ["A=1"], "headless": true}`

// fromSpec is fullSpec with a change.
func fromSpec(change func(s *agency.Spec)) agency.Spec {
	s := agency.Spec{
		Repo: "/spec/repo", BaseRef: "main", Branch: "spec/branch", Name: "spec-name", Type: "plan", Tags: []string{"a"},
		Runner: agency.SpecRunner{Kind: agency.Custom, Name: "aider", Model: "m1", Args: []string{"--x"}},
		Prompt: agency.SpecPrompt{Path: "TASK.md"}, Inputs: []agency.SpecInput{{Path: "in.md"}},
		Limits: agency.SpecLimits{MaxMinutes: 5}, Env: []string{"A=1"}, Headless: new(true),
	}
	change(&s)
	return s
}

// Flags override the spec.
func TestMaterialise(t *testing.T) {
	t.Parallel()
	task := agency.SpecPrompt{Text: "task"}
	checkSpecs(t, map[string]materialised{
		"spec alone":      {fullSpec, nil, fromSpec(func(*agency.Spec) {})},
		"repo":            {fullSpec, []string{"--repo", "/r"}, fromSpec(func(s *agency.Spec) { s.Repo = "/r" })},
		"base":            {fullSpec, []string{"--base", "v1"}, fromSpec(func(s *agency.Spec) { s.BaseRef = "v1" })},
		"branch":          {fullSpec, []string{"--branch", "b"}, fromSpec(func(s *agency.Spec) { s.Branch = "b" })},
		"name":            {fullSpec, []string{"--name", "n"}, fromSpec(func(s *agency.Spec) { s.Name = "n" })},
		"no name":         {fullSpec, []string{"--name", ""}, fromSpec(func(s *agency.Spec) { s.Name = "" })},
		"type":            {fullSpec, []string{"--type", "build"}, fromSpec(func(s *agency.Spec) { s.Type = "build" })},
		"model":           {fullSpec, []string{"--model", "m2"}, fromSpec(func(s *agency.Spec) { s.Runner.Model = "m2" })},
		"runner":          {fullSpec, []string{"--runner", "codex"}, fromSpec(func(s *agency.Spec) { s.Runner.Kind, s.Runner.Name = "codex", "" })},
		"custom runner":   {fullSpec, []string{"--runner", "mine"}, fromSpec(func(s *agency.Spec) { s.Runner.Name = "mine" })},
		"no limit":        {fullSpec, []string{"--max-minutes", "0"}, fromSpec(func(s *agency.Spec) { s.Limits.MaxMinutes = 0 })},
		"with a terminal": {fullSpec, []string{"--headless=false"}, fromSpec(func(s *agency.Spec) { s.Headless = new(false) })},
		"preset":          {fullSpec, []string{"--preset", "worker"}, fromSpec(func(s *agency.Spec) { s.Preset = "worker" })},
		"stalled":         {fullSpec, []string{"--stall-threshold", "30m"}, fromSpec(func(s *agency.Spec) { s.Limits.StallAfterMS = 1_800_000 })},
		"stuck":           {fullSpec, []string{"--stuck-after", "10"}, fromSpec(func(s *agency.Spec) { s.Limits.StuckIntervals = 10 })},
		"sandbox":         {fullSpec, []string{"--sandbox", "process", "--network", "none"}, fromSpec(func(s *agency.Spec) { s.Sandbox, s.Network = "process", "none" })},
		"no setup":        {fullSpec, []string{"--no-setup"}, fromSpec(func(s *agency.Spec) { s.NoSetup = true })},
		"prompt":          {fullSpec, []string{"--prompt", "task"}, fromSpec(func(s *agency.Spec) { s.Prompt = task })},
		"prompt file":     {fullSpec, []string{"--prompt-file", "task.md"}, fromSpec(func(s *agency.Spec) { s.Prompt = agency.SpecPrompt{Text: "from the file\n"} })},
	})
}

// Without a file, the flags are the spec.
func TestMaterialiseFlags(t *testing.T) {
	t.Parallel()
	task := agency.SpecPrompt{Text: "task"}
	checkSpecs(t, map[string]materialised{
		"nothing":       {"", []string{"--prompt", "task"}, agency.Spec{Prompt: task}},
		"called custom": {"", []string{"--prompt", "task", "--runner", "custom"}, agency.Spec{Prompt: task, Runner: agency.SpecRunner{Kind: agency.Custom, Name: "custom"}}},
		"flags alone":   {"", []string{"--prompt", "task", "--name", "n", "--stall-threshold", "1m"}, agency.Spec{Prompt: task, Name: "n", Limits: agency.SpecLimits{StallAfterMS: 60_000}}},
	})
}

// Lists of flags come after those of the spec.
func TestMaterialiseLists(t *testing.T) {
	t.Parallel()
	checkSpecs(t, map[string]materialised{
		"tags":      {fullSpec, []string{"--tag", "b", "--tag", "c,d"}, fromSpec(func(s *agency.Spec) { s.Tags = []string{"a", "b", "c,d"} })},
		"env":       {fullSpec, []string{"--env", "B=x,y", "--env", "A=2"}, fromSpec(func(s *agency.Spec) { s.Env = []string{"A=1", "B=x,y", "A=2"} })},
		"arguments": {fullSpec, []string{"--", "--prompt", "y"}, fromSpec(func(s *agency.Spec) { s.Runner.Args = []string{"--x", "--prompt", "y"} })},
		"inputs": {fullSpec, []string{"--input", "docs/a.md", "--input", "/abs"}, fromSpec(func(s *agency.Spec) {
			s.Inputs = []agency.SpecInput{{Path: "in.md"}, {Path: "HOME/docs/a.md", Mode: "read"}, {Path: "/abs", Mode: "read"}}
		})},
	})
}

// materialised is a spec file, empty for none, with flags, and what the daemon is asked for.
type materialised struct {
	spec string
	args []string
	want agency.Spec
}

func checkSpecs(t *testing.T, tests map[string]materialised) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clitest.New(t)
			d := b.Serve(clitest.Always(api.RunResponse{Run: clitest.SomeRun("", agency.Working, "")}, nil))
			write(t, filepath.Join(b.Home, "spec.json"), test.spec)
			write(t, filepath.Join(b.Home, "task.md"), "from the file\n")
			args := []string{"run"}
			if test.spec != "" {
				args = append(args, "--spec", "spec.json")
			}
			if got := b.Run(append(args, test.args...)...); got != agency.ExitOK {
				t.Fatalf("got %d: %s", got, b.Err.String())
			}
			var req api.CreateRunRequest
			if err := json.Unmarshal(d.Last, &req); err != nil {
				t.Fatal(err)
			}
			for i := range test.want.Inputs {
				test.want.Inputs[i].Path = strings.Replace(test.want.Inputs[i].Path, "HOME", b.Home, 1)
			}
			if diff := cmp.Diff(test.want, req.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if req.Dir != b.Home || !slices.Equal(req.Env, b.App.Env) || b.Out.String() != "1122-fix-login-a1b2\n" {
				t.Errorf("got %+v and %q", req, b.Out.String())
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
			b := clitest.New(t)
			write(t, filepath.Join(b.Home, "task.md"), "task")
			write(t, filepath.Join(b.Home, "typo.json"), "{\n  \"promt\": {}}")
			d := b.Serve(clitest.Always(nil, clitest.ErrBoom))
			b.Run(append([]string{"--json", "run"}, test.args...)...)
			e := b.Envelope()
			if e.Error == nil || e.Error.Code != test.code || len(d.Asked) != 0 {
				t.Errorf("got %+v, asked %q", e.Error, d.Asked)
			}
			if name == "unknown key" && !strings.HasPrefix(e.Error.Message, `typo.json:2:3: unknown key "promt"; did you mean "prompt"?`) {
				t.Errorf("got %q", e.Error.Message)
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
