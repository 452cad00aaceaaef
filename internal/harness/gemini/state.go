package gemini

import (
	"path/filepath"

	"agency"
	"agency/internal/harness/agent"
)

// state returns where the Gemini CLI keeps its state. It files conversations by the name of a
// folder, so the agent reads those of other projects too.
func state(env agency.Environ, _ string) agency.SandboxState {
	dir := filepath.Join(env.Lookup("HOME"), ".gemini")
	if home := env.Lookup("GEMINI_CLI_HOME"); home != "" {
		dir = filepath.Join(home, ".gemini")
	}
	s := agency.SandboxState{Write: []string{filepath.Join(dir, "tmp")}, Env: []string{"GEMINI_*", "GOOGLE_*"}}
	s.Hosts = append([]string{
		"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "aiplatform.googleapis.com", "oauth2.googleapis.com",
	}, agent.Hosts(env, "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL")...)
	for _, name := range []string{
		"settings.json", "oauth_creds.json", "google_accounts.json", "installation_id", "trustedFolders.json", "GEMINI.md", "commands", "extensions", "policies", "skills",
	} {
		s.Read = append(s.Read, filepath.Join(dir, name))
	}
	return s
}
