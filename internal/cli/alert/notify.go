package alert

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// NewNotify returns the command agency notify.
func NewNotify(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "notify",
		Short:   "Test and list the channels that notify the user",
		GroupID: "maintain",
		Long: `Channels bring alerts to the user outside of agency: the desktop, a webhook, a
command, or the bell of a terminal. Configure them in config.toml, under [notify.channels.NAME].
agency tries to send a notice for a day; after that it is a dead letter.`,
		Example: `  agency notify test
  agency notify ls`,
	}, newNotifyTest(d), newNotifyList(d))
}

// newNotifyTest returns the command agency notify test.
func newNotifyTest(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "test [CHANNEL]", Short: "Send a test to one channel or all, and show the outcome",
		Long: `Sends a test to one channel, or to all, regardless of their rules and the quiet
hours. agency tries it three times within seconds.`,
		Example: "  agency notify test", Args: command.TakesUpTo("CHANNEL"), ValidArgsFunction: completeChannels(d),
	}, func(cmd *cobra.Command, args []string) error {
		req := api.TestNotifyRequest{}
		if len(args) == 1 {
			req.Channel = args[0]
		}
		resp, err := command.Call(cmd.Context(), d, api.TestNotify, req)
		if err != nil {
			return err
		}
		for _, r := range resp.Results {
			if !r.Sent {
				d.Status = agency.ExitError
			}
		}
		return d.Print(resp, func(w io.Writer) {
			for _, r := range resp.Results {
				mark, outcome := "✓", "sent"
				switch {
				case r.Waiting:
					mark, outcome = "○", "not sent yet, "+tried(r.Tries)
				case !r.Sent:
					mark, outcome = "✕", fmt.Sprintf("not sent, %s: %s", tried(r.Tries), term.SafeLine(r.Error))
				case r.Tries > 1:
					outcome = fmt.Sprintf("sent, %s; before that: %s", tried(r.Tries), term.SafeLine(r.Error))
				}
				_, _ = fmt.Fprintf(w, "%s %s  %s\n", mark, r.Channel, outcome)
			}
		})
	})
}

func tried(n int) string {
	switch n {
	case 0:
		return "the first try is under way"
	case 1:
		return "tried once"
	}
	return fmt.Sprintf("tried %d times", n)
}

// newNotifyList returns the command agency notify ls.
func newNotifyList(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "ls", Short: "List the channels, waiting notices, and a week's dead letters",
		Long: `Lists the channels, the waiting notices, and those sent or given up within a week;
agency deletes older ones.`,
		Example: "  agency notify ls", Args: command.Takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		resp, err := command.Call(cmd.Context(), d, api.ListChannels, api.Empty{})
		if err != nil {
			return err
		}
		return d.Print(resp, func(w io.Writer) { channelsText(d, w, &resp) })
	})
}

func channelsText(d *command.Deps, w io.Writer, resp *api.ListChannelsResponse) {
	if len(resp.Channels) == 0 {
		d.Chat("no channel is configured")
		return
	}
	now := d.Now()
	ago := func(t *time.Time) string {
		if t == nil {
			return "-"
		}
		return duration.Short(now.Sub(*t)) + " ago"
	}
	rows := [][]string{{"CHANNEL", "KIND", "WAITING", "DEAD", "SENT", "FAILED", "ERROR"}}
	var gone []string
	lost := 0
	for _, c := range resp.Channels {
		if c.Kind == "" {
			gone, lost = append(gone, c.Channel), lost+c.Dead
			continue
		}
		rows = append(rows, []string{c.Channel, c.Kind, strconv.Itoa(c.Waiting), strconv.Itoa(c.Dead), ago(c.SentAt), ago(c.FailedAt), term.Fit(term.SafeLine(c.Error), 60)})
	}
	if len(rows) == 1 {
		d.Chat("no channel is configured")
	} else {
		_, _ = io.WriteString(w, term.Table(rows))
	}
	if len(gone) > 0 {
		_, _ = fmt.Fprintf(w, "no longer configured: %s (%s)\n", strings.Join(gone, ", "), command.Count(lost, "dead letter"))
	}
	if resp.QuietUntil != nil {
		_, _ = fmt.Fprintf(w, "\nquiet hours until %s\n", resp.QuietUntil.Local().Format("15:04"))
	}
	rows = [][]string{{"DEAD LETTER", "CHANNEL", "TRIES", "GIVEN UP", "TITLE", "ERROR"}}
	for _, l := range resp.DeadLetters {
		if slices.Contains(gone, l.Channel) {
			continue
		}
		rows = append(rows, []string{l.Kind, l.Channel, strconv.Itoa(l.Tries), ago(&l.DeadAt), term.Fit(term.SafeLine(l.Title), 40), term.Fit(term.SafeLine(l.Error), 60)})
	}
	if len(rows) == 1 {
		return
	}
	_, _ = io.WriteString(w, "\n")
	_, _ = io.WriteString(w, term.Table(rows))
}
