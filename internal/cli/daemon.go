package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
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
			Use: "status", Short: "Say whether the daemon runs; exit status 3 if not", Long: "Says whether the daemon runs. One that is starting or stopping is there, and is said to be; exit status 3 is that there is none.", Example: "  agency daemon status", Args: takes(),
		}, func(cmd *cobra.Command, _ []string) error { return a.daemonStatus(cmd.Context(), false) }),
		command(cobra.Command{
			Use: "stop", Short: "Stop the daemon; runs go on", Long: "Stops the daemon, and returns when it is gone. Runs go on. Commands that follow, such as ls --watch, wait for the next daemon; any\nother command starts it.", Example: "  agency daemon stop", Args: takes(),
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
	if errors.Is(err, api.ErrNobody) && !start {
		return a.unheard(client.Socket)
	}
	if err != nil {
		return err
	}
	return a.print(daemonState{true, status}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "running, pid %d, version %s, %s\nsocket %s\nlog    %s\n",
			status.PID, status.Version, count(status.LiveRuns, "live run"), status.Socket, status.Log)
		if c := &status.Config; c.Problem != "" {
			_, _ = fmt.Fprintf(w, "config not taken over, the one before holds: %s\n", term.SafeLine(c.Problem))
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

// unheard tells of a daemon that does not listen: there is none, or it is on its way up or down.
func (a *App) unheard(socket string) error {
	cfg, err := a.places()
	if err != nil {
		return err
	}
	holder, err := a.DaemonHolder(cfg.Home)
	if err != nil {
		return err
	}
	if !holder.Held {
		a.status = agency.ExitNotFound
		return a.print(map[string]any{"running": false, "socket": socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "not running") })
	}
	return a.print(map[string]any{"running": true, "doing": holder.Doing, "pid": holder.PID, "socket": socket}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s, pid %d; it does not listen on %s\n", term.SafeLine(holder.Doing), holder.PID, term.SafeLine(socket))
	})
}

// awaitNext returns when a daemon that was told to end has been followed by another one; it does not wait for one that ended otherwise.
// Several parts of a command may wait, and one of them tells.
func (a *App) awaitNext(ctx context.Context, home string) error {
	a.awaiting.Lock()
	defer a.awaiting.Unlock()
	holder, err := a.DaemonHolder(home)
	if err != nil || ctx.Err() != nil || !holder.Stopped() {
		return errors.Join(err, ctx.Err())
	}
	defer a.passing("agency: the daemon was stopped; this goes on when it is started again")()
	for {
		select {
		case <-time.After(nextEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
		holder, err = a.DaemonHolder(home)
		if begun := !holder.Stopped() && (!holder.Held || holder.Doing == api.DoingServe); err != nil || begun {
			return err
		}
	}
}

// passing tells people what holds until the function that it returns is called. On a terminal it stands where the cursor is, and is gone
// afterwards: a list that is kept up to date may be painted above, up to the last row.
func (a *App) passing(text string) (over func()) {
	columns, ok := term.Columns(a.Err)
	if !ok || a.json {
		a.chat("%s", text)
		return func() {}
	}
	_, _ = io.WriteString(a.Err, term.Fit(text, columns-1))
	return func() { _, _ = io.WriteString(a.Err, "\r\x1b[2K") }
}

// nextEvery is how often those who follow look for the next daemon.
const nextEvery = 250 * time.Millisecond

// stopTimeout is how long a daemon may take to end. It exceeds what a stop takes at most.
const stopTimeout = 30 * time.Second

// daemonStop ends the daemon and waits until it has let go of the data root, so that what comes next does not meet it. One that is
// ending already is waited for, and one that is still starting is told to stop when it listens.
func (a *App) daemonStop(ctx context.Context) error {
	cfg, err := a.places()
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	client.Start, client.Version = nil, ""
	var told *api.DaemonStatusResponse
	words := "not running"
	for deadline := time.Now().Add(stopTimeout); ; {
		if told == nil {
			status, err := api.Call(ctx, client, api.StopDaemon, api.Empty{})
			switch {
			case err == nil:
				told, words = &status, fmt.Sprintf("stopped; %s going on", count(status.LiveRuns, "live run"))
			case agency.IsCode(err, agency.CodeDaemonLost): // as it ended; the lock tells
				words = "stopped"
			case !errors.Is(err, api.ErrNobody):
				return err
			}
		}
		holder, err := a.DaemonHolder(cfg.Home)
		switch {
		case err != nil:
			return err
		case !holder.Held, told != nil && holder.PID != 0 && holder.PID != told.PID: // the next one is there already
			return a.print(map[string]any{"running": false, "socket": client.Socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, words) })
		case time.Now().After(deadline):
			return agency.Errorf(agency.CodeInternal, "the daemon (pid %d) was told to stop but is still there", holder.PID).WithHint("agency daemon logs")
		case told == nil:
			words = "stopped"
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
		return a.print(map[string]any{"path": path, "text": string(data)}, func(w io.Writer) { _, _ = io.WriteString(w, term.SafeText(string(data))) })
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
