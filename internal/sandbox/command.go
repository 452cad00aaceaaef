package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/host"
	"agency/internal/limit"
)

// Inside is the argument of agency's program that makes it the first program in a sandbox; the
// agent's command line follows. Probe is what it runs to try a sandbox: alone to see that it
// starts, and with a target to try the ways out.
const (
	Inside = "inside"
	Probe  = "probe"
)

// ignoring is a script that starts bubblewrap with the signals ignored that the agent's terminal,
// and a stop, send to its whole process group: bubblewrap would end at once, and the agent with it,
// without its grace. The first program inside takes them again.
const ignoring = `trap '' HUP INT QUIT TERM; exec "$@"`

// inMemory is the option for a folder in memory.
const inMemory = "--tmpfs"

// Processes comes before the number of processes that a sandbox may have, in the arguments of Inside. The
// processes of one user namespace count.
const Processes = "processes"

// Fenced comes before a fence, in the form of JSON, in the arguments of Inside.
const Fenced = "fenced"

// fence is what the first program of a sandbox lets the agent have of the files that it finds there.
type fence struct {
	Read  []string `json:"read"`            // files and folders; programs in them can be run
	Write []string `json:"write"`           // likewise, to read too; those that do not exist are left out
	Names []string `json:"names,omitempty"` // folders that can only be listed
	// Alone reports whether nothing else confines the agent: then the fence must be enforced in full,
	// and Network is set.
	Alone   bool           `json:"alone,omitempty"`
	Network agency.Network `json:"network,omitempty"`
}

// args returns the arguments of Inside for a fence.
func (f fence) args() []string {
	data, _ := json.Marshal(f) // strings always are JSON
	return []string{Fenced, string(data)}
}

// second returns the fence of a sandbox that has a file system of its own. In that, the agent may write these
// paths and the sandbox's own folders. The fence is a second wall: it holds an agent that got out of that
// file system.
func second(writes []string) fence {
	return fence{Read: []string{"/"}, Write: slices.Concat([]string{"/proc", "/dev"}, ownFolders, writes)}
}

// mount is one part of the file system in a sandbox.
type mount struct {
	how        string // an option of bubblewrap
	from, path string // from is empty for a new folder or file
}

// args returns the options of a mount. A folder in memory holds at most size bytes; 0 is the kernel's default.
func (m mount) args(size agency.Size) []string {
	if m.how == inMemory && size > 0 {
		return []string{"--size", strconv.FormatInt(int64(size), 10), m.how, m.path}
	}
	if m.from == "" {
		return []string{m.how, m.path}
	}
	return []string{m.how, m.from, m.path}
}

// ownFolders are the folders that every sandbox has for itself.
var ownFolders = []string{"/tmp", "/var/tmp", "/run"}

// frame returns the options of every sandbox.
func frame(network agency.Network, tmp agency.Size) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox",
	}
	if network != agency.NetworkFull {
		args = append(args, "--unshare-net")
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	for _, path := range ownFolders {
		args = append(args, mount{inMemory, "", path}.args(tmp)...)
	}
	for _, path := range ofKernel {
		args = append(args, "--ro-bind-try", path, path)
	}
	return args
}

// ofKernel are the files of /proc that have settings of the whole machine. No namespace keeps root from
// writing them: the kernel checks only the user id, not the capabilities.
var ofKernel = []string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/driver", "/proc/scsi", "/proc/mtrr", "/proc/pressure",
}

// Command returns the command line and the environment of an attempt in its sandbox. At the level
// worktree these are the attempt's own. E_CONFIG_INVALID: a path of [sandbox] would show what the
// sandbox hides. E_SPEC_INVALID: a host cannot be reached.
func (h *Host) Command(ctx context.Context, c *agency.Confinement) (argv []string, env agency.Environ, err error) {
	switch c.Sandbox.Level {
	case agency.SandboxContainer:
		return h.container(ctx, c)
	case agency.SandboxProcess:
		if c.Sandbox.Level.Shares() {
			return bySeatbelt(c)
		}
		return h.process(c)
	case agency.SandboxLandlock:
		return byLandlock(c)
	case agency.SandboxWorktree:
	}
	return c.Argv, c.Env, nil
}

