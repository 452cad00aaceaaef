package api

import "agency"

// InitRepoRequest asks for the files that init writes into the repository of Dir.
type InitRepoRequest struct {
	Dir     string         `json:"dir"`
	Answers InitAnswers    `json:"answers,omitzero"`
	Archive bool           `json:"archive,omitempty"` // with the standard layout: move the files of ai_docs/scout to scout_outputs/archive
	Force   bool           `json:"force,omitempty"`   // write agency.toml and the templates again, even if they were changed
	DryRun  bool           `json:"dry_run,omitempty"` // write nothing
	Trust   bool           `json:"trust,omitempty"`   // trust what is written, unless it contains something untrusted already
	Env     agency.Environ `json:"env,omitempty"`     // the caller's environment
	Config  string         `json:"config,omitempty"`  // the caller's configuration file; empty means the default one
}

// InitAnswers are keys of agency.toml; null leaves a key as it is.
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

// InitRepoResponse describes what init did, or with dry_run would do.
type InitRepoResponse struct {
	Root     string        `json:"root"`
	DryRun   bool          `json:"dry_run"`
	Settings []InitSetting `json:"settings"` // as they will be
	Changes  []InitChange  `json:"changes"`
	Keys     []string      `json:"keys"`      // the changes in an existing agency.toml, one per line
	ClaudeMD string        `json:"claude_md"` // created, exists
	Scouts   []string      `json:"scouts"`    // names in ai_docs/scout, which the standard layout can archive
	// Wants describes in words what new worktrees get; empty for nothing.
	Wants     string `json:"wants"`
	Trusted   bool   `json:"trusted"`    // the user trusts what new worktrees get
	TrustNote string `json:"trust_note"` // why the user does not trust it yet; empty when trusted
	// SetupNote explains why the setup cannot succeed as it is, and what to do; empty when no
	// problem is known.
	SetupNote string `json:"setup_note"`
	// SandboxProblem explains why agents cannot be kept apart on this machine by the sandbox level
	// process, and what to do; empty when they can.
	SandboxProblem string `json:"sandbox_problem"`
}

// InitSetting is one answer and its source: answer, agency.toml or default.
type InitSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// InitChange is one path of the repository. Action is created, changed, exists, moved, or kept
// (something is in its way).
type InitChange struct {
	Path   string `json:"path"`
	Action string `json:"action"`
	From   string `json:"from"`   // the old path of a moved file
	Backup string `json:"backup"` // path of the copy of the old content
	Diff   string `json:"diff"`   // with dry_run: the change as a patch; empty when no content is written
}

// TrustRequest asks what the repository of Dir wants done in the worktree of a new run, or in that
// of an existing one, or as checks.
type TrustRequest struct {
	Dir    string         `json:"dir,omitempty"`
	Base   string         `json:"base,omitempty"`   // what the run would start from; empty means the default
	Run    string         `json:"run,omitempty"`    // instead of a new run: what a resume of this run would do
	Target string         `json:"target,omitempty"` // instead of a new run: the checks of this branch
	Env    agency.Environ `json:"env,omitempty"`
	Config string         `json:"config,omitempty"`
}

// TrustResponse holds what the repository wants and whether the user trusts it.
type TrustResponse struct {
	Root  string            `json:"root"`
	Trust agency.SetupTrust `json:"trust"`
}

// GrantTrustRequest trusts what trust.show showed with this hash.
type GrantTrustRequest struct {
	Of   TrustRequest `json:"of"`
	Hash string       `json:"hash"`
}

// RevokeTrustRequest names a repository by a folder in it.
type RevokeTrustRequest struct {
	Dir string `json:"dir"`
}

// RevokeTrustResponse counts the different contents that were trusted.
type RevokeTrustResponse struct {
	Root    string `json:"root"`
	Revoked int    `json:"revoked"`
}

// RefsRequest names a repository by a folder in it.
type RefsRequest struct {
	Dir string `json:"dir"`
}

// RefsResponse holds what commands can name in a repository.
type RefsResponse struct {
	Names    []string    `json:"names"`    // branches, tags and branches of remotes, those with the newest commits first; at most 500
	Remotes  []string    `json:"remotes"`  // in the order of the configuration
	Landings []LandedRun `json:"landings"` // that can be taken back, the newest first; at most 50
}

// LandedRun is a landing that is in its target.
type LandedRun struct {
	ID     agency.LandingID `json:"id"`
	Run    string           `json:"run"` // its name or handle
	Target string           `json:"target"`
}

// LeaveReposRequest asks what agency keeps in repositories, and with Apply to remove it.
type LeaveReposRequest struct {
	Apply bool `json:"apply,omitempty"`
}

// LeaveReposResponse lists the repositories in which agency keeps something, by their roots.
type LeaveReposResponse struct {
	Repos []LeftRepo `json:"repos"`
}

// LeftRepo is a repository, and the work of runs that stays in it.
type LeftRepo struct {
	Root     string   `json:"root"`
	Branches []string `json:"branches"` // of runs
	Saved    []string `json:"saved"`    // refs below refs/agency
	Problem  string   `json:"problem"`  // why it could not be read or changed; empty when it could
}
