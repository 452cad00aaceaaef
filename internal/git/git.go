// Package git runs git: it finds repositories, makes and removes worktrees and branches, and saves work before it goes.
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
	"syscall"
	"time"

	"agency"
)

// Git runs the git of the PATH. It needs git 2.36 or newer and keeps nothing between calls. Every method that takes a
// context may also fail with E_GIT_NOT_FOUND, with E_PERMISSION_DENIED when git refuses a repository because it belongs
// to another user, and with an error that wraps context.DeadlineExceeded.
type Git struct {
	timeout time.Duration
	temp    string
}

// New makes a Git that gives each git process so much time. A process that takes longer is ended, with its hooks. Copies of indexes
// are made in the folder temp, which need not exist, and in the system's when it is empty; a process that is killed leaves them there.
func New(timeout time.Duration, temp string) *Git { return &Git{timeout: timeout, temp: temp} }

// tempDir makes a folder for the copy of an index, which the caller removes.
func (g *Git) tempDir() (string, error) {
	if g.temp != "" {
		if err := os.MkdirAll(g.temp, 0o700); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(g.temp, "agency-index-")
}

// oldest is the oldest git that will do: the first one whose "worktree list" can be read whatever the paths hold.
const oldest = "2.36"

// Version is the version of git, like "2.39.5". One older than 2.36 is E_GIT_NOT_FOUND.
func (g *Git) Version(ctx context.Context) (string, error) {
	out, err := g.run(ctx, "", "version")
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

// outputLimit is the most that one git process may answer, in bytes. The status of a million files fits.
const outputLimit = 256 << 20

// call is one git process.
type call struct {
	dir      string
	settings []string // of its configuration, key=value
	args     []string
	env      []string // added to the common environment
	input    string
	complete bool  // a folder that git cannot read is an error: git itself warns, and goes on as if it were empty
	answers  []int // statuses other than 0 that come with an answer
	most     int   // bytes of the answer; what is beyond is cut off. 0 is outputLimit, and an answer beyond that is an error
}

// unreadable is what git says of a folder that it cannot read.
const unreadable = "could not open directory '"

// run runs git in dir and returns what it wrote to its standard output.
func (g *Git) run(ctx context.Context, dir string, args ...string) (string, error) {
	return g.do(ctx, call{dir: dir, args: args})
}

// do is run for calls that need more. Git fails when it comes across a worktree that another git is making or removing
// just then, before it has changed anything: it is asked again, a few times.
func (g *Git) do(ctx context.Context, c call) (string, error) {
	for tries := 1; ; tries++ {
		out, err := g.once(ctx, c)
		if tries == 5 || !said(err, "failed to read ") || !said(err, "/commondir: ") {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (g *Git) once(ctx context.Context, c call) (string, error) {
	late := fmt.Errorf("no answer within %s: %w", g.timeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, g.timeout, late)
	defer cancel()
	// A file system monitor would be a daemon that outlives the worktree it was started for.
	args := []string{"-c", "core.fsmonitor=false"}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(environ(), c.env...)
	if c.input != "" {
		cmd.Stdin = strings.NewReader(c.input)
	}
	stdout, stderr := head{limit: cmp.Or(c.most, outputLimit)}, tail{limit: 16 << 10}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Git and its hooks are one process group. Git takes its lock files away on SIGTERM, so it gets the chance.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 500 * time.Millisecond
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	switch {
	case err == nil && c.complete && strings.Contains(string(stderr.kept), unreadable):
		return "", understand(c, string(stderr.kept), fs.ErrPermission)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil,
		ctx.Err() == nil && cmd.ProcessState != nil && slices.Contains(c.answers, cmd.ProcessState.ExitCode()):
		// Git is done; if a hook left something running that holds the pipe, that is not our concern.
		return stdout.String(), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", agency.Errorf(agency.CodeGitNotFound, "git is not installed or not in the PATH: %w", err).
			WithHint("install git 2.36 or newer: sudo apt install git, or brew install git")
	case stdout.full && c.most > 0 && ctx.Err() == nil:
		return stdout.String(), nil
	case stdout.full:
		return "", &failure{command: c.args[0], words: "the answer is too long"}
	case ctx.Err() != nil:
		return "", &failure{command: c.args[0], words: context.Cause(ctx).Error(), err: context.Cause(ctx)}
	case cmd.ProcessState == nil && errors.Is(err, fs.ErrNotExist):
		return "", &failure{command: c.args[0], words: c.dir + " does not exist", err: err}
	case cmd.ProcessState == nil: // not started
		return "", &failure{command: c.args[0], words: err.Error(), err: err}
	}
	return "", understand(c, string(stderr.kept), err)
}
