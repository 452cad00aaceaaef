package claude

import (
	"path/filepath"
	"regexp"
	"sync"

	"agency"
	"agency/internal/harness/agent"
)

// folderRule matches what Claude Code replaces by a dash in the name of a folder for a project.
var folderRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-zA-Z0-9]`) })

// state returns where Claude Code keeps its state. Of the conversations it gets those of the
// worktree alone. It rewrites the file with its settings of all projects, so it gets a copy.
func state(env agency.Environ, worktree string) agency.SandboxState {
	home, dir := env.Lookup("HOME"), env.Lookup("CLAUDE_CONFIG_DIR")
	global := filepath.Join(dir, ".claude.json")
	if dir == "" {
		dir, global = filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json")
	}
	s := agency.SandboxState{
		Write: []string{filepath.Join(dir, "projects", folderRule().ReplaceAllString(worktree, "-")), filepath.Join(dir, "sessions")},
		Copy:  []string{global},
		Set:   []string{"IS_SANDBOX=1"}, // as root it skips permissions in a sandbox only
		Env:   []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "BASH_*_TIMEOUT_MS", "MAX_THINKING_TOKENS", "MCP_TIMEOUT"},
	}
	s.Hosts = append([]string{"api.anthropic.com", "console.anthropic.com", "platform.claude.com"}, agent.Hosts(env, "ANTHROPIC_BASE_URL")...)
	for _, name := range []string{".credentials.json", "settings.json", "CLAUDE.md", "agents", "commands", "skills", "hooks", "plugins"} {
		s.Read = append(s.Read, filepath.Join(dir, name))
	}
	return s
}
