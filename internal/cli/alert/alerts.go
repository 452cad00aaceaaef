// Package alert holds the commands about what a user or an agent must know: alerts, messages,
// notify, watchdog.
package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// alertsOptions are the flags and dependencies of agency alerts.
type alertsOptions struct {
	*command.Deps

	all, allRepos, follow bool
	runRef                string
}

// NewAlerts returns the command agency alerts.
func NewAlerts(d *command.Deps) *cobra.Command {
	o := &alertsOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "alerts",
		Short:   "List what needs action",
		GroupID: "inspect",
		Long: `Lists the open alerts of this repository and of the machine, oldest first, one
line each: what happened, and the command that deals with it. The watchdog opens one alert for each
episode and resolves it when the episode is over. An episode begins when a worker is lost, failed,
asks something, offers its work or hangs; when a session failed, was paused by a failure, or has an
agent that cannot start without a user; when a run in a queue cannot land; and when a disk is nearly
full. An acknowledged offer of work leaves the list, and so does the failure of a session. When
nothing needs action, the list is empty.`,
		Example: `  agency alerts
  agency alerts --all-repos -f
  agency alerts ack --all`,
		Args: cobra.ArbitraryArgs,
	}, o.run)
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "show resolved alerts and acknowledged offers of work too")
	f.BoolVar(&o.allRepos, "all-repos", false, "show the alerts of every repository")
	f.StringVar(&o.runRef, "run", "", "show only the alerts of `RUN`")
	f.BoolVarP(&o.follow, "follow", "f", false, "print new alerts as they come")
	_ = cmd.RegisterFlagCompletionFunc("run", complete.Runs(d))
	cmd.AddCommand(newAlertsAck(d), newAlertsSnooze(d))
	return cmd
}

func (o *alertsOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.UnknownCommand(cmd, args[0])
	}
	req := api.ListAlertsRequest{Run: o.runRef, Resolved: o.all}
	if !o.allRepos && o.runRef == "" {
		req.Dir = o.Dir
	}
	resp, req, err := listAlerts(cmd.Context(), o.Deps, req)
	if err != nil {
		return err
	}
	if !o.follow {
		return o.Print(resp, func(w io.Writer) {
			if len(resp.Alerts) == 0 {
				o.Chat("%s", o.nothing(cmd.Context(), req))
				return
			}
			_, _ = io.WriteString(w, alertTable(o.Deps, resp.Alerts))
		})
	}
	return o.followAlerts(cmd.Context(), req)
}

// nothing returns the text for an empty list. Runs can need the user without an alert, when they
// are not watched or have only just stopped.
func (o *alertsOptions) nothing(ctx context.Context, req api.ListAlertsRequest) string {
	const none = "no alert needs an action"
	resp, err := command.Call(ctx, o.Deps, api.ListRuns, api.ListRunsRequest{Dir: req.Dir, Run: req.Run, Fields: []string{"status", "removed_at"}})
	if err != nil {
		return none
	}
	needy := 0
	for i := range resp.Runs {
		if resp.Runs[i].NeedsYou() {
			needy++
		}
	}
	switch needy {
	case 0:
		return none
	case 1:
		return none + "; 1 run needs you: agency next"
	default:
		return fmt.Sprintf("%s; %d runs need you: agency next", none, needy)
	}
}

// followAlerts prints the open alerts, and then each new one once.
func (o *alertsOptions) followAlerts(ctx context.Context, req api.ListAlertsRequest) error {
	client, err := o.Client()
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
			if err := o.printAlert(al); err != nil {
				return err
			}
		}
		return nil
	}
	newest, err := api.Call(ctx, client, api.ListEvents, api.ListEventsRequest{Since: math.MaxInt64}) // before the list, so that no event is missed in between
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
		// The alert may be over already if it could not be printed earlier.
		of := api.ListAlertsRequest{Dir: req.Dir, Run: string(e.RunID), Resolved: true}
		return show(of, func(al *api.Alert) bool { return al.ID == opened.Alert })
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// printAlert prints an alert on its own line.
func (o *alertsOptions) printAlert(al *api.Alert) error {
	if o.JSON {
		return o.PrintLine(al)
	}
	head, tail := al.OpenedAt.Local().Format(time.TimeOnly)+"  ", "  "+term.SafeLine(view.AlertCommand(al))
	words := term.SafeLine(view.AlertSentence(al))
	if width := o.Columns(); width > 0 {
		if width < term.Width(head)+leastSentence+term.Width(tail) {
			_, _ = fmt.Fprintln(o.Out, term.Fit(head+words, width)+"\n  "+tail)
			return o.Out.Failed()
		}
		room := width - term.Width(head) - term.Width(tail)
		words = within(room, words, tail, al)
		words = term.Pad(term.Fit(words, room), min(room, 40))
	}
	_, _ = fmt.Fprintln(o.Out, head+words+tail)
	return o.Out.Failed()
}

