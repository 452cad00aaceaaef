package complete

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// Runs offers names and handles of the runs that agency ls shows, with their status, and the agents
// of sessions as their plans call them.
func Runs(d *command.Deps) cobra.CompletionFunc {
	return runs(d, func(*api.Run) bool { return true })
}

// Live is Runs without runs that have ended.
func Live(d *command.Deps) cobra.CompletionFunc {
	return runs(d, func(r *api.Run) bool { return !r.State.Final() })
}

// Flagged is Runs for flagged runs only.
func Flagged(d *command.Deps) cobra.CompletionFunc {
	return runs(d, func(r *api.Run) bool { return r.Flag != nil })
}

// runs offers the runs that fit.
func runs(d *command.Deps, fits func(r *api.Run) bool) cobra.CompletionFunc {
	return First(func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
			resp, err := command.ListAround(ctx, client, api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
			words, offered := make([]string, 0, len(resp.Runs)), map[agency.RunID]*api.Run{}
			describe := func(ref string, r *api.Run) {
				words = append(words, Described(ref, r.Status.String()+" "+r.Summary))
			}
			for i := range resp.Runs {
				if r := &resp.Runs[i]; fits(r) {
					offered[r.ID] = r
					describe(r.Ref(), r)
				}
			}
			for _, a := range agentRefs(ctx, d, client, word) {
				if r := offered[a.run]; r != nil {
					describe(a.ref, r)
				}
			}
			return words, err
		})(cmd, args, word)
	})
}

// agentRef is a name for the run of an agent.
type agentRef struct {
	ref string
	run agency.RunID
}

// agentRefs returns the agents whose names can begin with a word: with a slash in it, those of the
// session before the slash, otherwise those of the sessions that run here.
func agentRefs(ctx context.Context, d *command.Deps, client *api.Client, word string) []agentRef {
	var refs []agentRef
	add := func(session, before string) {
		resp, err := api.Call(ctx, client, api.ShowSession, api.SessionRequest{Session: session, Dir: d.Dir})
		if err != nil {
			return
		}
		for i := range resp.Agents {
			refs = append(refs, agentRef{before + resp.Agents[i].ID, resp.Agents[i].RunID})
		}
	}
	if slash := strings.LastIndexByte(word, '/'); slash >= 0 {
		add(word[:slash], word[:slash+1])
		return refs
	}
	const most = 5 // sessions
	resp, err := api.Call(ctx, client, api.ListSessions, api.ListSessionsRequest{Dir: d.Dir, Live: true, Limit: most})
	if err != nil {
		return nil
	}
	for i := range resp.Sessions {
		s := &resp.Sessions[i]
		before := ""
		if len(resp.Sessions) > 1 { // an id alone could mean an agent of each session
			before = cmp.Or(s.Name, s.Ref()) + "/"
		}
		add(s.Ref(), before)
	}
	return refs
}

// Tags offers the tags of the runs here.
func Tags(d *command.Deps) cobra.CompletionFunc {
	return Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := command.ListAround(ctx, client, api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
		tags := []string{}
		for i := range resp.Runs {
			tags = append(tags, resp.Runs[i].Tags...)
		}
		slices.Sort(tags)
		return slices.Compact(tags), err
	})
}
