package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
)

func (a *App) alertsCommand() *cobra.Command {
	var all, allRepos, follow bool
	var run string
	cmd := command(cobra.Command{
		Use:     "alerts",
		Short:   "List what somebody must act on",
		GroupID: "look",
		Long: `Lists the open alerts of this repository, oldest first. The watchdog opens one for each episode in which a worker is lost, failed,
waits for somebody, offers its work or hangs, and closes it when that is over. While all is well there are none.`,
		Example: `  agency alerts
  agency alerts --all-repos -f
  agency alerts ack a_01JD4QJ5T0Y7R8V6W3N2M1K0HG`,
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		req := api.ListAlertsRequest{Run: run, Resolved: all}
		if !allRepos && run == "" {
			req.Dir = a.Dir
		}
		resp, err := call(cmd.Context(), a, api.ListAlerts, req)
		if agency.IsCode(err, agency.CodeNotGitRepo) {
			req.Dir = ""
			resp, err = call(cmd.Context(), a, api.ListAlerts, req)
		}
		if err != nil {
			return err
		}
		if !follow {
			return a.print(resp, func(w io.Writer) {
				if len(resp.Alerts) == 0 {
					a.chat("nobody has to act")
					return
				}
				_, _ = io.WriteString(w, a.alertTable(resp.Alerts))
			})
		}
		return a.followAlerts(cmd.Context(), req)
	})
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "those that are over, too")
	f.BoolVar(&allRepos, "all-repos", false, "of every repository")
	f.StringVar(&run, "run", "", "only those of one `RUN`")
	f.BoolVarP(&follow, "follow", "f", false, "go on with new ones as they come")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRuns)
	cmd.AddCommand(a.alertsAck(), a.alertsSnooze())
	return cmd
}

// followAlerts prints alerts, and then each new one once.
func (a *App) followAlerts(ctx context.Context, req api.ListAlertsRequest) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	printed := map[string]bool{}
	show := func() error {
		resp, err := api.Call(ctx, client, api.ListAlerts, req)
		if err != nil {
			return err
		}
		alerts := resp.Alerts
		for i := range alerts {
			if printed[alerts[i].ID] {
				continue
			}
			printed[alerts[i].ID] = true
			if a.json {
				if err := a.printLine(alerts[i]); err != nil {
					return err
				}
				continue
			}
			_, _ = fmt.Fprintf(a.out, "%s  %s  %s  %s\n", alerts[i].OpenedAt.Local().Format(time.DateTime), alerts[i].Kind,
				safeLine(alerts[i].RunName), alertText(&alerts[i]))
		}
		return a.out.err
	}
	newest, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Since: math.MaxInt64}) // first, so that none falls between
	if err != nil {
		return err
	}
	if err := show(); err != nil {
		return err
	}
	err = client.Events(ctx, newest.LastSeq, req.Run, func(e agency.Event) error {
		if e.Type != agency.AlertOpened {
			return nil
		}
		return show()
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, io.EOF):
		return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon went away").WithHint("agency alerts -f")
	default:
		return err
	}
}

func (a *App) alertTable(alerts []api.Alert) string {
	rows := [][]string{{"ALERT", "RUN", "KIND", "SINCE", "TOLD", "WHAT"}}
	for i := range alerts {
		al := &alerts[i]
		rows = append(rows, []string{
			al.ID, al.RunName, string(al.Kind), agency.ShortDuration(a.Now().Sub(al.OpenedAt)), told(al), fit(alertText(al), 60),
		})
	}
	return columns(rows, -1, func(_ int, s string) string { return s })
}

// told says who knows of an alert.
func told(al *api.Alert) string {
	switch {
	case al.ResolvedAt != nil:
		return "over"
	case al.AckedAt != nil:
		return "acknowledged"
	case al.SnoozedUntil != nil:
		return "snoozed"
	case al.Told == 0:
		return "not yet"
	case len(al.Recipients) == 0:
		return "nobody"
	default:
		return strconv.Itoa(al.Told) + "x"
	}
}

// alertText is what an alert is about, in one safe line.
func alertText(al *api.Alert) string { return safeLine(agency.AlertText(al.Payload)) }

func (a *App) alertsAck() *cobra.Command {
	return command(cobra.Command{
		Use:     "ack ALERT...",
		Short:   "Say that alerts were seen, so that they are not repeated",
		Example: "  agency alerts ack a_01JD4QJ5T0Y7R8V6W3N2M1K0HG",
		Args:    takesAlerts,
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.AckAlerts, api.AckAlertRequest{Alerts: args})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "acknowledged %s\n", count(len(resp.Alerts), "alert")) })
	})
}

func (a *App) alertsSnooze() *cobra.Command {
	var wait time.Duration
	cmd := command(cobra.Command{
		Use:     "snooze ALERT...",
		Short:   "Put alerts off; they come back when the time is over",
		Example: "  agency alerts snooze --for 30m a_01JD4QJ5T0Y7R8V6W3N2M1K0HG",
		Args:    takesAlerts,
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := call(cmd.Context(), a, api.SnoozeAlerts, api.SnoozeAlertRequest{Alerts: args, ForMS: wait.Milliseconds()})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "put off %s for %s\n", count(len(resp.Alerts), "alert"), agency.ShortDuration(wait))
		})
	})
	cmd.Flags().DurationVar(&wait, "for", time.Hour, "how long, such as 30m")
	return cmd
}

func takesAlerts(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return agency.Errorf(agency.CodeUsage, "%s needs at least one ALERT", cmd.CommandPath()).WithHint("agency alerts")
	}
	return nil
}