// alertTable returns a line for each alert: what happened, in words, and the command to act on it,
// on the same line if there is room. The column SENT is there when an alert is more than just open.
func alertTable(d *command.Deps, alerts []api.Alert) string {
	rows := [][]string{{"ALERT", "SINCE", "SENT", "WHAT", "ANSWER"}}
	open := true
	for i := range alerts {
		al := &alerts[i]
		open = open && al.AckedAt == nil && al.ResolvedAt == nil && al.SnoozedUntil == nil && (al.NotifyCount == 0 || len(al.Recipients) > 0)
		rows = append(rows, []string{
			alertID(al), duration.Short(d.Now().Sub(al.OpenedAt)), view.AlertNotified(al), term.SafeLine(view.AlertSentence(al)), term.SafeLine(view.AlertCommand(al)),
		})
	}
	what := 3
	if open {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
		what = 2
	}
	if width := d.Columns(); width > 0 {
		room := term.MaxWidth(column(rows, what)) - max(term.TableWidth(rows)-width, 0)
		if room < leastSentence {
			return stacked(rows, width, alerts)
		}
		for i := range alerts {
			row := rows[i+1]
			row[what] = within(room, row[what], row[what+1], &alerts[i])
		}
		term.Narrow(rows, width, []term.Cut{{what, leastSentence}})
	}
	return term.Table(rows)
}

// stacked returns a table of alerts with each command on a line of its own, for a terminal that is
// too narrow for both.
func stacked(rows [][]string, width int, alerts []api.Alert) string {
	last := len(rows[0]) - 1
	commands := column(rows, last)
	for i := range rows {
		rows[i] = rows[i][:last]
	}
	room := term.MaxWidth(column(rows, last-1)) - max(term.TableWidth(rows)-width, 0)
	for i := range alerts {
		rows[i+1][last-1] = within(room, rows[i+1][last-1], commands[i+1], &alerts[i])
	}
	term.Narrow(rows, width, []term.Cut{{last - 1, leastSentence}})
	lines := strings.SplitAfter(term.Table(rows), "\n")
	for i, command := range commands[1:] {
		lines[i+1] += "    " + command + "\n"
	}
	return strings.Join(lines, "")
}

func column(rows [][]string, i int) []string {
	cells := make([]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, row[i])
	}
	return cells
}

// within removes the name from the sentence of an alert if the name would take most of the room, so
// that the rest would be cut, and if the command beside it names the run too.
func within(room int, sentence, command string, al *api.Alert) string {
	name := term.SafeLine(al.Ref())
	if term.Width(sentence) <= room || 2*term.Width(name) <= room || !strings.HasSuffix(command, " "+name) {
		return sentence
	}
	return strings.TrimPrefix(sentence, name+" ")
}

// shownAlert is how much of the end of an alert's id is shown, in bytes.
const shownAlert = 6

// leastSentence is the least width of an alert in words, in columns of the terminal.
const leastSentence = 16

// ackOptions are the flags and dependencies of agency alerts ack.
type ackOptions struct {
	*command.Deps

	all, allRepos bool
}

// newAlertsAck returns the command agency alerts ack.
func newAlertsAck(d *command.Deps) *cobra.Command {
	o := &ackOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "ack ALERT...",
		Short: "Acknowledge alerts, so that agency does not repeat them",
		Long: `Acknowledges alerts: agency does not repeat them. The end of an id, as the list
shows it, is enough. An acknowledged offer of work leaves the list; every other alert about a worker
stays until its cause is over. --all acknowledges every alert of this repository that is not yet
acknowledged.`,
		Example: "  agency alerts ack M1K0HG\n  agency alerts ack --all",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.all && len(args) > 0:
				return agency.Errorf(agency.CodeUsage, "--all takes no ALERT").WithHint("agency alerts ack --all")
			case o.allRepos && !o.all:
				return agency.Errorf(agency.CodeUsage, "--all-repos goes with --all").WithHint("agency alerts ack --all --all-repos")
			case !o.all:
				return takesAlerts(cmd, args)
			}
			return nil
		},
	}, o.run)
	cmd.Flags().BoolVar(&o.all, "all", false, "acknowledge every open alert")
	cmd.Flags().BoolVar(&o.allRepos, "all-repos", false, "with --all: acknowledge the alerts of every repository")
	cmd.ValidArgsFunction = completeAlerts(d)
	return cmd
}

