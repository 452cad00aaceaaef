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
	"agency/internal/trace"
)

// Git runs the git of the PATH. It needs git 2.36 or newer and keeps nothing between calls. Every
// method that takes a context may also fail with E_GIT_NOT_FOUND, with E_PERMISSION_DENIED when git
// refuses a repository because it belongs to another user, and with an error that wraps
// context.DeadlineExceeded.
type Git struct{ program }

// program runs git: in a repository that it was told of, with the configuration and the refs that it
// may use. It is what every operation of Git begins with.
type program struct {
	// Claims is the folder of the notes on which refs a git writes just now, so that the lock of
	// one that was killed can be told from that of one at work; empty keeps none.
	Claims string

	timeout time.Duration
	temp    string
	records string

	mu    sync.Mutex
	views map[string]string // by common directory and configuration
	reads map[string]read   // by common directory
}

// New makes a Git that gives each git process so much time. A process that takes longer is ended,
// with its hooks. Copies of indexes and views of repositories are made in the folder temp, which
// need not exist; a process that is killed leaves them there. What Record keeps is in the folder
// records, and stays.
func New(timeout time.Duration, temp, records string) *Git {
	return &Git{program{timeout: timeout, temp: temp, records: records, views: map[string]string{}, reads: map[string]read{}}}
}

// tempDir makes a folder of the caller's own, which removes it when it is done.
func (g *program) tempDir(prefix string) (string, error) {
	if err := os.MkdirAll(g.temp, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(g.temp, prefix)
}

// oldest is the oldest git that will do: the first one whose "worktree list" can be read whatever
// the paths hold.
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

// older compares the first two numbers of versions. What cannot be read is not older.
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
	bare     bool     // discovering may find a bare repository
	hooks    bool     // core.hooksPath counts
	fetch    bool     // what a partial clone lacks is fetched
	silent   bool     // it answers nothing; what its hooks leave may hold its output
	settings []string // of its configuration, key=value
	args     []string
	env      []string // added to the common environment
	input    string
	complete bool  // a folder that git cannot read is an error: git itself warns, and goes on as if it were empty
	answers  []int // statuses other than 0 that come with an answer
	most     int   // bytes of the answer; what is beyond is cut off. 0 is outputLimit, and an answer beyond that is an error
	writes   refOf // a ref of agency's own; empty for none
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
	}
	return settings
}

// unreadable is what git says of a folder that it cannot read.
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

// do is run for calls that need more. Git fails when it comes across a worktree that another git is
// making or removing just then, before it has changed anything: it is asked again, a few times.
// Where that does not help, the other git was killed.
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

// overtaken reports whether git failed because an entry of a worktree was half there, or went while
// git looked at it.
func overtaken(err error) bool {
	return said(err, "failed to read ") && said(err, "/commondir: ") || said(err, "Invalid path '") && said(err, "/worktrees/")
}

func (g *program) once(ctx context.Context, c call) (string, error) {
	late := fmt.Errorf("no answer within %s: %w", g.timeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, late)
	defer cancel()
	args := []string{}
	for _, setting := range append(c.limits(), c.settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = slices.Concat(environ(), c.site.env(), c.env)
	if !c.fetch {
		// What is missing is not fetched: that would run whatever the repository names to reach its
		// remote.
		cmd.Env = append(cmd.Env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=")
	}
	if c.input != "" {
		cmd.Stdin = strings.NewReader(c.input)
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
	// Git and its hooks are one process group. Git takes its lock files away on SIGTERM, so it gets
	// the chance.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 500 * time.Millisecond
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
		// Git is done; if a hook or a filter left something running that holds the pipe, that is not
		// our concern.
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
	case errors.Is(err, exec.ErrWaitDelay): // half an answer would be another one
		return "", &failure{command: c.args[0], words: "the end of the answer did not come", err: err}
	case cmd.ProcessState == nil && errors.Is(err, fs.ErrNotExist):
		return "", &failure{command: c.args[0], words: c.dir + " does not exist", err: err}
	case cmd.ProcessState == nil: // not started
		return "", &failure{command: c.args[0], words: err.Error(), err: err}
	}
	return "", understand(c, string(stderr.kept), err)
}
