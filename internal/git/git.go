// Package git runs git: it finds repositories, makes and removes worktrees and branches, and saves
// work before it goes.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/trace"
)

// Git runs the git program of the PATH, which must be 2.36 or newer. Callers use its parts; a part
// uses only the parts above it. Between calls they keep only facts whose changes they can detect.
// Every method that takes a context may also fail with E_GIT_NOT_FOUND, with E_PERMISSION_DENIED
// when git refuses a repository because it belongs to another user, and with an error that wraps
// context.DeadlineExceeded.
type Git struct {
	*program
	*Repos
	*History
	*Refs
	*Trees
	*Worktrees
	*Merges
	*Checkouts
	*Sandboxes
}

// Repos finds repositories, and keeps what agency must know of each: its identity, its
// configuration, its remotes and its locks.
type Repos struct{ *program }

// History reads commits: their order, their messages and their files.
type History struct{ *program }

// Refs reads and moves branches and other refs. It never touches a worktree.
type Refs struct {
	*program
	history *History
}

// Trees compares and saves what is in worktrees, besides ignored files. It changes neither the
// files nor the index nor HEAD.
type Trees struct {
	*program

	mu     sync.Mutex
	counts map[string]counts // by repository, the tips of its history, and two commits
}

// Worktrees makes, changes and removes the worktrees of runs, standbys and checks.
type Worktrees struct {
	*program
	history *History
	refs    *Refs
	trees   *Trees
}

// Merges makes the commits of merges without a worktree. It moves no ref.
type Merges struct {
	*program
	history *History
}

// Checkouts moves branches that the user has checked out, with their files.
type Checkouts struct {
	*program
	history *History
	refs    *Refs
	trees   *Trees
}

// Sandboxes makes the repositories of agents in sandboxes, and takes over what agents commit there.
type Sandboxes struct {
	*program

	packs sync.Map // those that were taken over: by folder, name, size and time
}

// program runs git in a repository that its caller names, with the configuration and the refs that
// it may use. Every part of Git embeds it.
type program struct {
	// Claims is the folder of the notes on which refs a git process writes now. With a note, the
	// lock that a killed process left can be distinguished from that of a working one. Empty keeps
	// no notes.
	Claims string

	timeout time.Duration
	temp    string
	records string

	mu    sync.Mutex
	views map[string]string  // by common directory and configuration
	reads map[string]read    // by common directory
	whole map[string]origins // likewise
	found map[string]found   // by folder
	heads map[string]string  // by common directory: the last commit that git found at a HEAD
}

// New makes a Git with a time limit for each git process. A process that takes longer is ended,
// with its hooks. Copies of indexes and views of repositories are made in the folder temp, which
// need not exist; a process that is killed leaves them there. What Record keeps is in the folder
// records, and stays.
func New(timeout time.Duration, temp, records string) *Git {
	p := &program{timeout: timeout, temp: temp, records: records, views: map[string]string{}, reads: map[string]read{}, whole: map[string]origins{}, found: map[string]found{}, heads: map[string]string{}}
	history, trees := &History{p}, &Trees{program: p, counts: map[string]counts{}}
	refs := &Refs{p, history}
	return &Git{
		program: p, Repos: &Repos{p}, History: history, Refs: refs, Trees: trees,
		Worktrees: &Worktrees{p, history, refs, trees}, Merges: &Merges{p, history}, Checkouts: &Checkouts{p, history, refs, trees},
		Sandboxes: &Sandboxes{program: p},
	}
}

// tempDir makes a temporary folder, which the caller removes.
func (g *program) tempDir(prefix string) (string, error) {
	if err := os.MkdirAll(g.temp, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(g.temp, prefix)
}

// oldest is the oldest version of git that agency works with: the first one whose "worktree list"
// can be read whatever the paths hold.
const oldest = "2.36"

// Version returns the version of git, like "2.39.5". One older than 2.36 is E_GIT_NOT_FOUND.
func (g *program) Version(ctx context.Context) (string, error) {
	out, err := g.do(ctx, call{args: []string{"version"}})
	if err != nil {
		return "", err
	}
	// "git version 2.39.5 (Apple Git-154)"
	version, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(out), "git version "), " ")
	if older(version, oldest) {
		return "", agency.Errorf(agency.CodeGitNotFound, "git is version %s, and %s or newer is needed", version, oldest).
			WithHint("install a newer git, on Ubuntu from the git-core PPA")
	}
	return version, nil
}

// older compares the first two numbers of versions. A version that cannot be read is not older.
func older(version, than string) bool {
	var major, minor, wantMajor, wantMinor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d", &wantMajor, &wantMinor)
	return major < wantMajor || (major == wantMajor && minor < wantMinor)
}

// outputLimit is the longest answer of one git process, in bytes. The status of a million files
// fits.
const outputLimit = 256 << 20

// call is one git process.
type call struct {
	dir      string   // where git stands
	site     site     // where it works; the zero site is discovered from dir
	bare     bool     // a bare repository may be discovered
	hooks    bool     // core.hooksPath counts
	fetch    bool     // objects that a partial clone lacks are fetched
	silent   bool     // it has no answer; what its hooks leave running may hold its output
	settings []string // for its configuration, key=value
	args     []string
	env      []string // added to the common environment
	input    string
	file     string // the file that it reads instead of input
	complete bool   // a folder that git cannot read is an error: git itself warns, and continues as if it were empty
	answers  []int  // exit statuses other than 0 of a git that has answered
	most     int    // bytes of the answer; the rest is cut off. 0 means outputLimit, and a longer answer is an error
	writes   refOf  // a ref of agency's own; empty for none
}

