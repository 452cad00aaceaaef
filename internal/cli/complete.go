package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
)

// completeRuns offers names and handles of runs, with their status. It never starts a daemon, and gives up quickly.
func (a *App) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Annotations[manyRuns] == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, err := a.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 500*time.Millisecond)
	defer cancel()
	resp, err := api.Call(ctx, api.NewClient(cfg.Socket, a.Version, nil), api.ListRuns, api.ListRunsRequest{Status: []string{}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Runs))
	for i := range resp.Runs {
		r := &resp.Runs[i]
		words = append(words, cobra.CompletionWithDesc(r.Ref(), string(r.Status)+" "+fit(safeLine(r.Summary), summaryColumns)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// manyRuns marks a command that takes more than one run.
const manyRuns = "many-runs"
