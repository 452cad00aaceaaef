// Each live run has a process of this program. By default the runtime wakes each of them every
// second to count the processors again.
//go:debug updatemaxprocs=0

// Command agency runs a team of coding agents on git repositories.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"

	"agency"
	"agency/internal/api"
	"agency/internal/cli"
	"agency/internal/collector"
	"agency/internal/config"
	"agency/internal/daemon"
	"agency/internal/killpoint"
	"agency/internal/limit"
	"agency/internal/proxy"
	"agency/internal/relay"
	"agency/internal/runner"
	"agency/internal/sandbox"
)

// version is set by the Makefile; go install leaves it empty.
var version string

func main() { os.Exit(run()) }

func run() int {
	dir, _ := os.Getwd() // empty when the folder is gone, which the commands report
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agency: error: cannot find the program itself:", err)
		return 1
	}
	if status, is := part(os.Args); is {
		return status
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := &cli.App{
		Version:       buildVersion(),
		In:            os.Stdin,
		Out:           os.Stdout,
		Err:           os.Stderr,
		Env:           os.Environ(),
		Dir:           dir,
		Now:           killpoint.Now,
		SchemaVersion: daemon.SchemaVersion,
		SpawnDaemon: func(ctx context.Context, cfg *config.Config, configPath string, env []string) error {
			if os.Getenv(agency.SandboxVariable) != "" {
				return agency.Errorf(agency.CodePermissionDenied, "an agent in a sandbox cannot start a daemon")
			}
			return daemon.Spawn(ctx, cfg, exe, configPath, env)
		},
		RunDaemon: func(ctx context.Context, cfg *config.Config, load func() (*config.Config, error)) error {
			return runDaemon(ctx, cfg, load, exe)
		},
		DaemonLog:    daemon.LogPath,
		DaemonHolder: daemon.LockHolder,
		RestoreDatabase: func(ctx context.Context, home, backup string) (string, error) {
			return daemon.RestoreDatabase(ctx, home, backup, killpoint.Now)
		},
		RebuildDatabase: func(ctx context.Context, home string) (*api.Rebuilt, error) {
			return daemon.RebuildDatabase(ctx, home, killpoint.Now)
		},
		Exec: func(argv, env []string) error {
			path, err := exec.LookPath(argv[0])
			if err != nil {
				return fmt.Errorf("find %s: %w", argv[0], err)
			}
			return syscall.Exec(path, argv, env)
		},
	}
	return app.Main(ctx, os.Args[1:])
}

// part runs this program as one of the processes that agency itself starts, if the arguments ask
// for that.
func part(args []string) (status int, is bool) {
	if len(args) == 3 && args[1] == "wrapper" {
		// The wrapper handles its own signals.
		return runner.Main(args[2], os.Stdin, os.Stdout, runner.Parts{
			Observe: collector.Output,
			Speak:   collector.Speaker,
			Relay:   func(l *agency.Launch) runner.Relay { return relay.New(l) },
			Proxy:   func(hosts []string, changed func(news bool)) runner.Proxy { return proxy.New(hosts, changed) },
		}), true
	}
	if len(args) > 3 && args[1] == "hold" {
		return runner.Hold(args[2], args[3:]), true
	}
	if len(args) > 3 && args[1] == "marked" {
		return runner.Marked(args[2], args[3:]), true
	}
	if len(args) > 2 && args[1] == sandbox.Inside {
		return sandbox.Enter(args[2:]), true
	}
	if len(args) == 3 && args[1] == sandbox.FirstInside {
		return sandbox.First(args[2], sandbox.Workings{SetMark: runner.SetMark, HangupHelps: runner.HangupHelps}), true
	}
	if len(args) > 3 && args[1] == sandbox.Carrier {
		return sandbox.Carry(args[2], args[3:]), true
	}
	if len(args) == 2 && args[1] == sandbox.Probe {
		return 0, true
	}
	if len(args) == 3 && args[1] == sandbox.Probe {
		return sandbox.Try(args[2]), true
	}
	if len(args) == 3 && args[1] == "hook" {
		collector.Hook(agency.RunnerKind(args[2]), os.Stdin)
		return 0, true
	}
	return 0, false
}

// runDaemon runs the daemon in this process. It reports the result of the start to a parent process
// that spawned it.
func runDaemon(ctx context.Context, cfg *config.Config, load func() (*config.Config, error), exe string) error {
	report := daemon.Reporter()
	left := limit.Leave() // leaves the control group of the run that started it, if one did
	d := &daemon.Daemon{
		Config:  cfg,
		Version: buildVersion(),
		Exec:    exe,
		Log:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel})),
		Now:     killpoint.Now,
		Load:    load,
		End:     os.Exit,
	}
	if left != nil {
		d.Log.Warn("leave the control group of the run that started the daemon", "err", left)
	}
	for {
		err := d.Run(ctx, func() { report(nil) })
		if !errors.Is(err, daemon.ErrAgain) {
			report(err)
			return err
		}
		d = d.Next()
	}
}

// buildVersion returns the version from the Makefile, or else the one that go install recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
