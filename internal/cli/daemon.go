package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
)

func (a *App) daemonCommand() *cobra.Command {
	return group(cobra.Command{
		Use:     "daemon",
		Short:   "Start, stop and look at the daemon",
		GroupID: "maintain",
		Long:    "The daemon keeps the record and supervises the runs. Every command that needs it starts it; runs go on while it is down.",
		Example: "  agency daemon status",
	},
		command(cobra.Command{
			Use: "start", Short: "Start the daemon if it does not run", Example: "  agency daemon start", Args: takes(),
		}, func(cmd *cobra.Command, _ []string) error { return a.daemonStatus(cmd.Context(), true) }),
		command(cobra.Command{
			Use: "status", Short: "Say whether the daemon runs; exit status 3 if not", Example: "  agency daemon status", Args: takes(),
		}, func(cmd *cobra.Command, _ []string) error { return a.daemonStatus(cmd.Context(), false) }),
		command(cobra.Command{
			Use: "stop", Short: "Stop the daemon; runs go on", Example: "  agency daemon stop", Args: takes(),
		}, func(cmd *cobra.Command, _ []string) error { return a.daemonStop(cmd.Context()) }),
		command(cobra.Command{
			Use: "run", Short: "Run the daemon in the foreground", Example: "  agency daemon run", Args: takes(),
		}, func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			path := a.callerConfig() // absolute: the daemon leaves this directory
			return a.RunDaemon(cmd.Context(), cfg, func() (*config.Config, error) { return config.Load(path, a.Env) })
		}),
		a.daemonLogsCommand(),
	)
}

// daemonStatus asks the daemon, and starts one first if start is set.
func (a *App) daemonStatus(ctx context.Context, start bool) error {
	if start {
		if _, err := a.config(); err != nil {
			return err
		}
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	if !start {
		client.Start = nil
		client.Version = "" // a daemon of any version may tell
	}
	status, err := api.Call(ctx, client, api.DaemonStatus, api.Empty{})
	if agency.IsCode(err, agency.CodeDaemonConnectFailed) && !start {
		a.status = agency.ExitNotFound
		return a.print(map[string]any{"running": false, "socket": client.Socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "not running") })
	}
	if err != nil {
		return err
	}
	return a.print(daemonState{true, status}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "running, pid %d, version %s, %s\nsocket %s\nlog    %s\n",
			status.PID, status.Version, count(status.LiveRuns, "live run"), status.Socket, status.Log)
		if c := &status.Config; c.Problem != "" {
			_, _ = fmt.Fprintf(w, "config not taken over, the one before holds: %s\n", safeLine(c.Problem))
		}
		for _, key := range status.Config.NeedsRestart {
			_, _ = fmt.Fprintf(w, "config %s changed, and holds when the daemon starts again\n", key)
		}
	})
}

// daemonState is what the daemon commands print with --json.
type daemonState struct {
	Running bool `json:"running"`
	api.DaemonStatusResponse
}

// daemonStop ends the daemon and waits until its socket is gone.
func (a *App) daemonStop(ctx context.Context) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	client.Start, client.Version = nil, ""
	status, err := api.Call(ctx, client, api.StopDaemon, api.Empty{})
	if agency.IsCode(err, agency.CodeDaemonConnectFailed) {
		return a.print(map[string]any{"running": false, "socket": client.Socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "not running") })
	}
	if err != nil {
		return err
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		// The socket goes last. One that was killed while it stopped leaves its socket.
		_, err := os.Lstat(client.Socket)
		if errors.Is(err, os.ErrNotExist) || errors.Is(syscall.Kill(status.PID, 0), syscall.ESRCH) {
			break
		}
		if time.Now().After(deadline) {
			return agency.Errorf(agency.CodeInternal, "the daemon (pid %d) was told to stop but is still there", status.PID).WithHint("agency daemon logs")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return a.print(map[string]any{"running": false, "socket": client.Socket}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "stopped; %s going on\n", count(status.LiveRuns, "live run"))
	})
}

func (a *App) daemonLogsCommand() *cobra.Command {
	return command(cobra.Command{
		Use: "logs", Short: "Print the end of the daemon's log", Example: "  agency daemon logs", Args: takes(),
	}, func(*cobra.Command, []string) error {
		cfg, err := a.places()
		if err != nil {
			return err
		}
		path := a.DaemonLog(cfg.Home)
		data, err := tail(path, 64<<10)
		if err != nil {
			return agency.Errorf(agency.CodeInvalidPath, "read the daemon's log %s: %w", path, err)
		}
		return a.print(map[string]any{"path": path, "text": string(data)}, func(w io.Writer) { _, _ = io.WriteString(w, safeText(string(data))) })
	})
}

// tail reads the last part of a file, from the beginning of a line.
func tail(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, rootCause(err)
	}
	offset := max(info.Size()-limit, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, offset, limit))
	if err != nil {
		return nil, rootCause(err)
	}
	if offset > 0 {
		for i, b := range data {
			if b == '\n' {
				return data[i+1:], nil
			}
		}
	}
	return data, nil
}
