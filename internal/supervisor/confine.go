package supervisor

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/supervisor/observe"
)

// Sandbox makes the sandboxes of agents.
type Sandbox interface {
	// Check returns E_SANDBOX_UNAVAILABLE unless this host can enforce a level.
	Check(ctx context.Context, level agency.SandboxLevel) error
	// CheckImage returns an image that the engine which an environment names can start, or else
	// E_SANDBOX_UNAVAILABLE.
	CheckImage(ctx context.Context, env agency.Environ, name string) (*agency.Image, error)
	// BuildImage returns an image, and builds it first if the engine does not have it. pack returns
	// the archive of the files that it is built from.
	BuildImage(ctx context.Context, env agency.Environ, b *agency.ImageBuild, pack func() ([]byte, error)) (*agency.Image, error)
	// Remove ends and removes the container of an attempt, whose folder is given; nil when there is
	// none.
	Remove(ctx context.Context, attempt string) error
	// Command returns the command line and the environment of an attempt in its sandbox.
	Command(ctx context.Context, c *agency.Confinement) (argv []string, env agency.Environ, err error)
	// Limits returns what enforces each limit of an attempt at a level. E_SANDBOX_UNAVAILABLE:
	// nothing on this host does.
	Limits(level agency.SandboxLevel, r agency.Resources) ([]agency.EnforcedLimit, error)
}

// sandboxDir is the folder in a run directory with what its sandbox needs; the agent sees parts of it.
const sandboxDir = "sandbox"

// confine returns the command line and the environment of an attempt in the sandbox of its run, and
// the hosts that it reaches with the network allow, and prepares what the agent gets there.
func (la *launcher) confine(ctx context.Context, l *launching, env agency.Environ, limits []agency.EnforcedLimit) (argv []string, _ agency.Environ, hosts []string, _ error) {
	r := l.run
	if !r.Sandbox.Level.Confines() {
		return l.command.Argv, env, nil, nil
	}
	c, err := la.confinement(ctx, l, env)
	if err != nil {
		return nil, nil, nil, err
	}
	// Hooks append to the evidence, and must not make files beside it.
	events := filepath.Join(c.Attempt, agency.EventsFile)
	f, err := os.OpenFile(events, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, nil, asFileError(err)
	}
	_ = f.Close()
	c.Argv, c.Set, c.Limits, c.Writes = l.command.Argv, append(c.Set, names(l.command.Env)...), limits, []string{events}
	c.Ports, c.Relay = r.Attempt.Ports.Numbers(), relayFolder(r)
	if c.Relay != "" {
		if err := os.MkdirAll(c.Relay, 0o700); err != nil {
			return nil, nil, nil, asFileError(err)
		}
	}
	c.Mark, c.Note = agency.AttemptMark(r.ID, r.Attempt.Number), filepath.Join(c.Attempt, agency.EndNoteFile)
	for _, name := range slices.Sorted(maps.Keys(l.command.Files)) {
		c.Reads = append(c.Reads, filepath.Join(c.Attempt, name))
	}
	argv, env, err = la.sandbox.Command(ctx, c)
	return argv, env, c.Hosts, err
}

// relayFolder returns the folder of the socket by which the agent of a run asks the daemon from its
// sandbox; empty for none. Where a sandbox shares the machine's files, the agent connects to none.
func relayFolder(r *agency.Run) string {
	if !r.Sandbox.Level.Confines() || r.Sandbox.Level.Shares() {
		return ""
	}
	return filepath.Join(observe.AttemptDir(r.Dir, r.Attempt.Number), "relay")
}

// confinement returns what is the same for all programs in the sandbox of a run: the agent of an
// attempt, and a setup before it.
func (la *launcher) confinement(ctx context.Context, l *launching, env agency.Environ) (*agency.Confinement, error) {
	r := l.run
	attempt, dir := observe.AttemptDir(r.Dir, r.Attempt.Number), filepath.Join(r.Dir, sandboxDir)
	git, err := la.gitInside(ctx, l, dir)
	if err != nil {
		return nil, err
	}
	c := &agency.Confinement{
		Sandbox: r.Sandbox, Settings: l.settings.Sandbox, State: la.harness.State(r.Runner.Kind, env, r.Worktree), Run: r,
		Env: env, Set: slices.Clone(l.set), Git: git,
		Attempt: attempt, Program: la.Wrapper[0], Home: filepath.Join(attempt, sandboxDir), Own: filepath.Join(dir, "own"),
	}
	if r.Sandbox.Network == agency.NetworkAllow {
		// Without a host the proxy refuses everything; nil would be no proxy.
		c.Hosts = []string{}
		for _, entry := range slices.Concat(c.State.Hosts, l.settings.Sandbox.Hosts, l.hosts, agency.Entries(r.Attempt.Network.Grants(true))) {
			if !slices.Contains(c.Hosts, entry) {
				c.Hosts = append(c.Hosts, entry)
			}
		}
	}
	return c, nil
}

// gitInside returns what an agent has of its repository, which prepareGit makes when the session
// starts early.
func (la *launcher) gitInside(ctx context.Context, l *launching, dir string) (agency.PrivateGit, error) {
	r := l.run
	if r.Sandbox.Level.Shares() {
		return la.git.Shared(ctx, r.Repo, r.Worktree, r.Branch, dir)
	}
	git, prepare, err := la.git.Private(ctx, r.Repo, r.Worktree, r.Branch, dir)
	switch {
	case err != nil:
		return git, err
	case l.privateGit != nil:
		l.privateGit <- prepare
		return git, nil
	default:
		return git, prepare()
	}
}

// checkSandbox returns E_SANDBOX_UNAVAILABLE unless this host can enforce a level. It returns the image
// of the level container.
func (pl *planner) checkSandbox(ctx context.Context, level agency.SandboxLevel, env agency.Environ, image string) (*agency.Image, error) {
	if level == agency.SandboxContainer {
		return pl.sandbox.CheckImage(ctx, env, image)
	}
	return nil, pl.sandbox.Check(ctx, level)
}
