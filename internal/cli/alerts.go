package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) alertsCommand() *cobra.Command {
	var all, allRepos, follow bool
	var run string
	cmd := command(cobra.Command{
		Use:     "alerts",
		Short:   "List what somebody must act on",
		GroupID: "inspect",
		Long: `Lists the open alerts of this repository and of the machine, oldest first. The watchdog opens one for each episode in which a worker is
lost, failed, waits for somebody, offers its work or hangs, in which a session was paused by a failure, has an agent that cannot start
without a person, or failed, or in which a disk is nearly full, and closes it when that is over. An offer that was acknowledged is left
out, too; a session's failure is over then. While all is well there are none.`,
		Example: `  agency alerts
  agency alerts --all-repos -f
  agency alerts ack --all`,
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		req := api.ListAlertsRequest{Run: run, Resolved: all}
		if !allRepos && run == "" {
			req.Dir = a.Dir
		}
		resp, req, err := a.listAlerts(cmd.Context(), req)
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
	f.BoolVar(&all, "all", false, "those that are over or left out, too")
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
	show := func(req api.ListAlertsRequest, which func(*api.Alert) bool) error {
		resp, err := api.Call(ctx, client, api.ListAlerts, req)
		if err != nil {
			return err
		}
		for i := range resp.Alerts {
			al := &resp.Alerts[i]
			if printed[al.ID] || !which(al) {
				continue
			}
			printed[al.ID] = true
			if err := a.printAlert(al); err != nil {
				return err
			}
		}
		return nil
	}
	newest, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Since: math.MaxInt64}) // first, so that none falls between
	if err != nil {
		return err
	}
	if err := show(req, func(*api.Alert) bool { return true }); err != nil {
		return err
	}
	err = client.Follow(ctx, newest.LastSeq, req.Run, func() {}, func(e agency.Event) error {
		if e.Type != agency.AlertOpened {
			return nil
		}
		var opened struct {
			Alert string `json:"alert"`
		}
		if err := json.Unmarshal(e.Data, &opened); err != nil {
			return fmt.Errorf("read event %d: %w", e.Seq, err)
		}
		// It may be over already when it could not be told before.
		of := api.ListAlertsRequest{Dir: req.Dir, Run: string(e.RunID), Resolved: true}
		return show(of, func(al *api.Alert) bool { return al.ID == opened.Alert })
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// printAlert prints an alert as a line of its own.
func (a *App) printAlert(al *api.Alert) error {
	if a.json {
		return a.printLine(al)
	}
	_, _ = fmt.Fprintf(a.out, "%s  %s  %s  %s\n", al.OpenedAt.Local().Format(time.DateTime), al.Kind, term.SafeLine(al.Ref()), alertText(al))
	return a.out.err
}

func (a *App) alertTable(alerts []api.Alert) string {
	rows := [][]string{{"ALERT", "NAME", "KIND", "SINCE", "TOLD", "WHAT"}}
	for i := range alerts {
		al := &alerts[i]
		rows = append(rows, []string{
			al.ID, al.Ref(), string(al.Kind), agency.ShortDuration(a.Now().Sub(al.OpenedAt)), told(al), term.Fit(alertText(al), 60),
		})
	}
	return a.textTable(rows)
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
func alertText(al *api.Alert) string { return term.SafeLine(agency.AlertText(al.Payload)) }

func (a *App) alertsAck() *cobra.Command {
	var all, allRepos bool
	cmd := command(cobra.Command{
		Use:   "ack ALERT...",
		Short: "Say that alerts were seen, so that they are not repeated",
		Long: `Says that alerts were seen: they are not told again. An offer of work that was seen leaves the list; what a worker waits for stays
in it until the worker has it. --all means every alert of this repository that nobody has acknowledged.`,
		Example: "  agency alerts ack a_01JD4QJ5T0Y7R8V6W3N2M1K0HG\n  agency alerts ack --all",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return agency.Errorf(agency.CodeUsage, "--all takes no ALERT").WithHint("agency alerts ack --all")
			case allRepos && !all:
				return agency.Errorf(agency.CodeUsage, "--all-repos goes with --all").WithHint("agency alerts ack --all --all-repos")
			case !all:
				return takesAlerts(cmd, args)
			}
			return nil
		},
	}, func(cmd *cobra.Command, args []string) error {
		ack := a.ackAll
		if !all {
			ack = func(ctx context.Context, _ bool) (api.AlertsResponse, error) {
				return call(ctx, a, api.AckAlerts, api.AckAlertRequest{Alerts: args})
			}
		}
		resp, err := ack(cmd.Context(), allRepos)
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { _, _ = fmt.Fprintf(w, "acknowledged %s\n", count(len(resp.Alerts), "alert")) })
	})
	cmd.Flags().BoolVar(&all, "all", false, "all that are open")
	cmd.Flags().BoolVar(&allRepos, "all-repos", false, "with --all: of every repository")
	return cmd
}

// ackAll acknowledges what is open and not acknowledged. One that is over by then needs nobody any more.
func (a *App) ackAll(ctx context.Context, allRepos bool) (api.AlertsResponse, error) {
	acked := api.AlertsResponse{Alerts: []api.Alert{}}
	req := api.ListAlertsRequest{}
	if !allRepos {
		req.Dir = a.Dir
	}
	open, _, err := a.listAlerts(ctx, req)
	if err != nil {
		return acked, err
	}
	for i := range open.Alerts {
		if open.Alerts[i].AckedAt != nil {
			continue
		}
		resp, err := call(ctx, a, api.AckAlerts, api.AckAlertRequest{Alerts: []string{open.Alerts[i].ID}})
		if err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
			return acked, err
		}
		acked.Alerts = append(acked.Alerts, resp.Alerts...)
	}
	return acked, nil
}

// listAlerts asks for the alerts of the repository around req.Dir, or outside of any for all. asked is the request that was
// answered.
func (a *App) listAlerts(ctx context.Context, req api.ListAlertsRequest) (resp api.ListAlertsResponse, asked api.ListAlertsRequest, err error) {
	resp, err = call(ctx, a, api.ListAlerts, req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		resp, err = call(ctx, a, api.ListAlerts, req)
	}
	return resp, req, err
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
	durationVar(cmd.Flags(), &wait, "for", time.Hour, "how long, such as 30m")
	return cmd
}

func takesAlerts(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return agency.Errorf(agency.CodeUsage, "%s needs at least one ALERT", cmd.CommandPath()).WithHint("agency alerts")
	}
	return nil
}
