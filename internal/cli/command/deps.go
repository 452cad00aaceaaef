// Package command is what every command of the program is built from: its dependencies, output,
// arguments and flags.
package command

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/trace"
)

// Deps are the dependencies of commands: where to write, the environment of the caller, and a
// client of the daemon.
type Deps struct {
	*Output

	Version string
	In      *os.File
	Env     []string // NAME=value
	Dir     string   // working directory of the caller; empty when it is gone
	Now     func() time.Time

	// SchemaVersion returns the newest version of the record that a daemon of this program can read.
	SchemaVersion func() int
	// SpawnDaemon starts a daemon with env in the background and returns when it answers.
	// configPath is absolute; empty is the default.
	SpawnDaemon func(ctx context.Context, cfg *config.Config, configPath string, env []string) error
	// DaemonHolder returns the process that owns a data root, or owned it last.
	DaemonHolder func(home string) (api.Holder, error)

	// Waits shows what the command waits for, until the function that it returns is called. When
	// nil, the text is printed.
	Waits func(text string) (over func())

	// Trace collects the steps of the command for AGENCY_TRACE; nil without it.
	Trace *trace.Trace
	// ConfigPath is the file that --config names.
	ConfigPath string

	cfg        *config.Config
	cfgErr     error // what is wrong with cfg
	connecting sync.Once
	outside    sync.Once // prints once that a command in a sandbox waits
	client     *api.Client
	clientErr  error
	awaiting   sync.Mutex // held by the part of a command that waits for the next daemon
}

// ConfigError returns what is wrong with the configuration, if it was read and something is.
func (d *Deps) ConfigError() error { return d.cfgErr }

// Config returns the configuration, which it reads once.
func (d *Deps) Config() (*config.Config, error) {
	if d.cfg == nil {
		d.cfg, d.cfgErr = config.Load(d.CallerConfig(), d.Env)
	}
	return d.cfg, d.cfgErr
}

// Places returns the configuration for commands that need only its data root and socket, such as
// one that ends an agent. A mistake in the rest must not prevent these; Places warns of it once.
func (d *Deps) Places() (*config.Config, error) {
	first := d.cfg == nil
	cfg, err := d.Config()
	if cfg == nil {
		return nil, err
	}
	if err != nil && first {
		d.Chat("agency: note: %s; agency continues with the defaults", term.SafeLine(err.Error()))
	}
	return cfg, nil
}

// CallerConfig returns the absolute path of the file that --config names, for the daemon to read;
// empty means the default one.
func (d *Deps) CallerConfig() string {
	if d.ConfigPath == "" {
		return ""
	}
	return d.Absolute(d.ConfigPath)
}

// Getenv returns the variable of the caller's environment; empty when there is none.
func (d *Deps) Getenv(name string) string { return agency.Environ(d.Env).Lookup(name) }

// Absolute returns a path that the caller named as an absolute one.
func (d *Deps) Absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.Dir, path)
}

// InsideRun reports whether the caller is an agent, or a process that an agent started.
func (d *Deps) InsideRun() bool { return d.Getenv("AGENCY_RUN_ID") != "" }

// OnTerminal reports whether a user can read and type.
func (d *Deps) OnTerminal() bool {
	_, out := term.Columns(d.Terminal)
	_, in := term.Columns(d.In)
	return in && out
}
