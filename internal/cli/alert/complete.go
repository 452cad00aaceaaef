package alert

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/complete"
	"agency/internal/cli/term"
	"agency/internal/view"
)

// alertID returns the end of an alert's id, which is enough to name it.
func alertID(al *api.Alert) string { return term.SafeLine(al.ID[max(0, len(al.ID)-shownAlert):]) }

// completeAlerts offers the open alerts here.
func completeAlerts(d *command.Deps) cobra.CompletionFunc {
	return complete.Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListAlerts, api.ListAlertsRequest{Dir: d.Dir})
		words := make([]string, 0, len(resp.Alerts))
		for i := range resp.Alerts {
			words = append(words, complete.Described(alertID(&resp.Alerts[i]), view.AlertSentence(&resp.Alerts[i])))
		}
		return words, err
	})
}

// completeMessages offers the messages of this inbox.
func completeMessages(d *command.Deps) cobra.CompletionFunc {
	return complete.Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.PollMessages, api.PollMessagesRequest{})
		words := make([]string, 0, len(resp.Messages))
		for i := range resp.Messages {
			words = append(words, complete.Described(messageID(resp.Messages[i].ID), view.MessageText(&resp.Messages[i])))
		}
		return words, err
	})
}

// completeRecipients offers runs and the user.
func completeRecipients(d *command.Deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		runs, directive := complete.Runs(d)(cmd, args, word)
		return append(runs, "user"), directive
	}
}

// completeChannels offers the channels of the configuration.
func completeChannels(d *command.Deps) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cfg, err := d.Config()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(cfg.Notify.Channels)), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTimers offers the timers of the watchdog.
func completeTimers(d *command.Deps) cobra.CompletionFunc {
	return complete.First(complete.Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListTimers, api.ListTimersRequest{})
		words := make([]string, 0, len(resp.Timers))
		for i := range resp.Timers {
			words = append(words, complete.Described(resp.Timers[i].Name, resp.Timers[i].Message))
		}
		return words, err
	}))
}
