package alert

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// NewWatchdog returns the command agency watchdog.
func NewWatchdog(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use: "watchdog", Short: "Show the watchdog's view of a run, and wake agents by a timer", GroupID: "maintain",
		Long: `The watchdog is part of the daemon. It checks every worker and opens one
alert for each episode that needs action.

Its timers are for agents that watch or orchestrate others: a timer types a message into a run
repeatedly, but only while the run is idle. docs/watchdog.md describes the rules.`,
		Example: "  agency watchdog explain fix-login\n  agency watchdog start --run boss --interval 30 --message check",
	}, newWatchdogExplain(d), newWatchdogStart(d), newWatchdogStop(d), newWatchdogStatus(d))
}

// newWatchdogExplain returns the command agency watchdog explain.
func newWatchdogExplain(d *command.Deps) *cobra.Command {
	cmd := command.New(cobra.Command{
		Use: "explain RUN", Short: "Show the result of each rule for a run", Example: "  agency watchdog explain fix-login", Args: command.Takes("RUN"),
	}, func(cmd *cobra.Command, args []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ExplainWatchdog, api.ExplainWatchdogRequest{Run: args[0]})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if !resp.Watched {
				_, _ = fmt.Fprintln(w, term.Hang(term.SafeLine(resp.Run.Ref())+" ", "is not a worker: [watchdog] names other tags or another name", d.Columns()))
			}
			rows := [][]string{{"RULE", "HOLDS", "WHY"}}
			for _, rule := range resp.Rules {
				holds := "no"
				if rule.Holds {
					holds = "yes"
				}
				rows = append(rows, []string{string(rule.Kind), holds, term.SafeLine(rule.Why)})
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
			if len(resp.Alerts) > 0 {
				_, _ = fmt.Fprintln(w)
				_, _ = io.WriteString(w, alertTable(d, resp.Alerts))
			}
			if resp.NextAt != nil {
				_, _ = fmt.Fprintf(w, "\nnext look by time alone: in %s\n", duration.Short(resp.NextAt.Sub(d.Now())))
			}
		})
	})
	cmd.ValidArgsFunction = complete.Runs(d)
	return cmd
}

// watchdogStartOptions are the flags and dependencies of agency watchdog start.
type watchdogStartOptions struct {
	*command.Deps

	runRef, name, message string
	interval              int
}

// newWatchdogStart returns the command agency watchdog start.
func newWatchdogStart(d *command.Deps) *cobra.Command {
	o := &watchdogStartOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:   "start",
		Short: "Type a message into a run repeatedly, whenever it is idle",
		Long: `Starts a timer. When its interval has passed and the run is idle (its turn ended
and it asks nothing), agency types the message into it; while the run works, asks something, or a
user types in it, the timer waits for the next interval. A timer outlives the daemon and a restart
of the run, stops when the run ends, and replaces another timer of the same name.`,
		Example: "  agency watchdog start --run boss --interval 30 --message check\n  agency watchdog start --run boss --name hourly --interval 3600 --message check",
		Args:    command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.runRef, "run", "", "send to `RUN`")
	f.StringVar(&o.name, "name", "", "give the timer this `NAME` (default: that of the run)")
	f.StringVar(&o.message, "message", "check", "send this `TEXT`")
	f.IntVar(&o.interval, "interval", 30, "wait for this many `SECONDS` between two messages, 5 or more")
	_ = cmd.RegisterFlagCompletionFunc("run", complete.Runs(d))
	return cmd
}

func (o *watchdogStartOptions) run(cmd *cobra.Command, _ []string) error {
	if o.runRef == "" {
		return agency.Errorf(agency.CodeUsage, "there is no --run to write to").WithHint("agency watchdog start --run boss")
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.StartTimer, api.StartTimerRequest{
		Run: o.runRef, Name: o.name, Message: o.message, IntervalMS: (time.Duration(o.interval) * time.Second).Milliseconds(),
	})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		t := &resp.Timer
		verb := "started"
		if resp.Replaced {
			verb = "replaced"
		}
		_, _ = fmt.Fprintf(w, "%s timer %s: %s to %s every %s\n", verb, t.Name, strconv.Quote(term.SafeLine(t.Message)), term.SafeLine(t.RunName), duration.Text(time.Duration(t.IntervalMS)*time.Millisecond))
	})
}

// newWatchdogStop returns the command agency watchdog stop.
func newWatchdogStop(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "stop [NAME]", Short: "Stop a timer, or all of them", Example: "  agency watchdog stop boss\n  agency watchdog stop", Args: command.TakesUpTo("NAME"),
		ValidArgsFunction: completeTimers(d),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.StopTimersRequest{}
		if len(args) == 1 {
			req.Name = args[0]
		}
		resp, err := command.Call(cmd.Context(), d, api.StopTimers, req)
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			for _, name := range resp.Stopped {
				_, _ = fmt.Fprintln(w, "stopped timer "+term.SafeLine(name))
			}
			if len(resp.Stopped) == 0 {
				d.Chat("no timers")
			}
		})
	})
}

// newWatchdogStatus returns the command agency watchdog status.
func newWatchdogStatus(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "status", Short: "Show when the watchdog last checked, and the timers", Example: "  agency watchdog status", Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListTimers, api.ListTimersRequest{})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) {
			if resp.TickedAt != nil {
				_, _ = fmt.Fprintf(w, "the watchdog looked %s ago; open alerts: %d\n", duration.Short(d.Now().Sub(*resp.TickedAt)), resp.OpenAlerts)
			}
			if len(resp.Timers) == 0 {
				d.Chat("no timers")
				return
			}
			rows := [][]string{{"TIMER", "RUN", "EVERY", "MESSAGE", "TICKS", "SENT", "SKIPPED", "FAILED", "LAST"}}
			for i := range resp.Timers {
				t := &resp.Timers[i]
				last := t.Outcome
				switch {
				case t.StoppedAt != nil:
					last = "stopped: " + t.StopReason
				case t.TickedAt != nil:
					last += ", " + duration.Short(d.Now().Sub(*t.TickedAt)) + " ago"
				}
				rows = append(rows, []string{
					t.Name, term.SafeLine(t.RunName), duration.Text(time.Duration(t.IntervalMS) * time.Millisecond), term.Fit(term.SafeLine(t.Message), 20), strconv.Itoa(t.Ticks), strconv.Itoa(t.Sent),
					strconv.Itoa(t.Skipped), strconv.Itoa(t.Failed), term.Fit(command.OrDash(term.SafeLine(last)), 50),
				})
			}
			_, _ = io.WriteString(w, d.TextTable(rows))
		})
	})
}
