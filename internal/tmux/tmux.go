// Package tmux runs tmux: it starts, finds, reads and ends the sessions that agents work in.
package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/trace"
)

// Tmux talks to one tmux server, by one short-lived tmux process per call. It is safe for
// concurrent use.
type Tmux struct {
	// Env is the environment of the tmux processes; nil means this process's own. A server that
	// Start starts keeps it for its whole life and gives it to every pane. TMUX and TMUX_PANE are
	// dropped: only the socket decides which server is meant, also when agency itself was started
	// in a pane.
	Env []string

	socket  string
	timeout time.Duration
}

// New returns a Tmux for a server: the user's default one when socket is empty, else the socket at
// an absolute path, else the server of that name (tmux -L). timeout bounds each tmux process. New
// runs nothing.
func New(socket string, timeout time.Duration) *Tmux {
	return &Tmux{socket: socket, timeout: timeout}
}

// outputLimit is the largest output that is read from one tmux process, in bytes.
const outputLimit = 16 << 20

// failure is the error of a failed tmux process.
type failure struct {
	command string
	said    string // what tmux wrote to its standard error, made safe
	err     error
}

func (f *failure) Error() string {
	if f.said != "" {
		return f.said
	}
	return fmt.Sprintf("tmux %s: %v", f.command, f.err)
}

func (f *failure) Unwrap() error { return f.err }

// As converts it to the error that users see where the caller gives it no other code.
func (f *failure) As(target any) bool {
	e, ok := target.(**agency.Error)
	if !ok || agency.Exhausted(f.err) {
		return false
	}
	*e = agency.Errorf(agency.CodeTmuxFailed, "%s", f.Error()).WithHint("try again; if it fails again, the tmux server may hang: agency doctor")
	return true
}

// run runs one tmux process in dir (the current directory when empty) and returns its standard
// output, also together with an error. Errors are E_TMUX_NOT_FOUND, or a *failure.
func (t *Tmux) run(ctx context.Context, dir string, args ...string) (string, error) {
	path, err := t.find()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, fmt.Errorf("no answer within %s", duration.Text(t.timeout)))
	defer cancel()
	// -u: a client that does not claim UTF-8 gets "_" for every other character. The locale stays
	// the user's, because a server that starts now passes it on to every pane.
	cmd := exec.CommandContext(ctx, path, slices.Concat([]string{"-u"}, t.server(), args)...)
	cmd.Env = agency.Environ(t.environ()).Without("TMUX", "TMUX_PANE", "PWD")
	if !filepath.IsAbs(agency.Environ(cmd.Env).Lookup("TMUX_TMPDIR")) {
		// A relative path would name another server in each directory.
		cmd.Env = agency.Environ(cmd.Env).Without("TMUX_TMPDIR")
	}
	if dir != "" {
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "PWD="+dir) // tmux takes the path from here, with the links that are in it
	}
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Processes that agency starts at the same time also inherit the output, until their exec.
	cmd.WaitDelay = 3 * time.Second
	end := trace.Begin(ctx, "tmux", args[0])
	err = cmd.Run()
	end()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.String(), &failure{command: args[0], said: readable(stderr.String()), err: err}
	}
	return stdout.String(), nil
}

// server returns the option that chooses the server.
func (t *Tmux) server() []string {
	switch {
	case t.socket == "":
		return nil
	case filepath.IsAbs(t.socket):
		return []string{"-S", t.socket}
	default:
		return []string{"-L", t.socket}
	}
}

func (t *Tmux) environ() []string {
	if t.Env == nil {
		return os.Environ()
	}
	return t.Env
}

// find returns the absolute path of tmux, by the PATH of Env.
func (t *Tmux) find() (string, error) {
	if path, ok := t.look("tmux"); ok {
		return path, nil
	}
	return "", agency.Errorf(agency.CodeTmuxNotFound, "tmux is not installed, or not in the PATH of the daemon: %s", agency.Environ(t.environ()).Lookup("PATH")).
		WithHint("%s; if your shell finds it, the next daemon does, too: agency daemon stop", t.installHint())
}

// look finds a program in the absolute directories of PATH.
func (t *Tmux) look(program string) (string, bool) {
	return file.FindProgram(agency.Environ(t.environ()).Lookup("PATH"), program)
}

// noSessions reports whether a process failed because there are no sessions: no server runs on the
// socket, or the server has none, as the user may configure, and as every server is for a moment
// while it exits. A command with a target does not check for that.
func noSessions(err error) bool {
	var f *failure
	return serverExited(err) || errors.As(err, &f) && (strings.HasPrefix(f.said, "no server running on ") || f.said == "no current target" ||
		strings.HasPrefix(f.said, "error connecting to ") && strings.Contains(f.said, "(No such file or directory)"))
}

// serverExited reports whether a process failed because the server ended meanwhile; its sessions
// are gone too.
func serverExited(err error) bool {
	var f *failure
	return errors.As(err, &f) && (strings.HasPrefix(f.said, "server exited") || strings.HasPrefix(f.said, "lost server"))
}

// notFound reports whether a process failed because its target does not exist.
func notFound(err error) bool {
	var f *failure
	return noSessions(err) || errors.As(err, &f) && strings.HasPrefix(f.said, "can't find ")
}

// readable returns a program's message as one short line that is safe for a terminal.
func readable(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "?"))
	words := []rune(strings.Join(strings.Fields(s), " "))
	if len(words) > most {
		words = append(words[:most], '…')
	}
	return string(words)
}

// bounded keeps output in memory up to outputLimit; more is an error, which ends the process.
type bounded struct{ buf bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > outputLimit {
		return 0, fmt.Errorf("more than %d bytes of output", outputLimit)
	}
	return b.buf.Write(p)
}

func (b *bounded) String() string { return b.buf.String() }
