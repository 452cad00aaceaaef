package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/term"
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

// completeFlagged is completeRuns of runs that are flagged.
func (a *App) completeFlagged(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, args, func(r *api.Run) bool { return r.Flag != nil })
}

func (a *App) offer(cmd *cobra.Command, args []string, fits func(r *api.Run) bool) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Annotations[manyRuns] == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, _ := a.config() // nobody reads what is wrong with it between two keys
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := listAround(ctx, api.NewClient(cfg.Socket, a.Version, nil), api.ListRunsRequest{Dir: a.Dir, Status: []string{}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Runs))
	for i := range resp.Runs {
		if r := &resp.Runs[i]; fits(r) {
			words = append(words, cobra.CompletionWithDesc(r.Ref(), string(r.Status)+" "+term.Fit(term.SafeLine(r.Summary), summaryColumns)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeSessions offers the ids of the newest sessions here, with how they stand.
func (a *App) completeSessions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, _ := a.config()
	if len(args) > 0 || cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := api.Call(ctx, api.NewClient(cfg.Socket, a.Version, nil), api.ListSessions, api.ListSessionsRequest{Dir: a.Dir, Limit: mostOffered})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Sessions))
	for i := range resp.Sessions {
		s := &resp.Sessions[i]
		words = append(words, cobra.CompletionWithDesc(s.Ref(), string(s.Status)+" "+term.Fit(term.SafeLine(s.Name), summaryColumns)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeAgents offers the ids of a session's agents.
func (a *App) completeAgents(cmd *cobra.Command, session string) ([]string, cobra.ShellCompDirective) {
	cfg, _ := a.config()
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := api.Call(ctx, api.NewClient(cfg.Socket, a.Version, nil), api.ShowSession, api.SessionRequest{Session: session, Dir: a.Dir})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Agents))
	for i := range resp.Agents {
		agent := &resp.Agents[i]
		words = append(words, cobra.CompletionWithDesc(agent.ID, string(agent.Status)+" "+term.Fit(term.SafeLine(agent.Name), summaryColumns)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// Limits of what is offered between two keys.
const (
	completionTime = 500 * time.Millisecond
	mostOffered    = 50 // sessions
)

// manyRuns marks a command that takes more than one run.
const manyRuns = "many-runs"
