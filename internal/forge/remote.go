package forge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// Place is a remote of a repository, and how git reaches it.
type Place struct {
	CommonDir string // of the repository
	Settings  []byte // a git configuration, by which git reaches the remote
	Remote    string // what the user calls it
	URL       string
	SHA256    bool // the objects of the repository are named by SHA-256
}

// Remote is a remote, reached by the user's git.
type Remote struct {
	Place

	temp *file.Temp
	dir  string // below temp: a repository of its own, which borrows the objects
	url  string // after the user's rules that rewrite URLs
	env  agency.Environ
}

// target is the name of the remote in the configuration.
const target = "agency-push-target"

// Open makes what git needs to reach a remote, with the environment of the user, in a folder below
// temp. The caller closes the Remote. If the process is killed, file.ClearTemp removes the folder.
func Open(ctx context.Context, p Place, temp string, env agency.Environ) (*Remote, error) {
	folder, err := file.MakeTemp(temp, "push-")
	if err != nil {
		return nil, err
	}
	r := &Remote{Place: p, temp: folder, dir: folder.Path}
	r.env = environ(env, "GIT_DIR="+r.dir, "LC_ALL=C")
	if err := r.open(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Remote) open(ctx context.Context) error {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
	format := "[core]\n\trepositoryformatversion = 0\n"
	if r.SHA256 {
		format = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
	}
	config := string(r.Settings) + "\n" + format + "\tbare = true\n"
	if r.SHA256 {
		config = string(r.Settings) + "\n" + format + "[core]\n\tbare = true\n"
	}
	config += "[remote \"" + target + "\"]\n\turl = \"" + escape.Replace(r.URL) + "\"\n"
	if err := os.WriteFile(filepath.Join(r.dir, "config"), []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(r.dir, "refs"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"objects", "shallow"} {
		if err := os.Symlink(filepath.Join(r.CommonDir, name), filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	a, err := r.git(ctx, "remote", "get-url", "--push", target)
	if err == nil && a.exit != 0 {
		err = agency.Errorf(agency.CodeGitFailed, "git remote get-url: %s", lastLine(a.err))
	}
	if err != nil {
		return err
	}
	r.url = strings.TrimSuffix(a.out, "\n")
	return r.quietSSH(ctx)
}

// quietSSH makes ssh fail instead of asking, unless the user configured a command for it.
func (r *Remote) quietSSH(ctx context.Context) error {
	if r.env.Lookup("GIT_SSH") != "" || r.env.Lookup("GIT_SSH_COMMAND") != "" {
		return nil
	}
	a, err := r.git(ctx, "config", "--get", "core.sshCommand")
	if err == nil && strings.TrimSpace(a.out) == "" {
		r.env = append(r.env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	}
	return err
}

// Close removes what Open made.
func (r *Remote) Close() error { return r.temp.Remove() }

// Shown returns the name of the remote in messages.
func (r *Remote) Shown() string {
	if url := plain.SafeURL(r.url); url != plain.SafeURL(r.Remote) {
		return fmt.Sprintf("%s (%s)", plain.Visible(r.Remote), url)
	}
	return plain.SafeURL(r.url)
}

// git runs git. It runs no hooks and no transports that are commands, and signs nothing.
func (r *Remote) git(ctx context.Context, args ...string) (answer, error) {
	args = append([]string{"-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "push.gpgSign=false", "-c", "core.fsmonitor=false"}, args...)
	a, err := process{name: "git", args: args, env: r.env, dir: r.dir}.run(ctx)
	if err == errMissing { //nolint:errorlint // it is returned as it is
		return a, agency.Errorf(agency.CodeGitNotFound, "git is not on your PATH").WithHint("agency doctor")
	}
	return a, err
}

// At returns the commit of a branch of the remote; empty when it has no such branch.
func (r *Remote) At(ctx context.Context, branch string) (string, error) {
	ref := "refs/heads/" + branch
	a, err := r.git(ctx, "ls-remote", "--refs", "--", r.url, ref)
	if err != nil {
		return "", r.unreached(err)
	}
	if a.exit != 0 {
		return "", r.failed("look at", a)
	}
	for line := range strings.Lines(a.out) {
		if commit, name, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok && name == ref {
			return commit, nil
		}
	}
	return "", nil
}

// unreached returns the error for a git process that did not end by itself.
func (r *Remote) unreached(err error) error {
	if late(err) {
		return agency.Errorf(agency.CodeWaitTimeout, "%s did not answer in time: %w", r.Shown(), err).WithHint("try again, with a longer --timeout")
	}
	return err
}

// refusals are git's messages that the remote does not accept the user.
var refusals = []string{
	"Permission denied (", "could not read Username", "could not read Password", "Authentication failed", "terminal prompts disabled",
	"Host key verification failed", "returned error: 401", "returned error: 403",
}

// failed returns the error for a git process that failed at the remote.
func (r *Remote) failed(what string, a answer) error {
	for _, words := range refusals {
		if strings.Contains(a.err, words) {
			return agency.Errorf(agency.CodeForgeAuth, "%s denies you access: %s", r.Shown(), lastLine(a.err)).
				WithHint("git must reach it without asking you: try git ls-remote %s", plain.ShellWord(plain.SafeURL(r.url)))
		}
	}
	return agency.Errorf(agency.CodeForgeFailed, "%s %s: %s", what, r.Shown(), said(a.err)).
		WithHint("try it by hand: git ls-remote %s", plain.ShellWord(plain.SafeURL(r.url)))
}

// advice are git's lines about an unreachable remote that do not name the cause.
var advice = []string{
	"fatal: Could not read from remote repository.", "Please make sure you have the correct access rights", "and the repository exists.",
}

// said returns what git and the remote wrote, in one line that is safe to show.
func said(text string) string {
	words := []string{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		line = strings.TrimSpace(plain.Visible(line))
		if line != "" && !strings.HasPrefix(line, "hint: ") && !strings.HasPrefix(line, "To ") && !slices.Contains(advice, line) {
			words = append(words, line)
		}
	}
	return clip(strings.Join(words, "; "))
}
