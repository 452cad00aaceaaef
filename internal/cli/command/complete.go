package command

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// CompleteRuns offers names and handles of the runs that agency ls shows, with their status. It
// never starts a daemon, and gives up quickly.
func (d *Deps) CompleteRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, func(*api.Run) bool { return true })
}

// CompleteLive is CompleteRuns without runs that have ended.
func (d *Deps) CompleteLive(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, func(r *api.Run) bool { return !r.State.Final() })
}

// CompleteFlagged is CompleteRuns for flagged runs only.
func (d *Deps) CompleteFlagged(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, func(r *api.Run) bool { return r.Flag != nil })
}

func (d *Deps) offer(cmd *cobra.Command, args []string, fits func(r *api.Run) bool) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Annotations[ManyRuns] == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, _ := d.Config() // completion has no place for its errors
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := ListAround(ctx, api.NewClient(cfg.Socket, d.Version, nil), api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Runs))
	for i := range resp.Runs {
		if r := &resp.Runs[i]; fits(r) {
			words = append(words, cobra.CompletionWithDesc(r.Ref(), r.Status.String()+" "+term.Fit(term.SafeLine(r.Summary), SummaryColumns)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// CompleteSessions offers the ids of the newest sessions here, with their status.
func (d *Deps) CompleteSessions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, _ := d.Config()
	if len(args) > 0 || cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := api.Call(ctx, api.NewClient(cfg.Socket, d.Version, nil), api.ListSessions, api.ListSessionsRequest{Dir: d.Dir, Limit: mostOffered})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Sessions))
	for i := range resp.Sessions {
		s := &resp.Sessions[i]
		words = append(words, cobra.CompletionWithDesc(s.Ref(), string(s.Status)+" "+term.Fit(term.SafeLine(s.Name), SummaryColumns)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// CompleteAgents offers the ids of a session's agents.
func (d *Deps) CompleteAgents(cmd *cobra.Command, session string) ([]string, cobra.ShellCompDirective) {
	cfg, _ := d.Config()
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	resp, err := api.Call(ctx, api.NewClient(cfg.Socket, d.Version, nil), api.ShowSession, api.SessionRequest{Session: session, Dir: d.Dir})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	words := make([]cobra.Completion, 0, len(resp.Agents))
	for i := range resp.Agents {
		agent := &resp.Agents[i]
		words = append(words, cobra.CompletionWithDesc(agent.ID, string(agent.Status)+" "+term.Fit(term.SafeLine(agent.Name), SummaryColumns)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// Limits of completion.
const (
	completionTime = 500 * time.Millisecond
	mostOffered    = 50 // sessions
)

// CompletePresets offers the names of presets.
func (d *Deps) CompletePresets(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, err := d.Config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(cfg.Presets)), cobra.ShellCompDirectiveNoFileComp
}

// ListAround asks for the runs of the repository around req.Dir, or of all repositories outside of
// one.
func ListAround(ctx context.Context, client *api.Client, req api.ListRunsRequest) (api.ListRunsResponse, error) {
	resp, err := api.Call(ctx, client, api.ListRuns, req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		resp, err = api.Call(ctx, client, api.ListRuns, req)
	}
	return resp, err
}
