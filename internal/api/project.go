package api

import "agency"

// InitRepoRequest asks for what init writes into the repository of Dir.
type InitRepoRequest struct {
	Dir     string         `json:"dir"`
	Answers InitAnswers    `json:"answers,omitzero"`
	Archive bool           `json:"archive,omitempty"` // with the standard layout: move what is in ai_docs/scout to scout_outputs/archive
	Force   bool           `json:"force,omitempty"`   // write agency.toml and the templates anew, also where they were changed
	DryRun  bool           `json:"dry_run,omitempty"` // write nothing
	Trust   bool           `json:"trust,omitempty"`   // trust what is written, unless it holds something untrusted already
	Env     agency.Environ `json:"env,omitempty"`     // the caller's environment
	Config  string         `json:"config,omitempty"`  // the caller's configuration file; empty for the default one
}

// InitAnswers are keys of agency.toml; null leaves one as it is.
type InitAnswers struct {
	Type      *string `json:"type,omitempty"`
	Sandbox   *string `json:"sandbox,omitempty"`
	Layout    *string `json:"layout,omitempty"`
	Parallel  *bool   `json:"parallel,omitempty"`
	AgentRuns *bool   `json:"agent_runs,omitempty"`
	Runner    *string `json:"runner,omitempty"`
	Base      *string `json:"base,omitempty"`
	IDFormat  *string `json:"id_format,omitempty"`
	Setup     *string `json:"setup,omitempty"`
}

// InitRepoResponse says what init did, or with DryRun would do.
type InitRepoResponse struct {
	Root     string        `json:"root"`
	DryRun   bool          `json:"dry_run"`
	Settings []InitSetting `json:"settings"` // as they are then
	Changes  []InitChange  `json:"changes"`
	Keys     []string      `json:"keys"`      // what changes in an agency.toml that was there, a line each
	ClaudeMD string        `json:"claude_md"` // created, exists
	Scouts   []string      `json:"scouts"`    // names in ai_docs/scout, which the standard layout can archive
	// Wants is what new worktrees get, in words; empty for nothing. Trusted says that it is trusted, and TrustNote why not.
	Wants     string `json:"wants"`
	Trusted   bool   `json:"trusted"`
	TrustNote string `json:"trust_note"`
	// SetupNote says why the setup cannot succeed as it is, and what to do; empty when nothing is known.
	SetupNote string `json:"setup_note"`
}

// InitSetting is one answer and where it comes from: answer, agency.toml, default.
type InitSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// InitChange is one path of the repository. Action is created, changed, exists, moved, or kept (something is in its way).
type InitChange struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	From   string `json:"from"`   // of a move
	Backup string `json:"backup"` // where the old content went
	Diff   string `json:"diff"`   // with DryRun: from the old content to the new one, as a patch; empty where none is written
}

// TrustRequest asks what the repository of Dir wants done in the worktree of a new run, or in that of an existing one.
type TrustRequest struct {
	Dir    string         `json:"dir,omitempty"`
	Base   string         `json:"base,omitempty"` // what the run would start from; empty is what it would be without a word
	Run    string         `json:"run,omitempty"`  // instead: what a resume of this run would do
	Env    agency.Environ `json:"env,omitempty"`
	Config string         `json:"config,omitempty"`
}

// TrustResponse is what is wanted and whether it is trusted.
type TrustResponse struct {
	Root  string            `json:"root"`
	Trust agency.SetupTrust `json:"trust"`
}

// GrantTrustRequest trusts what was shown with this hash.
type GrantTrustRequest struct {
	Of   TrustRequest `json:"of"`
	Hash string       `json:"hash"`
}

// RevokeTrustRequest names a repository by a folder in it.
type RevokeTrustRequest struct {
	Dir string `json:"dir"`
}

// RevokeTrustResponse says how many different things had been trusted.
type RevokeTrustResponse struct {
	Root    string `json:"root"`
	Revoked int    `json:"revoked"`
}
