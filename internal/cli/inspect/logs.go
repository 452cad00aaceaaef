package inspect

import (
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/duration"
)

// logsOptions are the flags and dependencies of agency logs.
type logsOptions struct {
	*command.Deps

	follow, stderr, wire bool
	attempt, tail        int
	since                string
}

// NewLogs returns the command agency logs.
func NewLogs(d *command.Deps) *cobra.Command {
	o := &logsOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "logs RUN",
		Aliases: []string{"log"},
		Short:   "Print what a run's agent wrote",
		GroupID: "inspect",
		Long: `Prints what the agent of a run wrote. Into a file or a pipe the bytes are as the
agent wrote them; on a terminal, agency removes escape sequences and control characters.`,
		Example: `  agency logs fix-login
  agency logs -f -n 20 fix-login
  agency logs fix-login --since 10m > part.log
  agency logs --wire fix-login | tail -1`,
		Args: command.Takes("RUN"),
	}, o.run)
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "print new output until the agent has ended")
	f.BoolVar(&o.stderr, "stderr", false, "print only the error stream of a headless agent")
	f.BoolVar(&o.wire, "wire", false, "print what the agent said in its own protocol, as its program wrote it")
	f.IntVar(&o.attempt, "attempt", 0, "print the log of attempt `N` (default: the newest)")
	f.IntVarP(&o.tail, "tail", "n", 0, "print only the last `N` lines, and with -f new ones (default: all)")
	f.StringVar(&o.since, "since", "", "print only output since `TIME`: 10m, or 2026-01-31T15:04:05Z")
	cmd.ValidArgsFunction = complete.Runs(d)
	_ = cmd.RegisterFlagCompletionFunc("attempt", complete.Attempts(d))
	return cmd
}

func (o *logsOptions) run(cmd *cobra.Command, args []string) error {
	req := api.LogsRequest{Run: args[0], Attempt: o.attempt, Follow: o.follow, Stream: "runner"}
	if o.stderr {
		req.Stream = "stderr"
	}
	switch {
	case o.wire && o.stderr:
		return agency.Errorf(agency.CodeUsage, "--wire and --stderr exclude each other")
	case o.wire && o.since != "":
		return agency.Errorf(agency.CodeUsage, "--wire and --since exclude each other").WithHint("agency logs --wire --tail 100 RUN")
	case o.wire:
		req.Stream = "wire"
	}
	if o.follow && o.JSON {
		return agency.Errorf(agency.CodeUsage, "--follow and --json exclude each other")
	}
	if o.tail < 0 {
		return agency.Errorf(agency.CodeUsage, "--tail is %d; it cannot be negative", o.tail).WithHint("for example: --tail 20")
	}
	if o.since != "" {
		from, err := parseSince(o.since, o.Now())
		if err != nil {
			return err
		}
		req.SinceMS = from.UnixMilli()
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("tail") {
		req.Tail = &o.tail
	}
	return o.PrintLog(cmd.Context(), client, req)
}

func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := duration.Parse(text); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, agency.Errorf(agency.CodeUsage, "--since is %q, neither a duration nor a time", text).WithHint("--since 10m, --since 2d, or --since 2026-01-31T15:04:05Z")
}
