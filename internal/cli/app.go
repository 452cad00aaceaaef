// Package cli is the command line: one file per command, each of which parses, calls the API and prints text or an envelope.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// App is what every command works with: the terminal, the environment, and the parts that only main can give.
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

	out        *output // to write to Out
	json       bool
	configPath string
	cfg        *config.Config
	cfgErr     error      // what is wrong with cfg
	asks       bool       // exit status 1 is an answer of the command, so an error has another one
	status     int        // exit status of a command that did its work and still has something to say
	awaiting   sync.Mutex // held by who waits for the next daemon
}

// Main runs one command and returns its exit status.
func (a *App) Main(ctx context.Context, args []string) int {
	a.out = &output{w: a.Out}
	a.Env = config.Absolute(a.Env, a.Dir) // the daemon reads the same file, and runs elsewhere
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	err := root.ExecuteContext(ctx)
	switch {
	case errors.Is(a.out.err, syscall.EPIPE):
		return agency.ExitBrokenPipe // whoever reads has seen enough
	case a.out.err != nil:
		err = agency.Errorf(agency.CodeInvalidPath, "write the output: %w", rootCause(a.out.err))
	case err == nil:
		return a.status
	case ctx.Err() != nil:
		return agency.ExitInterrupted // whoever pressed Ctrl-C knows
	}
	// The parser stops at the first mistake, which can stand before --json.
	a.json = a.json || slices.Contains(args, "--json")
	return a.fail(asUsage(err))
}

// output keeps the first error of a write and writes no more after it, so that what was lost cannot look like success.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// asUsage makes an error of the flag parser, the only ones that are not agency's own, one about usage.
func asUsage(err error) *agency.Error {
	if _, ok := errors.AsType[*agency.Error](err); ok {
		return agency.AsError(err)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return agency.Errorf(agency.CodeUsage, "%s", text).WithHint("agency --help")
}

// fail prints an error where it belongs and returns the exit status.
func (a *App) fail(e *agency.Error) int {
	exit := e.Code.Exit()
	if exit == agency.ExitError && a.asks {
		exit = agency.ExitUnknown
	}
	if a.json && api.Encode(a.out, api.Failure(e)) == nil {
		return exit
	}
	_, _ = fmt.Fprintf(a.Err, "agency: error: %s [%s]\n", term.SafeText(e.Message), e.Code)
	if e.Hint != "" {
		_, _ = fmt.Fprintf(a.Err, "agency: hint: %s\n", term.SafeText(e.Hint))
	}
	return exit
}

// print writes data as the one envelope, or calls text to write it for people.
func (a *App) print(data any, text func(w io.Writer)) error {
	if !a.json {
		text(a.out)
		return nil
	}
	return api.Encode(a.out, api.Success(data))
}

// printLine writes data as an envelope on one line, for streams.
func (a *App) printLine(data any) error {
	return api.EncodeLine(a.out, api.Success(data))
}

// chat writes a line for people only, beside the data.
func (a *App) chat(format string, args ...any) {
	if !a.json {
		_, _ = fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// config is the configuration, read once.
func (a *App) config() (*config.Config, error) {
	if a.cfg == nil {
		a.cfg, a.cfgErr = config.Load(a.callerConfig(), a.Env)
	}
	return a.cfg, a.cfgErr
}

// places is the configuration for commands that need only the data root and the socket of it: what is wrong with the rest
// is told once, and keeps nobody from stopping an agent.
func (a *App) places() (*config.Config, error) {
	first := a.cfg == nil
	cfg, err := a.config()
	if cfg == nil {
		return nil, err
	}
	if err != nil && first {
		a.chat("agency: note: %s; going on with defaults", term.SafeLine(err.Error()))
	}
	return cfg, nil
}

// callerConfig is the configuration file that --config names, absolute, for the daemon to read; empty is the default one.
func (a *App) callerConfig() string {
	if a.configPath == "" {
		return ""
	}
	return a.absolute(a.configPath)
}

// client talks to the daemon and starts one where there is none.
func (a *App) client() (*api.Client, error) {
	// A command lives for milliseconds: to collect garbage before 16 MB are in use takes longer than it saves.
	debug.SetGCPercent(400)
	cfg, err := a.places()
	if err != nil {
		return nil, err
	}
	client := api.NewClient(cfg.Socket, a.Version, func(ctx context.Context) error {
		if a.cfgErr != nil {
			return a.cfgErr // with defaults a daemon could look for its agents on the wrong tmux server
		}
		if cfg.SocketNote != "" {
			a.chat("agency: %s", cfg.SocketNote)
		}
		return a.SpawnDaemon(ctx, cfg, a.callerConfig(), a.Env)
	})
	client.Holder = func() (api.Holder, error) { return a.DaemonHolder(cfg.Home) }
	client.AwaitNext = func(ctx context.Context) error { return a.awaitNext(ctx, cfg.Home) }
	client.Header = a.identity()
	return client, nil
}

// identity proves to be the run that this process runs in; below no run it is empty.
func (a *App) identity() http.Header {
	run := a.getenv("AGENCY_RUN_ID")
	if run == "" {
		return nil
	}
	return http.Header{
		api.RunHeader: {run}, api.AttemptHeader: {a.getenv("AGENCY_ATTEMPT")}, api.TokenHeader: {a.getenv("AGENCY_TOKEN")},
	}
}

// call runs one operation.
func call[Req, Resp any](ctx context.Context, a *App, op api.Operation[Req, Resp], req Req) (Resp, error) {
	client, err := a.client()
	if err != nil {
		var none Resp
		return none, err
	}
	return api.Call(ctx, client, op, req)
}

// colour says whether w may be given colours.
func (a *App) colour(w io.Writer) bool {
	if _, ok := term.Columns(w); !ok {
		return false
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

func (a *App) getenv(name string) string {
	for _, kv := range slices.Backward(a.Env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// command makes a cobra command whose errors are all agency's own.
func command(c cobra.Command, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			e := agency.AsError(err)
			if e.Code == agency.CodeNotGitRepo && cmd.Flags().Lookup("repo") == nil && strings.Contains(e.Hint, "--repo") {
				e = e.WithHint("cd into a repository, or make one: git init")
			}
			return e
		}
		return nil
	}
	c.DisableFlagsInUseLine = true
	return &c
}

// textTable is textRows as one text, for the terminal that the output is.
func (a *App) textTable(rows [][]string) string {
	return strings.Join(term.TextRows(rows, a.room()), "\n") + "\n"
}

// room is how many columns the output has, if it is a terminal; 0 is no end of them.
func (a *App) room() int {
	room, _ := term.Columns(a.Out)
	return room
}
