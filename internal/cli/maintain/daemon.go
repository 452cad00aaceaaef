package maintain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// DaemonParts are what only main can provide to the commands about the daemon.
type DaemonParts struct {
	// Run is the daemon itself, in the foreground, until ctx ends. load reads its configuration
	// again.
	Run func(ctx context.Context, cfg *config.Config, load func() (*config.Config, error)) error
	// Log returns the path of a data root's daemon log.
	Log func(home string) string
}

// NewDaemon returns the command agency daemon.
func NewDaemon(d *command.Deps, parts DaemonParts) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "daemon",
		Short:   "Start, stop and inspect the daemon",
		GroupID: "maintain",
		Long: `The daemon keeps the record and supervises the runs. Every command that
needs it starts it; runs continue while it is down.`,
		Example: "  agency daemon status",
	},
		command.New(cobra.Command{
			Use: "start", Short: "Start the daemon if it does not run", Example: "  agency daemon start", Args: command.Takes(),
		}, func(cmd *cobra.Command, _ []string) error { return daemonStatus(cmd.Context(), d, true) }),
		command.New(cobra.Command{
			Use: "status", Short: "Show whether the daemon runs; exit status 3 if not", Long: `Shows whether the daemon runs, is starting or is stopping. Exit status 3
means that there is no daemon.`, Example: "  agency daemon status", Args: command.Takes(),
		}, func(cmd *cobra.Command, _ []string) error { return daemonStatus(cmd.Context(), d, false) }),
		command.New(cobra.Command{
			Use: "stop", Short: "Stop the daemon; runs continue", Long: `Stops the daemon, and returns when it has ended. Runs continue. Commands
that follow, such as ls --watch, wait for the next daemon; any other command starts it.`, Example: "  agency daemon stop", Args: command.Takes(),
		}, func(cmd *cobra.Command, _ []string) error { return daemonStop(cmd.Context(), d) }),
		command.New(cobra.Command{
			Use: "restart", Short: "Stop the daemon and start it again; runs continue", Example: "  agency daemon restart", Args: command.Takes(),
		}, func(cmd *cobra.Command, _ []string) error {
			if _, _, err := endDaemon(cmd.Context(), d); err != nil {
				return err
			}
			return daemonStatus(cmd.Context(), d, true)
		}),
		command.New(cobra.Command{
			Use: "run", Short: "Run the daemon in the foreground", Example: "  agency daemon run", Args: command.Takes(),
		}, func(cmd *cobra.Command, _ []string) error {
			cfg, err := d.Config()
			if err != nil {
				return err
			}
			path := d.CallerConfig() // absolute: the daemon leaves this directory
			return parts.Run(cmd.Context(), cfg, func() (*config.Config, error) { return config.Load(path, d.Env) })
		}),
		newDaemonLogs(d, parts.Log),
	)
}

// daemonStatus asks the daemon, and starts one first if start is set.
func daemonStatus(ctx context.Context, d *command.Deps, start bool) error {
	connect := d.RunningDaemon
	if start {
		connect = d.Client
	}
	client, err := connect()
	if err != nil {
		return err
	}
	status, err := api.Call(ctx, client, api.DaemonStatus, api.Empty{})
	if errors.Is(err, api.ErrNoDaemon) && !start {
		return unheard(d, client.Socket)
	}
	if err != nil {
		return err
	}
	return d.Print(daemonState{true, status}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "running, pid %d, version %s, %s\nsocket %s\nlog    %s\n",
			status.PID, status.Version, command.Count(status.LiveRuns, "live run"), status.Socket, status.Log)
		if c := &status.Config; c.Problem != "" {
			_, _ = fmt.Fprintf(w, "config not loaded, the previous one is still used: %s\n", term.SafeLine(c.Problem))
		}
		for _, key := range status.Config.NeedsRestart {
			_, _ = fmt.Fprintf(w, "config %s changed; the new value takes effect when the daemon starts again\n", key)
		}
	})
}

// daemonState is what the daemon commands print with --json.
type daemonState struct {
	Running bool `json:"running"`
	api.DaemonStatusResponse
}

// unheard returns the state of a daemon that does not listen: none runs, or it is starting or
// stopping.
func unheard(d *command.Deps, socket string) error {
	cfg, err := d.Places()
	if err != nil {
		return err
	}
	holder, err := d.DaemonHolder(cfg.Home)
	if err != nil {
		return err
	}
	if !holder.Locked {
		d.Status = agency.ExitNotFound
		return d.Print(map[string]any{"running": false, "socket": socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "not running") })
	}
	return d.Print(map[string]any{"running": true, "doing": holder.Doing, "pid": holder.PID, "socket": socket}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s, pid %d; it does not listen on %s\n", term.SafeLine(holder.Doing), holder.PID, term.SafeLine(socket))
	})
}

// stopTimeout is how long a daemon may take to end. It exceeds the longest stop.
const stopTimeout = 30 * time.Second

func daemonStop(ctx context.Context, d *command.Deps) error {
	socket, outcome, err := endDaemon(ctx, d)
	if err != nil {
		return err
	}
	return d.Print(map[string]any{"running": false, "socket": socket}, func(w io.Writer) { _, _ = fmt.Fprintln(w, outcome) })
}

