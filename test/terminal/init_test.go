package terminal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agency/test/fixture"
)

// A user answers some questions, corrects an answer, takes the defaults of the rest, sees what
// would be written and agrees.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	inRepo := func(name string) string { return filepath.Join(f.Repo, name) }
	for name, text := range map[string]string{"go.mod": "module example\n", "ai_docs/scout/old.json": "{}"} {
		if err := os.MkdirAll(filepath.Dir(inRepo(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(inRepo(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	level := "worktree"
	if _, err := exec.LookPath("bwrap"); err == nil {
		level = "process" // which init recommends where it works
	}
	c := agencyIn(t, f, 100, 30, "init", "--base", "main")
	for _, step := range []struct{ question, answer string }{
		{"Project type [go]: ", ""},
		{"Sandbox level (worktree, process, container) [" + level + "]: ", "virtual"},
		{"not \"virtual\"", ""},
		{"or a pattern) [mmdd-slug-hash]: ", "{hash}-{slug}"},
		{"your own) [claude_code]: ", "shel"},
		{"no runner named \"shel\"", "shell"},
		{"Several runs at the same time? [yes]: ", "maybe"},
		{"neither yes nor no", "n"},
		{"(minimal, standard) [minimal]: ", "standard"},
		{"link for every run? [no]: ", "y"},
		{"(a file of the repository, or none) [none]: ", "none"},
		{"ai_docs/scout holds old.json.", ""},
		{"scout_outputs/archive? [no]: ", "yes"},
		{"Write this? [yes]: ", ""},
	} {
		c.shows(step.question)
		if step.question == "ai_docs/scout holds old.json." {
			continue // the question itself follows
		}
		c.types(step.answer + "\r")
	}
	c.ends(0)
	if out := c.wrote(); strings.Contains(out, "Base branch") || !strings.Contains(out, "claude_md: created") {
		t.Errorf("got %q", out)
	}
	data, err := os.ReadFile(inRepo("agency.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`type = "go"`, `sandbox = "` + level + `"`, `layout = "standard"`, "parallel = false", "agent_runs = true", `runner = "shell"`, `base = "main"`, `format = "{hash}-{slug}"`,
	} {
		if !strings.Contains(string(data), "\n"+want+"\n") {
			t.Errorf("%s is not in:\n%s", want, data)
		}
	}
	if _, err := os.Stat(inRepo("scout_outputs/archive/old.json")); err != nil {
		t.Error(err)
	}
	declines(t, f, data)
}

// declines checks that a user who declines at the end, or leaves, has written nothing over data.
func declines(t *testing.T, f *fixture.Fixture, data []byte) {
	t.Helper()
	for name, end := range map[string]struct {
		keys   string
		status int
	}{
		"no": {"no\r", 0}, "end of input": {"\x04", 2}, "interrupt": {"\x03", 130},
	} {
		c := agencyIn(t, f, 100, 30, "init", "--type", "rust", "--sandbox", "worktree", "--id-format", "{hash}", "--base", "main", "--runner", "shell",
			"--parallel", "--layout", "standard", "--agent-runs", "--setup", "x.sh")
		c.shows("Write this? [yes]: ")
		c.types(end.keys)
		c.ends(end.status)
		if again, err := os.ReadFile(filepath.Join(f.Repo, "agency.toml")); err != nil || string(again) != string(data) {
			t.Errorf("%s: got %v and\n%s", name, err, again)
		}
	}
}
