package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"agency"
)

// FindExec finds the program of a runner as the caller would: a bare name in the PATH of env, "~/"
// under the HOME of env, any other relative path in dir. The result is absolute, and the program
// itself where an npm script only launches it. It fails with E_RUNNER_NOT_CONFIGURED, naming what
// it looked for and what is there instead.
func FindExec(r agency.Runner, name, dir string, env []string) (string, error) {
	missing := func(format string, args ...any) (string, error) {
		return "", agency.Errorf(agency.CodeRunnerNotConfigured, format, args...).
			WithHint("install it, or set its path in the configuration: [runners.%s] exec = \"/path/to/it\"", table(r))
	}
	rest, underHome := strings.CutPrefix(name, "~/")
	path := name
	switch {
	case name == "":
		return missing("no program is configured for this runner")
	case underHome:
		home := agency.Environ(env).Lookup("HOME")
		if !filepath.IsAbs(home) {
			return missing("%s cannot be found: HOME is %q", name, home)
		}
		path = filepath.Join(home, rest)
	case !strings.Contains(name, "/"):
		found, err := findInPath(name, agency.Environ(env).Lookup("PATH"), missing)
		return native(found), err
	case !filepath.IsAbs(name):
		path = filepath.Join(dir, name)
	}
	if problem := notExecutable(path); problem != "" {
		return missing("%s %s", path, problem)
	}
	return native(filepath.Clean(path)), nil
}

// WithInstalled adds to an E_RUNNER_NOT_CONFIGURED which coding agents are in the PATH of env. It
// returns any other error, and nil, unchanged.
func WithInstalled(err error, env []string) error {
	if !agency.IsCode(err, agency.CodeRunnerNotConfigured) {
		return err
	}
	e, found := agency.AsError(err), []string{}
	for _, a := range Agents() {
		if _, missing := FindExec(agency.Runner{Kind: a.Kind}, a.Program, "/", env); missing == nil {
			found = append(found, string(a.Kind))
		}
	}
	if len(found) == 0 {
		return e.WithHint("%s; no coding agent that agency knows is in PATH", e.Hint)
	}
	return e.WithHint("in PATH: %s, so --runner %s works; or %s", strings.Join(found, ", "), found[0], e.Hint)
}

// native returns the program behind a launcher: npm packages of native programs have bin/NAME.js,
// which finds the package of the platform and starts NAME from its vendor folder, some as a child.
// A killed launcher would leave that child running. Any other path is returned unchanged.
func native(path string) string {
	arch, ok := map[string][2]string{"amd64": {"x64", "x86_64"}, "arm64": {"arm64", "aarch64"}}[runtime.GOARCH]
	system, known := map[string]string{"linux": "unknown-linux-musl", "darwin": "apple-darwin"}[runtime.GOOS]
	script, err := filepath.EvalSymlinks(path)
	name, launches := strings.CutSuffix(filepath.Base(script), ".js")
	if !ok || !known || err != nil || !launches || filepath.Base(filepath.Dir(script)) != "bin" {
		return path
	}
	root := filepath.Dir(filepath.Dir(script))
	scope, ours := filepath.Dir(root), filepath.Base(root)+"-"+runtime.GOOS+"-"+arch[0]
	for _, place := range []string{
		filepath.Join(root, "node_modules", filepath.Base(scope), ours), filepath.Join(scope, ours), root,
	} {
		program := filepath.Join(place, "vendor", arch[1]+"-"+system, "bin", name)
		if notExecutable(program) == "" {
			return program
		}
	}
	return path
}

// findInPath skips the relative entries of PATH: their meaning depends on a folder with untrusted
// content.
func findInPath(name, path string, missing func(string, ...any) (string, error)) (string, error) {
	seen := ""
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, name)
		problem := notExecutable(candidate)
		if problem == "" {
			return candidate, nil
		}
		if problem != doesNotExist && seen == "" {
			seen = "; " + candidate + " " + problem
		}
	}
	return missing("%s is not in PATH%s", name, seen)
}

const doesNotExist = "does not exist"

// notExecutable returns why a path cannot be run, or "".
func notExecutable(path string) string {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return doesNotExist
	case err != nil:
		return "cannot be read"
	case info.IsDir():
		return "is a directory"
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case unix.Access(path, unix.X_OK) != nil:
		return "is not executable"
	}
	return ""
}

// Version returns the first line that an agent prints about its version, as safe text for a report.
// It is empty when the program prints nothing within five seconds, and for kinds whose programs
// need not know --version.
func Version(ctx context.Context, kind agency.RunnerKind, path string) string {
	if kind == agency.Shell || kind == agency.Custom {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 500 * time.Millisecond
	// The launchers of some agents start the real program as a child, which must not outlive them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out head
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return ""
	}
	return out.line()
}

// head keeps the beginning of what is written to it.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), 200-len(h.kept))]...)
	return len(p), nil
}

// line returns the first line without characters that a terminal could take for a command.
func (h *head) line() string {
	first, _, _ := strings.Cut(strings.TrimSpace(string(h.kept)), "\n")
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, first))
}
