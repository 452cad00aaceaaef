package agency

import (
	"strings"
	"time"
)

// ProjectFile is the file, relative to a repository's root, that configures how agency works in it.
const ProjectFile = "agency.toml"

// ProjectLimit is the largest ProjectFile that is read, in bytes.
const ProjectLimit = 64 << 10

// Project is a repository's configuration of its runs. Empty texts and nil lists leave the choice
// to the user.
type Project struct {
	Type    string   // one word for readers: go, node, python ...
	Sandbox Sandbox  // the least strict one; a user, or the user's configuration, may choose a stricter one
	Hosts   []string // that its runs reach with the network allow
	Image   string   // of the sandbox level container
	Ports   []int    // of such containers that the machine reaches
	// Resources are what its runs may use; the user's configuration can only be tightened.
	Resources Resources
	Layout    string // LayoutMinimal or LayoutStandard
	Parallel  bool   // false allows one live run at a time
	Window    bool   // keep agent_runs/, a link for each run

	Runner       string // a kind, or the name of a custom runner
	Base         string // what a run starts from, as a git reference
	HandleFormat string // as ParseHandleFormat reads it

	// Setup is run in each new worktree before the agent. Its first word is a program to look up on
	// PATH, or, if it contains a slash, a file of the repository.
	Setup        []string
	SetupTimeout time.Duration
	// SetupInputs are the files and folders of the repository on which the result of Setup depends,
	// beside its environment. With them the setup may be done before a run is known.
	SetupInputs []string
	Landing     LandingSettings
	Copy        []string // paths, relative to the main worktree, that are copied into a new worktree
	Link        []string // likewise, but linked to the main worktree's

	Checks []Check // in the order in which they are run
}

// The layouts of a project's folders.
const (
	LayoutMinimal  = "minimal"
	LayoutStandard = "standard" // with specs/, scout_outputs/archive/ and ai_docs/
)

// DefaultProject returns the settings of a repository that configures nothing.
func DefaultProject() Project {
	return Project{Sandbox: Sandbox{Level: SandboxWorktree, Network: NetworkFull}, Layout: LayoutMinimal, Parallel: true, SetupTimeout: 10 * time.Minute}
}

// DevcontainerFile is the file, relative to a repository's root, that describes containers for work in
// it to programs of many kinds.
const DevcontainerFile = ".devcontainer/devcontainer.json"

// Devcontainer is what agency takes from a DevcontainerFile: an image, or how to build one.
type Devcontainer struct {
	Image      string
	Dockerfile string // a path in the repository; empty with Image
	Context    string // a folder of the repository, "." for all of it
	Target     string // the stage of the Dockerfile; empty for the last one
	Args       map[string]string
	Ignored    []string // keys that agency does not follow
}

// BuiltImages begins the names of the images that agency builds.
const BuiltImages = "agency-devcontainer:"

// ImageBuild is an image to be built.
type ImageBuild struct {
	Name       string // with a hash of all that it is built of
	Of         string // its Dockerfile, in messages
	Context    []byte // a tar archive
	Dockerfile string // its name in Context
	Target     string
	Args       map[string]string
}

// NeedsTrust reports whether the repository wants something done that the user must allow first.
func (p *Project) NeedsTrust() bool { return len(p.Setup)+len(p.Copy)+len(p.Link) > 0 }

// BuildsImage reports whether the image of a run may be one that the repository's devcontainer.json
// wants to be built.
func (p *Project) BuildsImage(s *Spec) bool {
	return s.Sandbox == SandboxContainer && s.Image == "" && p.Image == ""
}

// Wants returns, in words, what the repository wants done in each new worktree.
func (p *Project) Wants() string {
	t := SetupTrust{Setup: p.Setup, Copy: p.Copy, Link: p.Link}
	return t.Wants()
}

// SetupFile is a file of the repository that its setup runs or names, as it is in the worktree that
// would run it.
type SetupFile struct {
	Path    string `json:"path"`    // relative to the root of the repository
	Content string `json:"content"` // all of it; untrusted
}

// SetupTrust is what the user is asked to allow, and whether it is allowed.
type SetupTrust struct {
	Hash    string      `json:"hash"`    // of all these contents; empty when there is nothing to trust
	Trusted bool        `json:"trusted"` // the user has allowed all of it; false also when there is nothing to trust
	Changed bool        `json:"changed"` // another setup was trusted in this repository before
	Setup   []string    `json:"setup"`   // the program that prepares a new worktree, and its arguments; empty for none
	Copy    []string    `json:"copy"`    // what is copied from the main worktree into a new one, relative to it
	Link    []string    `json:"link"`    // likewise what is linked
	Hooks   []string    `json:"hooks"`   // git's hooks that core.hooksPath names among the files of a worktree
	Checks  []string    `json:"checks"`  // "NAME: PROGRAM ARGUMENTS" each
	Image   string      `json:"image"`   // the Dockerfile of which the image of containers is built; empty for none
	Files   []SetupFile `json:"files"`   // the files of the repository that setup, hooks, checks and image run or name
	// Problem is why the setup cannot succeed as it is, and what to do; empty when no reason is
	// known.
	Problem string `json:"problem"`
}

// Wants returns, in words, what the user is asked to allow.
func (t *SetupTrust) Wants() string {
	var wants []string
	for _, part := range []struct {
		verb  string
		words []string
		joint string
	}{{"run ", t.Setup, " "}, {"copy ", t.Copy, ", "}, {"link ", t.Link, ", "}, {"run git's hook ", t.Hooks, ", "}} {
		if len(part.words) > 0 {
			wants = append(wants, part.verb+strings.Join(part.words, part.joint))
		}
	}
	return strings.Join(wants, "; ")
}

// Standby is a worktree that the daemon made ahead of the run that will take it.
type Standby struct {
	ID       string    `json:"id"`            // the name of its folder
	Repo     string    `json:"repo"`          // the root of its repository
	Worktree string    `json:"worktree_path"` // where it is, and stays when a run takes it
	Base     string    `json:"base"`          // the reference that base_commit was
	Commit   string    `json:"base_commit"`   // the commit that it has checked out
	Setup    bool      `json:"setup"`         // the repository's setup is done in it
	Files    int       `json:"files"`         // tracked files
	Ready    bool      `json:"ready"`         // a run can take it; false while it is made or removed
	MadeAt   time.Time `json:"made_at"`       // when the daemon began to make it
}

// StandbyAge is how long a standby waits for a run before the daemon removes it.
const StandbyAge = 24 * time.Hour

// MostStandbys is the most standbys that a user can have for a repository.
const MostStandbys = 16
