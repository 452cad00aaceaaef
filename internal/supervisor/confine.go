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
	attempt, dir := observe.AttemptDir(r.Dir, r.Attempt.Number), filepath.Join(r.Dir, sandboxDir)
	git, err := la.git.Private(ctx, r.Repo, r.Worktree, r.Branch, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	// Hooks append to the evidence, and must not make files beside it.
	events := filepath.Join(attempt, agency.EventsFile)
	f, err := os.OpenFile(events, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, nil, asFileError(err)
	}
	_ = f.Close()
	state := la.harness.State(r.Runner.Kind, env, r.Worktree)
	if r.Sandbox.Network == agency.NetworkAllow {
		// Without a host the proxy refuses everything; nil would be no proxy.
		hosts = []string{}
		for _, entry := range slices.Concat(state.Hosts, l.settings.Sandbox.Hosts, l.hosts, agency.Entries(r.Attempt.Network.Grants(true))) {
			if !slices.Contains(hosts, entry) {
				hosts = append(hosts, entry)
			}
		}
	}
	c := agency.Confinement{
		Sandbox: r.Sandbox, Settings: l.settings.Sandbox, State: state, Run: r, Hosts: hosts, Limits: limits,
		Argv: l.command.Argv, Env: env, Set: slices.Concat(l.set, names(l.command.Env)), Git: git,
		Attempt: attempt, Program: la.Wrapper[0], Writes: []string{events}, Home: filepath.Join(attempt, sandboxDir), Own: filepath.Join(dir, "own"),
	}
	for _, name := range slices.Sorted(maps.Keys(l.command.Files)) {
		c.Reads = append(c.Reads, filepath.Join(attempt, name))
	}
	argv, env, err = la.sandbox.Command(ctx, &c)
	return argv, env, hosts, err
}

// checkSandbox returns E_SANDBOX_UNAVAILABLE unless this host can enforce a level. It returns the image
// of the level container.
func (s *Supervisor) checkSandbox(ctx context.Context, level agency.SandboxLevel, env agency.Environ, image string) (*agency.Image, error) {
	if level == agency.SandboxContainer {
		return s.Sandbox.CheckImage(ctx, env, image)
	}
	return nil, s.Sandbox.Check(ctx, level)
}
