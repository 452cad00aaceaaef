package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
)

// completeRuns offers names and handles of the runs that agency ls shows, with their status. It never starts a daemon, and
// gives up quickly.
func (a *App) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, args, func(*api.Run) bool { return true })
}

// completeLive is completeRuns without runs that have ended.
func (a *App) completeLive(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, args, func(r *api.Run) bool { return !r.State.Final() })
}

func (a *App) offer(cmd *cobra.Command, args []string, fits func(r *api.Run) bool) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Annotations[manyRuns] == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, _ := a.config() // nobody reads what is wrong with it between two keys
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 500*time.Millisecond)
	defer cancel()
	resp, err := listAround(ctx, api.NewClient(cfg.Socket, a.Version, nil), api.ListRunsRequest{Dir: a.Dir, Status: []string{}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Runs))
	for i := range resp.Runs {
		if r := &resp.Runs[i]; fits(r) {
			words = append(words, cobra.CompletionWithDesc(r.Ref(), string(r.Status)+" "+fit(safeLine(r.Summary), summaryColumns)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// manyRuns marks a command that takes more than one run.
const manyRuns = "many-runs"
