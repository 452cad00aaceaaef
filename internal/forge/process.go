// Package forge reaches the remotes of repositories and the pull requests there, by the user's own
// git, gh and glab: with the environment and the credentials of the client, never of the daemon.
// Git works in a repository of its own that borrows the objects of the real one, so no hook and no
// configuration that an agent can write has an effect.
package forge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// answerLimit is the longest answer of a program, in bytes.
const answerLimit = 32 << 20

// process is one program to run: without a terminal, so that it cannot ask the user anything.
type process struct {
	name  string // found on the PATH of env
	args  []string
	env   agency.Environ
	dir   string
	input string
}

// answer is what a program answered.
type answer struct {
	out, err string
	exit     int
}

// errMissing means that the program is not on the PATH of the caller.
var errMissing = errors.New("not on the PATH")

// run runs a program to its end and returns its answer, whatever its exit status. When ctx ends,
// the program and all that it started are ended, and the error wraps the cause.
func (p process) run(ctx context.Context) (answer, error) {
	program, ok := file.FindProgram(p.env.Lookup("PATH"), p.name)
	if !ok {
		return answer{}, errMissing
	}
	cmd := exec.CommandContext(ctx, program, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.dir, p.env, strings.NewReader(p.input)
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	// A session of its own has no terminal, so that no program can ask there.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return answer{out.String(), errs.String(), -1}, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return answer{}, err
	}
	return answer{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}

// limited keeps the beginning of a stream and drops the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := answerLimit - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// ReadFrom keeps bytes.Buffer from reading a stream of any length.
func (l *limited) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l}, r)
}

// kept are git's own variables that describe how this user's git is set up. All others name a
// repository.
var kept = []string{
	"GIT_ASKPASS", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT",
}

// environ returns the environment of a program that works for the user: without the variables that
// name a repository, and without questions.
func environ(env agency.Environ, more ...string) agency.Environ {
	env = env.WithoutFunc(func(name string) bool {
		if !strings.HasPrefix(name, "GIT_") || slices.Contains(kept, name) {
			return false
		}
		for _, prefix := range []string{"GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSL_", "GIT_HTTP_"} {
			if strings.HasPrefix(name, prefix) {
				return false
			}
		}
		return true
	})
	return append(append(env, "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "GIT_NO_REPLACE_OBJECTS=1"), more...)
}

// lastLine returns the last line of a text that is not empty, safe to show.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(plain.Visible(strings.ReplaceAll(text, "\r", "\n"))), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	for _, prefix := range []string{"fatal: ", "error: ", "gh: "} {
		line = strings.TrimPrefix(line, prefix)
	}
	return clip(line)
}

// clip shortens a text that is too long for a message.
func clip(text string) string {
	const most = 600
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return text
}

// late reports whether an error comes from a time limit, or from a user who interrupts.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}