// process is Command for the level process.
func (h *Host) process(c *agency.Confinement) (argv []string, env agency.Environ, err error) {
	program, err := exec.LookPath(bubblewrap)
	if err != nil {
		return nil, nil, agency.Errorf(agency.CodeSandboxUnavailable, "bubblewrap is gone: %w", err).WithHint("sudo apt-get install bubblewrap")
	}
	mounts, err := allMounts(c)
	if err != nil {
		return nil, nil, err
	}
	args, writes := frame(c.Sandbox.Network, c.Run.Resources.Tmp), []string{}
	for _, m := range mounts {
		args = append(args, m.args(c.Run.Resources.Tmp)...)
		if m.how == inMemory || m.how == "--bind" {
			writes = append(writes, m.path)
		}
	}
	args = append(args, "--chdir", c.Run.Worktree, "--", c.Program, Inside)
	env = environment(c)
	if c.Sandbox.Network == agency.NetworkAllow {
		var listens []string
		if listens, env, err = listening(c, env); err != nil {
			return nil, nil, err
		}
		args = append(args, listens...)
	}
	for _, l := range c.Limits {
		if l.By == limit.ByUsers {
			args = append(args, Processes, strconv.Itoa(c.Run.Resources.Pids))
		}
	}
	args = append(args, second(writes).args()...)
	argv = append([]string{"/bin/sh", "-c", ignoring, "agency", program}, append(args, c.Argv...)...)
	return argv, env, nil
}

// listening returns the arguments of Inside with which it listens for agency's proxy, and the
// environment with which programs use that.
func listening(c *agency.Confinement, env agency.Environ) ([]string, agency.Environ, error) {
	for _, text := range c.Hosts {
		if _, err := host.Parse(text); err != nil {
			return nil, nil, agency.Errorf(agency.CodeSpecInvalid, "a host for the network allow %w", err).
				WithHint("hosts come from [sandbox] hosts, hosts of --spec, and addresses in the agent's variables")
		}
	}
	ports := ports(c.Hosts)
	return []string{Listening, ports}, proxied(env, c, ports), nil
}

// allMounts returns all mounts of a sandbox, each folder before those inside it.
func allMounts(c *agency.Confinement) ([]mount, error) {
	secrets, err := hidden()
	if err != nil {
		return nil, err
	}
	home := path.Clean(c.Env.Lookup("HOME"))
	mounts := system()
	if path.IsAbs(home) && home != "/" {
		mounts = append(mounts, mount{inMemory, "", home})
	}
	mounts = append(mounts, secrets...)
	mounts = append(mounts, programs(c, home)...)
	mounts = append(mounts, mount{"--ro-bind", c.Git.User, filepath.Join(home, ".gitconfig")})
	extra, err := configured(c, home)
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, extra...)
	mounts = append(mounts, state(c)...)
	mounts = append(mounts, work(c)...)
	mounts = append(mounts, mount{"--ro-bind", c.Program, c.Program})
	slices.SortStableFunc(mounts, func(a, b mount) int { return cmp.Compare(depth(a.path), depth(b.path)) })
	return mounts, nil
}

func depth(path string) int { return strings.Count(filepath.Clean(path), "/") }

// work returns what an agent works with: the repository, the relay, and the paths of its attempt.
func work(c *agency.Confinement) []mount {
	mounts := append(repository(c), relay(c)...)
	for _, path := range c.Reads {
		mounts = append(mounts, mount{"--ro-bind", path, path})
	}
	for _, path := range c.Writes {
		mounts = append(mounts, mount{"--bind", path, path})
	}
	return mounts
}

// repository returns the worktree, and the private repository in the place of the real one.
func repository(c *agency.Confinement) []mount {
	g := &c.Git
	mounts := []mount{
		{"--bind", c.Run.Worktree, c.Run.Worktree},
		{"--ro-bind", filepath.Join(c.Run.Worktree, ".git"), filepath.Join(c.Run.Worktree, ".git")},
		{"--bind", g.Dir, g.CommonDir},
		{"--ro-bind", filepath.Join(g.Dir, "objects", "info"), filepath.Join(g.CommonDir, "objects", "info")},
		{"--bind", g.Entry, g.Entry},
	}
	for _, name := range g.Protected {
		path := filepath.Join(g.Entry, name)
		mounts = append(mounts, mount{"--ro-bind", path, path})
	}
	if g.Hooks != "" {
		mounts = append(mounts, mount{"--ro-bind", g.Hooks, filepath.Join(g.CommonDir, "hooks")})
	}
	for i, from := range g.Objects {
		mounts = append(mounts, mount{"--ro-bind", from, g.Borrowed(i)})
		if i > 0 { // the objects before it name it by this path, too
			mounts = append(mounts, mount{"--ro-bind", from, from})
		}
	}
	return mounts
}
