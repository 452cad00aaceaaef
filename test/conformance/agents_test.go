package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agency/internal/config"
)

// agent is one of the real programs.
type agent struct {
	runner  string // as agency calls it
	program string
	// home makes a home of its own for the agent, in which the repository is trusted and the model is the one at url,
	// and returns the environment that leads there.
	home func(t *testing.T, dir, repo, url string) []string
}

// agents are the programs that agency knows, as scripts/agents.sh installed them into a folder.
func agents(dir string) []agent {
	bin := filepath.Join(dir, "node_modules", ".bin")
	return []agent{
		{runner: "claude_code", program: filepath.Join(bin, "claude"), home: claudeHome},
		{runner: "codex", program: filepath.Join(bin, "codex"), home: codexHome},
		{runner: "opencode", program: filepath.Join(bin, "opencode"), home: opencodeHome},
		{runner: "gemini", program: filepath.Join(bin, "gemini"), home: geminiHome},
	}
}

// copilot is GitHub Copilot CLI, of which agency knows nothing: a custom runner.
func copilot(dir string) agent {
	return agent{runner: "copilot", program: filepath.Join(dir, "node_modules", ".bin", "copilot"), home: func(_ *testing.T, _, _, url string) []string {
		return []string{ // no folder is trusted
			"COPILOT_CACHE_HOME=" + filepath.Join(dir, "copilot"), "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=" + key, "COPILOT_MODEL=scripted",
		}
	}}
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
