package codex

import (
	"path/filepath"

	"agency"
	"agency/internal/harness/agent"
)

// state returns where Codex keeps its state. It files conversations by day and not by folder, so the agent
// reads those of other projects too.
func state(env agency.Environ, _ string) agency.SandboxState {
	dir := env.Lookup("CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(env.Lookup("HOME"), ".codex")
	}
	s := agency.SandboxState{Write: []string{filepath.Join(dir, "sessions")}, Env: []string{"CODEX_*", "OPENAI_*"}}
	s.Hosts = append([]string{"api.openai.com", "auth.openai.com", "chatgpt.com"}, agent.Hosts(env, "OPENAI_BASE_URL")...)
	for _, name := range []string{"auth.json", "config.toml", "AGENTS.md", "prompts", "skills", "rules"} {
		s.Read = append(s.Read, filepath.Join(dir, name))
	}
	return s
}