// limits are the settings that every git process gets, so that no repository names programs to run.
func (c call) limits() []string {
	// A file system monitor would be a daemon that outlives the worktree it was started for.
	settings := []string{"core.fsmonitor=false"}
	if !c.bare {
		settings = append(settings, "safe.bareRepository=explicit")
	}
	if !c.hooks {
		settings = append(settings, "core.hooksPath=/dev/null")
		for _, event := range events {
			settings = append(settings, "hook."+event+".enabled=false")
		}
	}
	return settings
}

// unreadable begins git's message about a folder that it cannot read.
const unreadable = "could not open directory '"

// run runs git in a recorded repository and returns what it wrote to its standard output.
func (g *program) run(ctx context.Context, repo agency.Repo, args ...string) (string, error) {
	return g.do(ctx, within(repo, args...))
}

// discover runs git in the repository that it finds from dir.
func (g *program) discover(ctx context.Context, dir string, args ...string) (string, error) {
	c, err := discovered(dir, args...)
	if err != nil {
		return "", err
	}
	return g.do(ctx, c)
}

// do is run for calls that need more options. Git fails when it comes across a worktree that
// another git process is making or removing, before it has changed anything. Then do tries again, a
// few times. When that does not help, the other process was killed.
func (g *program) do(ctx context.Context, c call) (string, error) {
	for tries := 1; ; tries++ {
		out, err := g.once(ctx, c)
		if !overtaken(err) || tries > 5 || tries == 5 && !finishWorktrees(cmp.Or(c.site.commonDir, c.site.gitDir)) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// overtaken reports whether git failed because the entry of a worktree was half written, or
// disappeared while git looked at it.
func overtaken(err error) bool {
	return said(err, "failed to read ") && said(err, "/commondir: ") || said(err, "Invalid path '") && said(err, "/worktrees/")
}

// command returns the git process of a call, without its input and output.
func (c call) command(ctx context.Context) *exec.Cmd {
	args := []string{}
	for _, setting := range append(c.limits(), c.settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = slices.Concat(environ(), c.site.env(), c.env)
	if !c.fetch {
		// Missing objects are not fetched: that would run whatever the repository names to reach
		// its remote.
		cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=")
	}
	// Git and its hooks are one process group. Git removes its lock files on SIGTERM, so it gets
	// the chance.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	// The output usually ends together with git. It ends later when a process that git left running
	// holds it, or when processes that agency starts at the same time inherit it, until their exec.
	cmd.WaitDelay = 3 * time.Second
	if c.silent {
		cmd.WaitDelay = 500 * time.Millisecond
	}
	return cmd
}

// once runs git for a call once and returns its answer.
func (g *program) once(ctx context.Context, c call) (string, error) {
	late := duration.Over("no answer", g.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, late)
	defer cancel()
	cmd := c.command(ctx)
	if c.input != "" {
		cmd.Stdin = strings.NewReader(c.input)
	}
	if c.file != "" {
		f, err := os.Open(c.file)
		if err != nil {
			return "", &failure{command: c.args[0], words: err.Error(), err: err}
		}
		defer func() { _ = f.Close() }()
		cmd.Stdin = f
	}
	if c.mayRunHooks() {
		off, err := g.hooksOff(ctx, cmp.Or(c.writes.CommonDir, c.site.gitDir))
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, off...)
	}
	stdout, stderr := head{limit: cmp.Or(c.most, outputLimit)}, tail{limit: 16 << 10}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if c.writes.Ref != "" && g.Claims != "" {
		claim, err := g.claim(ctx, c.writes)
		if err != nil {
			return "", &failure{command: c.args[0], words: err.Error(), err: err}
		}
		defer func() { claim.done(cmd.ProcessState == nil || cmd.ProcessState.Exited()) }()
		cmd.ExtraFiles = []*os.File{claim.File}
	}
	end := trace.Begin(ctx, append([]string{"git"}, c.args[:min(len(c.args), 2)]...)...)
	err := cmd.Run()
	end()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case err == nil && c.complete && strings.Contains(string(stderr.kept), unreadable):
		return "", understand(c, string(stderr.kept), fs.ErrPermission)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil && (stdout.ended || c.silent),
		ctx.Err() == nil && cmd.ProcessState != nil && slices.Contains(c.answers, cmd.ProcessState.ExitCode()):
		// Git has ended. A hook or a filter may have left a process running that holds the pipe;
		// agency does not wait for it.
		return stdout.String(), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", agency.Errorf(agency.CodeGitNotFound, "git is not installed, or not in the PATH of the daemon: %s", os.Getenv("PATH")).
			WithHint("install git 2.36 or newer: sudo apt install git, or brew install git; if your shell finds it, the next daemon does, too: agency daemon stop")
	case stdout.full && c.most > 0 && ctx.Err() == nil:
		return stdout.String(), nil
	case stdout.full:
		return "", &failure{command: c.args[0], words: "the answer is too long"}
	case ctx.Err() != nil:
		return "", &failure{command: c.args[0], words: context.Cause(ctx).Error(), err: context.Cause(ctx)}
	case errors.Is(err, exec.ErrWaitDelay): // a part of an answer could be misread
		return "", &failure{command: c.args[0], words: "the answer is incomplete", err: err}
	case cmd.ProcessState == nil && errors.Is(err, fs.ErrNotExist):
		return "", &failure{command: c.args[0], words: c.dir + " does not exist", err: err}
	case cmd.ProcessState == nil: // not started
		return "", &failure{command: c.args[0], words: err.Error(), err: err}
	}
	return "", understand(c, string(stderr.kept), err)
}
