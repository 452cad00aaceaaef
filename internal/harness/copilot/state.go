package copilot

import (
	"cmp"
	"path/filepath"

	"agency"
	"agency/internal/harness/agent"
)

// state returns where Copilot keeps its state. It files conversations by id and not by folder, so the agent
// reads those of other projects too. It replaces its configuration by a rename when it begins, and
// ends without a word when it cannot. It unpacks its program into a cache, from which the user
// runs it too.
func state(env agency.Environ, _ string) agency.SandboxState {
	dir, home := folder(env), env.Lookup("HOME")
	s := agency.SandboxState{
		Own:   []string{dir},
		Write: []string{filepath.Join(dir, "session-state")},
		Env:   []string{"COPILOT_*"},
		Hosts: append([]string{"github.com", "api.github.com", "*.githubcopilot.com"}, agent.Hosts(env, "COPILOT_PROVIDER_BASE_URL")...),
		Copy:  []string{filepath.Join(dir, "config.json"), filepath.Join(dir, "settings.json")},
	}
	for _, name := range []string{"mcp-config.json", "permissions-config.json", "copilot-instructions.md", "instructions", "agents", "skills"} {
		s.Read = append(s.Read, filepath.Join(dir, name))
	}
	for _, cache := range []string{
		env.Lookup("COPILOT_PKG_CACHE_HOME"), env.Lookup("COPILOT_CACHE_HOME"), filepath.Join(cmp.Or(env.Lookup("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "copilot"), dir,
	} {
		// Copilot adds a missing version beside the others.
		marks, _ := filepath.Glob(filepath.Join(cache, "pkg", "*", "*", ".extraction-complete"))
		for _, mark := range marks {
			s.Read = append(s.Read, filepath.Dir(mark))
		}
	}
	return s
}
