package api

import "agency"

// InitRepoRequest asks for the files that init writes into the repository of Dir.
type InitRepoRequest struct {
	Dir     string         `json:"dir"`               // a folder in the repository
	Answers InitAnswers    `json:"answers,omitzero"`  // the new settings in agency.toml
	Archive bool           `json:"archive,omitempty"` // with the standard layout: move the files of ai_docs/scout to scout_outputs/archive
	Force   bool           `json:"force,omitempty"`   // write agency.toml and the templates again, even if they were changed
	DryRun  bool           `json:"dry_run,omitempty"` // write nothing
	Trust   bool           `json:"trust,omitempty"`   // trust what is written, unless it contains something untrusted already
	Env     agency.Environ `json:"env,omitempty"`     // the caller's environment
	Config  string         `json:"config,omitempty"`  // the caller's configuration file; empty means the default one
}

// InitAnswers are keys of agency.toml; null leaves a key as it is.
type InitAnswers struct {
	Type      *string `json:"type,omitempty"`       // a word for readers, such as go or node
	Sandbox   *string `json:"sandbox,omitempty"`    // the least strict sandbox level of its runs: worktree, landlock, process or container
	Layout    *string `json:"layout,omitempty"`     // minimal, or standard with the folders specs, scout_outputs/archive and ai_docs
	Parallel  *bool   `json:"parallel,omitempty"`   // false allows one live run at a time
	AgentRuns *bool   `json:"agent_runs,omitempty"` // true keeps agent_runs, a folder with a link for each run
	Runner    *string `json:"runner,omitempty"`     // the kind of new runs; no custom one
	Base      *string `json:"base,omitempty"`       // what new runs start from, as a git reference
	IDFormat  *string `json:"id_format,omitempty"`  // how handles are made: mmdd-slug-hash, timestamp-slug or a pattern
	Setup     *string `json:"setup,omitempty"`      // what prepares a new worktree; an empty text removes it
}

// InitRepoResponse describes what init did, or with dry_run would do.
type InitRepoResponse struct {
	Root     string        `json:"root"`      // of the repository
	DryRun   bool          `json:"dry_run"`   // nothing was written
	Settings []InitSetting `json:"settings"`  // the settings of the repository, as they will be
	Changes  []InitChange  `json:"changes"`   // the paths that init looks after, changed or not
	Keys     []string      `json:"keys"`      // the changes in an existing agency.toml, one per line
	ClaudeMD string        `json:"claude_md"` // whether agency made CLAUDE.md: created or exists
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

// InitSetting is one setting and its source.
type InitSetting struct {
	Key   string `json:"key"`   // of agency.toml, such as defaults.base
	Value string `json:"value"` // as text
	From  string `json:"from"`  // where it comes from: answer, agency.toml, default, or your configuration
}

// InitChange is one path of the repository.
type InitChange struct {
	Path   string `json:"path"`   // from the root of the repository
	Action string `json:"action"` // created, changed, moved, exists (it stays as it is) or kept (it cannot be moved, because its new name is taken)
	From   string `json:"from"`   // the old path of a moved file; empty for others
	Backup string `json:"backup"` // path of the copy of the old content; empty when there is none
	Diff   string `json:"diff"`   // with dry_run: the change as a patch; empty when no content is written
}

// TrustRequest asks what the repository of Dir wants done in the worktree of a new run, or in that
// of an existing one, or as checks.
type TrustRequest struct {
	Dir    string         `json:"dir,omitempty"`    // a folder in the repository
	Base   string         `json:"base,omitempty"`   // what the run would start from; empty means the default
	Run    string         `json:"run,omitempty"`    // instead of a new run: what a resume of this run would do
	Target string         `json:"target,omitempty"` // instead of a new run: the checks of this branch
	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// TrustResponse holds what the repository wants and whether the user trusts it.
type TrustResponse struct {
	Root  string            `json:"root"`  // of the repository
	Trust agency.SetupTrust `json:"trust"` // what it wants, and whether the user allowed it
}

// GrantTrustRequest trusts what trust.show showed with this hash.
type GrantTrustRequest struct {
	Of   TrustRequest `json:"of"`   // the same request as that of trust.show
	Hash string       `json:"hash"` // of the content that trust.show showed; another content is refused
}

// RevokeTrustRequest names a repository by a folder in it.
type RevokeTrustRequest struct {
	Dir string `json:"dir"` // a folder in the repository
}

// RevokeTrustResponse counts the different contents that were trusted.
type RevokeTrustResponse struct {
	Root    string `json:"root"`    // of the repository
	Revoked int    `json:"revoked"` // how many different contents the user had allowed
}

// RefsRequest names a repository by a folder in it.
type RefsRequest struct {
	Dir string `json:"dir"` // a folder in the repository
}

// RefsResponse holds what commands can name in a repository.
type RefsResponse struct {
	Names    []string    `json:"names"`    // branches, tags and branches of remotes, those with the newest commits first; at most 500
	Remotes  []string    `json:"remotes"`  // in the order of the configuration
	Landings []LandedRun `json:"landings"` // that can be taken back, the newest first; at most 50
}

// LandedRun is a landing that is in its target.
type LandedRun struct {
	ID     agency.LandingID `json:"id"`     // of the landing
	Run    string           `json:"run"`    // its name or handle
	Target string           `json:"target"` // the branch that has it
}

// LeaveReposRequest asks what agency keeps in repositories, and with Apply to remove it.
type LeaveReposRequest struct {
	Apply bool `json:"apply,omitempty"` // remove what agency keeps in the repositories, but for branches and saved work; else only list it
}

// LeaveReposResponse lists the repositories in which agency keeps something, by their roots.
type LeaveReposResponse struct {
	Repos []LeftRepo `json:"repos"` // those in which agency keeps something
}

// LeftRepo is a repository, and the work of runs that stays in it.
type LeftRepo struct {
	Root     string   `json:"root"`     // its path
	Branches []string `json:"branches"` // branches of runs that stay
	Saved    []string `json:"saved"`    // refs below refs/agency that stay
	Problem  string   `json:"problem"`  // why it could not be read or changed; empty when it could
}