func (o *ackOptions) run(cmd *cobra.Command, args []string) error {
	ack := o.ackAll
	if !o.all {
		ack = func(ctx context.Context, _ bool) (api.AlertsResponse, error) {
			ids, err := alertIDs(ctx, o.Deps, args)
			if err != nil {
				return api.AlertsResponse{}, err
			}
			return command.Call(ctx, o.Deps, api.AckAlerts, api.AckAlertRequest{Alerts: ids})
		}
	}
	resp, err := ack(cmd.Context(), o.allRepos)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "acknowledged %s\n", command.Count(len(resp.Alerts), "alert"))
	})
}

// ackAll acknowledges the open alerts that are not acknowledged. An alert that closes meanwhile is
// skipped.
func (o *ackOptions) ackAll(ctx context.Context, allRepos bool) (api.AlertsResponse, error) {
	acked := api.AlertsResponse{Alerts: []api.Alert{}}
	req := api.ListAlertsRequest{}
	if !allRepos {
		req.Dir = o.Dir
	}
	open, _, err := listAlerts(ctx, o.Deps, req)
	if err != nil {
		return acked, err
	}
	for i := range open.Alerts {
		if open.Alerts[i].AckedAt != nil {
			continue
		}
		resp, err := command.Call(ctx, o.Deps, api.AckAlerts, api.AckAlertRequest{Alerts: []string{open.Alerts[i].ID}})
		if err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
			return acked, err
		}
		acked.Alerts = append(acked.Alerts, resp.Alerts...)
	}
	return acked, nil
}

// listAlerts asks for the alerts of the repository around req.Dir, or of all repositories outside
// of one. asked is the request that was answered.
func listAlerts(ctx context.Context, d *command.Deps, req api.ListAlertsRequest) (resp api.ListAlertsResponse, asked api.ListAlertsRequest, err error) {
	resp, err = command.Call(ctx, d, api.ListAlerts, req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		resp, err = command.Call(ctx, d, api.ListAlerts, req)
	}
	return resp, req, err
}

// snoozeOptions are the flags and dependencies of agency alerts snooze.
type snoozeOptions struct {
	*command.Deps

	wait time.Duration
}

// newAlertsSnooze returns the command agency alerts snooze.
func newAlertsSnooze(d *command.Deps) *cobra.Command {
	o := &snoozeOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "snooze ALERT...",
		Short:   "Postpone alerts; they come back after this time",
		Example: "  agency alerts snooze --for 30m M1K0HG",
		Args:    takesAlerts,
	}, o.run)
	command.DurationVar(cmd.Flags(), &o.wait, "for", time.Hour, "postpone them for this `DURATION`, such as 30m")
	cmd.ValidArgsFunction = completeAlerts(d)
	return cmd
}

func (o *snoozeOptions) run(cmd *cobra.Command, args []string) error {
	ids, err := alertIDs(cmd.Context(), o.Deps, args)
	if err != nil {
		return err
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.SnoozeAlerts, api.SnoozeAlertRequest{Alerts: ids, ForMS: o.wait.Milliseconds()})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "snoozed %s for %s\n", command.Count(len(resp.Alerts), "alert"), duration.Short(o.wait))
	})
}

// alertIDs returns the ids of alerts that the user named by the ends of their ids. A word that
// matches no alert, or several, stays as it is, and the daemon refuses it.
func alertIDs(ctx context.Context, d *command.Deps, refs []string) ([]string, error) {
	whole := len(agency.NewAlertID(time.Time{}, [10]byte{}))
	if !slices.ContainsFunc(refs, func(ref string) bool { return len(ref) < whole }) {
		return refs, nil
	}
	all, err := command.Call(ctx, d, api.ListAlerts, api.ListAlertsRequest{Resolved: true})
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(refs)
	for i, ref := range refs {
		found := []string{}
		for n := range all.Alerts {
			if id := all.Alerts[n].ID; len(ref) >= agency.MinPrefix && strings.HasSuffix(strings.ToUpper(id), strings.ToUpper(ref)) {
				found = append(found, id)
			}
		}
		switch {
		case len(found) > 1:
			return nil, agency.Errorf(agency.CodeUsage, "the ids of several alerts end with %q", ref).WithHint("the whole ids: agency alerts --json")
		case len(found) == 1:
			ids[i] = found[0]
		}
	}
	return ids, nil
}

func takesAlerts(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return agency.Errorf(agency.CodeUsage, "%s needs at least one ALERT", cmd.CommandPath()).WithHint("agency alerts")
	}
	return nil
}
