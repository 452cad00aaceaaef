package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// logText is what logs prints with --json.
type logText struct {
	Run    string `json:"run"`
	Stream string `json:"stream"`
	Text   string `json:"text"`
	// Truncated says that the log goes on after Text.
	Truncated bool `json:"truncated"`
}

func (a *App) logsCommand() *cobra.Command {
	var follow, stderr bool
	var attempt int
	var since string
	cmd := command(cobra.Command{
		Use:     "logs RUN",
		Short:   "Print what a run's agent wrote",
		GroupID: "inspect",
		Long: `Prints what the agent of a run wrote. Into a file or a pipe the bytes are as the agent wrote them; on a terminal escape sequences and
control characters are taken out.`,
		Example: `  agency logs fix-login
  agency logs -f fix-login
  agency logs fix-login --since 10m > part.log`,
		Args: takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.LogsRequest{Run: args[0], Attempt: attempt, Follow: follow, Stream: "runner"}
		if stderr {
			req.Stream = "stderr"
		}
		if follow && a.json {
			return agency.Errorf(agency.CodeUsage, "--follow and --json exclude each other")
		}
		if since != "" {
			from, err := parseSince(since, a.Now())
			if err != nil {
				return err
			}
			req.SinceMS = from.UnixMilli()
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		return a.printLog(cmd.Context(), client, req)
	})
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on until the agent has ended")
	f.BoolVar(&stderr, "stderr", false, "only the error stream of a headless agent")
	f.IntVar(&attempt, "attempt", 0, "of attempt `N` (default: the newest)")
	f.StringVar(&since, "since", "", "only what was written since `TIME`: 10m, or 2026-01-31T15:04:05Z")
	cmd.ValidArgsFunction = a.completeRuns
	return cmd
}

// printLog prints the log of a run.
func (a *App) printLog(ctx context.Context, client *api.Client, req api.LogsRequest) error {
	log, err := client.Logs(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if a.json {
		data, err := io.ReadAll(io.LimitReader(log, logJSONLimit+1))
		if err != nil {
			return logError(err)
		}
		text := logText{Run: req.Run, Stream: req.Stream, Truncated: len(data) > logJSONLimit}
		text.Text = string(data[:min(len(data), logJSONLimit)])
		return a.print(text, nil)
	}
	if _, ok := term.Columns(a.Out); ok {
		err = term.CopySafe(a.out, log)
	} else {
		_, err = io.Copy(a.out, log)
	}
	if req.Follow && ctx.Err() != nil {
		return nil // whoever follows has seen enough; otherwise a part of the log is missing
	}
	return logError(err)
}

// logError says what kept a log from being read to its end; a nil error stays nil.
func logError(err error) error {
	if _, known := errors.AsType[*agency.Error](err); err == nil || known {
		return err
	}
	return agency.Errorf(agency.CodeDaemonConnectFailed, "read the log: %w", err)
}

// logJSONLimit is how much of a log fits into an envelope, in bytes.
const logJSONLimit = 64 << 20

func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := parseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, agency.Errorf(agency.CodeUsage, "--since is %q, neither a duration nor a time", text).WithHint("--since 10m, --since 2d, or --since 2026-01-31T15:04:05Z")
}
