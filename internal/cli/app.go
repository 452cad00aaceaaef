// Package cli is the command line. It puts together the commands, which are in a room for each group of the help: each parses,
// calls the API and prints text or an envelope.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/config"
)

// App is the program as main makes it: the terminal, the environment, and the parts that only main can give.
type App struct {
	Version string
	In      *os.File
	Out     io.Writer
	Err     io.Writer
	Env     []string // NAME=value
	Dir     string   // working directory
	Now     func() time.Time

	// SpawnDaemon starts a daemon with env in the background and returns when it answers. configPath is absolute; empty is the default.
	SpawnDaemon func(ctx context.Context, cfg *config.Config, configPath string, env []string) error
	// RunDaemon is the daemon itself, in the foreground, until ctx ends. load reads its configuration again.
	RunDaemon func(ctx context.Context, cfg *config.Config, load func() (*config.Config, error)) error
	// DaemonLog is the path of a data root's daemon log.
	DaemonLog func(home string) string
	// DaemonHolder is who has a data root to himself, or had it last.
	DaemonHolder func(home string) (api.Holder, error)
	// RestoreDatabase puts a backup in the place of a data root's database, and says where the old one was kept.
	RestoreDatabase func(ctx context.Context, home, backup string) (kept string, err error)
	// RebuildDatabase brings what the folders of runs tell into a data root's database.
	RebuildDatabase func(ctx context.Context, home string) (*api.Rebuilt, error)
	// Exec replaces this process.
	Exec func(argv, env []string) error
}

// Main runs one command and returns its exit status.
func (a *App) Main(ctx context.Context, args []string) int {
	d := a.deps()
	root := a.root(d)
	root.SetArgs(args)
	root.SetOut(d.Out)
	root.SetErr(d.Err)
	root.SetIn(d.In)
	err := root.ExecuteContext(ctx)
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
	// The parser stops at the first mistake, which can stand before --json.
	d.JSON = d.JSON || slices.Contains(args, "--json")
	return d.Fail(asUsage(err))
}

// deps is what the commands are given.
func (a *App) deps() *command.Deps {
	env := config.Absolute(a.Env, a.Dir) // the daemon reads the same file, and runs elsewhere
	return &command.Deps{
		Output: command.NewOutput(a.Out, a.Err, env), Version: a.Version, In: a.In, Env: env, Dir: a.Dir, Now: a.Now,
		SpawnDaemon: a.SpawnDaemon, DaemonHolder: a.DaemonHolder,
	}
}

// asUsage makes an error of the flag parser, the only ones that are not agency's own, one about usage.
func asUsage(err error) *agency.Error {
	if _, ok := errors.AsType[*agency.Error](err); ok {
		return agency.AsError(err)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return agency.Errorf(agency.CodeUsage, "%s", text).WithHint("agency --help")
}