// endDaemon stops the daemon and waits until it has released the data root, so that the next
// command does not meet it. It also waits for a daemon that is already ending, and stops one that
// is starting as soon as it listens. It returns the socket of the daemon, and in words what was
// done.
func endDaemon(ctx context.Context, d *command.Deps) (socket, outcome string, err error) {
	cfg, err := d.Places()
	if err != nil {
		return "", "", err
	}
	client, err := d.RunningDaemon()
	if err != nil {
		return "", "", err
	}
	var answered *api.DaemonStatusResponse
	words := "not running"
	for deadline := time.Now().Add(stopTimeout); ; {
		if answered == nil {
			status, err := api.Call(ctx, client, api.StopDaemon, api.Empty{})
			switch {
			case err == nil:
				answered, words = &status, fmt.Sprintf("stopped; %s still live", command.Count(status.LiveRuns, "run"))
			case agency.IsCode(err, agency.CodeDaemonLost): // the daemon has ended; the lock shows that
				words = "stopped"
			case !errors.Is(err, api.ErrNoDaemon):
				return "", "", err
			}
		}
		holder, err := d.DaemonHolder(cfg.Home)
		switch {
		case err != nil:
			return "", "", err
		case !holder.Locked, answered != nil && holder.PID != 0 && holder.PID != answered.PID: // the next daemon runs already
			return client.Socket, words, nil
		case time.Now().After(deadline):
			return "", "", agency.Errorf(agency.CodeInternal, "the daemon (pid %d) was asked to stop but is still there", holder.PID).WithHint("agency daemon logs")
		case answered == nil:
			words = "stopped"
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
}

// daemonLogsOptions are the flags and dependencies of agency daemon logs.
type daemonLogsOptions struct {
	*command.Deps

	path   func(home string) string
	follow bool
	lines  int
}

// newDaemonLogs returns the command agency daemon logs.
func newDaemonLogs(d *command.Deps, path func(home string) string) *cobra.Command {
	o := &daemonLogsOptions{Deps: d, path: path}
	cmd := command.New(cobra.Command{
		Use: "logs", Short: "Print the end of the daemon's log", Example: "  agency daemon logs\n  agency daemon logs -f -n 20", Args: command.Takes(),
	}, o.run)
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "print new lines as they come")
	cmd.Flags().IntVarP(&o.lines, "lines", "n", 0, "print only the last `N` lines (default: the last 64 KB)")
	return cmd
}

func (o *daemonLogsOptions) run(cmd *cobra.Command, _ []string) error {
	if o.lines < 0 || o.follow && o.JSON {
		return agency.Errorf(agency.CodeUsage, "-n must be 0 or more, and --follow and --json exclude each other").WithHint("agency daemon logs -f -n 20")
	}
	cfg, err := o.Places()
	if err != nil {
		return err
	}
	log := o.path(cfg.Home)
	data, start, err := tail(log, 64<<10)
	if err != nil {
		return agency.Errorf(agency.CodeInvalidPath, "read the daemon's log %s: %w", log, err)
	}
	size := int64(len(data))
	if kept := bytes.SplitAfter(data, []byte("\n")); cmd.Flags().Changed("lines") && len(kept) > o.lines+1 {
		data = bytes.Join(kept[len(kept)-o.lines-1:], nil) // this includes the text after the last newline
	}
	err = o.Print(map[string]any{"path": log, "text": string(data)}, func(w io.Writer) { _, _ = io.WriteString(w, term.SafeText(string(data))) })
	if err != nil || !o.follow {
		return err
	}
	return o.followLog(cmd.Context(), log, start+size)
}

// followLog prints what is appended to a file after an offset, until ctx ends. A file that became
// shorter is a new one, and is read from its beginning.
func (o *daemonLogsOptions) followLog(ctx context.Context, path string, offset int64) error {
	for {
		f, err := command.OpenRegular(path)
		if err != nil {
			return agency.Errorf(agency.CodeInvalidPath, "read the daemon's log %s: %w", path, err)
		}
		if info, err := f.Stat(); err == nil && info.Size() < offset {
			offset = 0
		}
		n, err := io.Copy(safeLines{o.Out}, io.NewSectionReader(f, offset, math.MaxInt64-offset))
		_ = f.Close()
		offset += n
		if err != nil {
			return agency.Errorf(agency.CodeInvalidPath, "read the daemon's log %s: %w", path, command.RootCause(err))
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// safeLines writes text without characters that control a terminal.
type safeLines struct{ w io.Writer }

func (s safeLines) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.w, term.SafeText(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// followEvery is how often daemon logs -f looks for new lines.
const followEvery = 200 * time.Millisecond

// tail reads the last part of a file, from the beginning of a line, and returns the offset of that
// line.
func tail(path string, limit int64) (data []byte, start int64, err error) {
	f, err := command.OpenRegular(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, command.RootCause(err)
	}
	offset := max(info.Size()-limit, 0)
	data, err = io.ReadAll(io.NewSectionReader(f, offset, limit))
	if err != nil {
		return nil, 0, command.RootCause(err)
	}
	if offset > 0 {
		for i, b := range data {
			if b == '\n' {
				return data[i+1:], offset + int64(i) + 1, nil
			}
		}
	}
	return data, offset, nil
}
