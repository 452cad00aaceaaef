// Package cli is the command line. It assembles the commands, which have a folder for each group of
// the help: each parses its arguments, calls the API and prints text or an envelope.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/config"
	"agency/internal/trace"
)

// App is the program as main makes it: the terminal, the environment, and the parts that only main
// can provide.
type App struct {
	Version string
	In      *os.File
	Out     io.Writer
	Err     io.Writer
	Env     []string // NAME=value
	Dir     string   // working directory
	Now     func() time.Time

	// SchemaVersion returns the newest version of the record that a daemon of this program can read.
	SchemaVersion func() int
	// SpawnDaemon starts a daemon with env in the background and returns when it answers.
	// configPath is absolute; empty is the default.
	SpawnDaemon func(ctx context.Context, cfg *config.Config, configPath string, env []string) error
	// RunDaemon is the daemon itself, in the foreground, until ctx ends. load reads its
	// configuration again.
	RunDaemon func(ctx context.Context, cfg *config.Config, load func() (*config.Config, error)) error
	// DaemonLog is the path of a data root's daemon log.
	DaemonLog func(home string) string
	// DaemonHolder returns the process that owns a data root, or owned it last.
	DaemonHolder func(home string) (api.Holder, error)
	// RestoreDatabase replaces a data root's database by a backup, and returns where it kept the
	// old one.
	RestoreDatabase func(ctx context.Context, home, backup string) (kept string, err error)
	// RebuildDatabase adds to a data root's database what only the folders of runs know.
	RebuildDatabase func(ctx context.Context, home string) (*api.Rebuilt, error)
	// Exec replaces this process.
	Exec func(argv, env []string) error
}

// Main runs one command and returns its exit status.
func (a *App) Main(ctx context.Context, args []string) int {
	d := a.deps()
	end := d.Trace.Begin("command")
	defer a.writeTrace(d, end)
	root := a.root(d, args)
	root.SetArgs(args)
	root.SetOut(d.Out)
	root.SetErr(d.Err)
	root.SetIn(d.In)
	ran, err := root.ExecuteContextC(ctx)
	failed := d.Out.Failed()
	switch {
	case errors.Is(failed, syscall.EPIPE):
		return agency.ExitBrokenPipe // the reader has seen enough
	case failed != nil:
		err = agency.Errorf(agency.CodeInvalidPath, "write the output: %w", command.RootCause(failed))
	case err == nil:
		return d.Status
	case ctx.Err() != nil:
		return agency.ExitInterrupted // by the user's Ctrl-C
	}
	// The parser stops at the first mistake, which can be before --json.
	d.JSON = d.JSON || slices.Contains(args, "--json")
	return d.Fail(asUsage(err, ran.CommandPath()))
}

// deps returns the dependencies of the commands.
func (a *App) deps() *command.Deps {
	env := config.Absolute(a.Env, a.Dir) // the daemon reads the same file, and runs elsewhere
	d := &command.Deps{
		Output: command.NewOutput(a.Out, a.Err, env), Version: a.Version, In: a.In, Env: env, Dir: a.Dir, Now: a.Now,
		SchemaVersion: a.SchemaVersion, SpawnDaemon: a.SpawnDaemon, DaemonHolder: a.DaemonHolder,
	}
	if d.Getenv(trace.Variable) != "" {
		d.Trace = trace.New("agency")
	}
	return d
}

// writeTrace ends the span of the command and writes the trace into the file that AGENCY_TRACE
// names, if it names one. A failure is a warning.
func (a *App) writeTrace(d *command.Deps, end func()) {
	end()
	path := d.Getenv(trace.Variable)
	if path == "" {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.Dir, path)
	}
	var text bytes.Buffer
	err := trace.Write(&text, d.Trace.Spans())
	if err == nil {
		err = os.WriteFile(path, text.Bytes(), 0o600)
	}
	if err != nil {
		d.Warn([]string{fmt.Sprintf("%s: write %s: %s", trace.Variable, path, command.RootCause(err))})
	}
}

// exclusive matches the parser's error for flags that exclude each other; the second list has the
// given ones.
var exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.+)\] were all set$`)

// asUsage turns an error of the flag parser into a usage error of a command. All other errors are
// agency's own.
func asUsage(err error, of string) *agency.Error {
	if _, ok := errors.AsType[*agency.Error](err); ok {
		return agency.AsError(err)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if given := exclusive.FindStringSubmatch(text); given != nil {
		text = "--" + strings.ReplaceAll(given[1], " ", " and --") + " exclude each other"
	}
	return agency.Errorf(agency.CodeUsage, "%s", text).WithHint("%s --help", of)
}
