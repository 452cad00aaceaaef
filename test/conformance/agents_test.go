package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/config"
	"agency/internal/harness"
)

// agent is one of the real programs.
type agent struct {
	runner  string // as agency calls it
	program string
	setup
}

// setup is what tests have to know of an agent.
type setup struct {
	// home makes a home of its own for the agent, in which the repository is trusted and the model is the one at url,
	// and returns the environment that leads there.
	home func(t *testing.T, dir, repo, url string) []string
	// asks are the arguments of a run with which the agent asks before it runs a command.
	asks []string
	// noInput is set for a program that reads no task from its standard input: its model reads it.
	noInput bool
}

// setups are those of the agents that agency knows.
var setups = map[agency.RunnerKind]setup{
	"claude_code": {home: claudeHome},
	"codex":       {home: codexHome, asks: []string{"--", "-c", `approval_policy="on-request"`, "-c", `sandbox_mode="read-only"`}},
	"gemini":      {home: geminiHome},
	"opencode":    {home: opencodeHome},
	"copilot":     {home: copilotHome, noInput: true},
}

// agents are the programs that agency knows, as scripts/agents.sh installed them into a folder.
func agents(t *testing.T, dir string) []agent {
	t.Helper()
	var all []agent
	for _, a := range harness.Agents() {
		known, ok := setups[a.Kind]
		if !ok {
			t.Fatalf("%s has no home in agents_test.go", a.Kind)
		}
		all = append(all, agent{runner: string(a.Kind), program: filepath.Join(dir, "node_modules", ".bin", a.Program), setup: known})
	}
	return all
}

// runners are the agents that agency knows.
func runners() []string {
	var names []string
	for _, a := range harness.Agents() {
		names = append(names, string(a.Kind))
	}
	return names
}

// table is where the configuration has the agent, below "runners".
func (a agent) table() string {
	if _, custom := config.ParseRunner(a.runner); custom != "" {
		return "custom." + custom
	}
	return a.runner
}

const key = "scripted-model-needs-no-key"

func claudeHome(t *testing.T, dir, repo, url string) []string {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true,
		"theme":                  "dark",
		// A key from the environment is asked about once; it is known by its last 20 characters.
		"customApiKeyResponses": map[string]any{"approved": []string{key[len(key)-20:]}},
		"projects":              map[string]any{repo: map[string]any{"hasTrustDialogAccepted": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "claude", ".claude.json"), string(config))
	return []string{
		"CLAUDE_CONFIG_DIR=" + filepath.Join(dir, "claude"),
		"ANTHROPIC_BASE_URL=" + url,
		"ANTHROPIC_API_KEY=" + key,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
}

func codexHome(t *testing.T, dir, repo, url string) []string {
	t.Helper()
	// The sandbox is off because not every kernel that runs tests has what it needs. The two tables at the end keep a
	// dialog about newer models away, which would take the first Enter.
	write(t, filepath.Join(dir, "codex", "config.toml"), fmt.Sprintf(`
model = "gpt-5.5"
model_provider = "scripted"
sandbox_mode = "danger-full-access"
approval_policy = "never"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."%s"]
trust_level = "trusted"

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"

[tui.model_availability_nux]
"gpt-6.1-sol" = 1
`, url, repo))
	return []string{"CODEX_HOME=" + filepath.Join(dir, "codex"), "SCRIPTED_KEY=" + key}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
