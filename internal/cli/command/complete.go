package command

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// CompleteRuns offers names and handles of the runs that agency ls shows, with their status, and
// the agents of sessions as their plans call them. It never starts a daemon, and gives up quickly.
func (d *Deps) CompleteRuns(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, word, func(*api.Run) bool { return true })
}

// CompleteLive is CompleteRuns without runs that have ended.
func (d *Deps) CompleteLive(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, word, func(r *api.Run) bool { return !r.State.Final() })
}

// CompleteFlagged is CompleteRuns for flagged runs only.
func (d *Deps) CompleteFlagged(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return d.offer(cmd, args, word, func(r *api.Run) bool { return r.Flag != nil })
}

func (d *Deps) offer(cmd *cobra.Command, args []string, word string, fits func(r *api.Run) bool) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.Annotations[ManyRuns] == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := ListAround(ctx, client, api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
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
		for _, a := range d.agentRefs(ctx, client, word) {
			if r := offered[a.run]; r != nil {
				describe(a.ref, r)
			}
		}
		return words, err
	})
}

// agentRef is a name for the run of an agent.
type agentRef struct {
	ref string
	run agency.RunID
}

// agentRefs returns the agents whose names can begin with a word: with a slash in it, those of the
// session before the slash, otherwise those of the sessions that run here.
func (d *Deps) agentRefs(ctx context.Context, client *api.Client, word string) []agentRef {
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

// Ask returns the words that list gets from a running daemon. It starts no daemon, and offers
// nothing when the daemon takes too long: a shell has no place for errors of completion.
func (d *Deps) Ask(cmd *cobra.Command, list func(ctx context.Context, client *api.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	cfg, _ := d.Config()
	if cfg == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	client := api.NewClient(cfg.Socket, d.Version, nil)
	client.Header = d.identity()
	words, err := list(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(words, func(word string) bool {
		word, _, _ = strings.Cut(word, "\t")
		return term.SafeLine(word) != word // such as the name of a remote, which an agent can make up
	}), cobra.ShellCompDirectiveNoFileComp
}

// Described returns a word of a completion with its description, which may be untrusted.
func Described(word, description string) string {
	return cobra.CompletionWithDesc(word, term.Fit(term.SafeLine(description), SummaryColumns))
}

// Values makes a flag complete its values from a list that is known without a daemon.
func Values(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteSessions offers the ids of the newest sessions here, with their status.
func (d *Deps) CompleteSessions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListSessions, api.ListSessionsRequest{Dir: d.Dir, Limit: mostOffered})
		words := make([]string, 0, len(resp.Sessions))
		for i := range resp.Sessions {
			s := &resp.Sessions[i]
			words = append(words, Described(s.Ref(), string(s.Status)+" "+s.Name))
		}
		return words, err
	})
}

// CompleteAgents offers the ids of a session's agents.
func (d *Deps) CompleteAgents(cmd *cobra.Command, session string) ([]string, cobra.ShellCompDirective) {
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		return agentsOf(ctx, client, d.Dir, session, "")
	})
}

// agentsOf returns the ids of a session's agents after a prefix.
func agentsOf(ctx context.Context, client *api.Client, dir, session, prefix string) ([]string, error) {
	resp, err := api.Call(ctx, client, api.ShowSession, api.SessionRequest{Session: session, Dir: dir})
	words := make([]string, 0, len(resp.Agents))
	for i := range resp.Agents {
		agent := &resp.Agents[i]
		words = append(words, Described(prefix+agent.ID, string(agent.Status)+" "+agent.Name))
	}
	return words, err
}

// CompleteBases offers the branches and tags of the repository here.
func (d *Deps) CompleteBases(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListRefs, api.RefsRequest{Dir: d.Dir})
		return resp.Names, err
	})
}

// CompleteRemotes offers the names of the remotes of the repository here.
func (d *Deps) CompleteRemotes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListRefs, api.RefsRequest{Dir: d.Dir})
		return resp.Remotes, err
	})
}

// CompleteLandings offers the landings here that can be taken back.
func (d *Deps) CompleteLandings(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListRefs, api.RefsRequest{Dir: d.Dir})
		words := make([]string, 0, len(resp.Landings))
		for _, l := range resp.Landings {
			words = append(words, Described(string(l.ID), l.Run+" in "+l.Target))
		}
		return words, err
	})
}

// CompleteQueued offers the runs that wait to land here, with their states; with left, also those
// that have left their queue.
func (d *Deps) CompleteQueued(left bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && cmd.Annotations[ManyRuns] == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
			resp, err := api.Call(ctx, client, api.ListQueue, api.ListQueueRequest{Dir: d.Dir, All: left})
			words := make([]string, 0, len(resp.Entries))
			for i := range resp.Entries {
				e := &resp.Entries[i].Entry
				words = append(words, Described(e.Run, string(e.State)+" in the queue of "+e.Target))
			}
			return words, err
		})
	}
}

// CompleteWork offers what CompleteRuns and CompleteSessions offer.
func (d *Deps) CompleteWork(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	runs, _ := d.CompleteRuns(cmd, args, word)
	sessions, directive := d.CompleteSessions(cmd, args, word)
	return append(runs, sessions...), directive
}

// CompleteOf offers the words that list returns for the response of an operation about the run that
// is the first argument.
func CompleteOf[Req, Resp any](d *Deps, op api.Operation[Req, Resp], about func(run string) Req, list func(resp *Resp) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
			resp, err := api.Call(ctx, client, op, about(args[0]))
			if err != nil {
				return nil, err
			}
			return list(&resp), nil
		})
	}
}

// CompleteShown offers the words that list returns for the run that is the first argument.
func (d *Deps) CompleteShown(list func(resp *api.ShowRunResponse) []string) cobra.CompletionFunc {
	return CompleteOf(d, api.ShowRun, func(run string) api.RunRequest { return api.RunRequest{Run: run} }, list)
}

// CompleteAttempts offers the numbers of the attempts of the run that is the first argument.
func (d *Deps) CompleteAttempts() cobra.CompletionFunc {
	return d.CompleteShown(func(resp *api.ShowRunResponse) []string {
		numbers := []string{}
		for i := range resp.Attempts {
			numbers = append(numbers, Described(strconv.Itoa(resp.Attempts[i].Number), string(resp.Attempts[i].State)))
		}
		return numbers
	})
}

// CompleteReviewed is CompleteShown for what agency review shows.
func (d *Deps) CompleteReviewed(list func(resp *api.ReviewRunResponse) []string) cobra.CompletionFunc {
	return CompleteOf(d, api.ReviewRun, func(run string) api.ReviewRunRequest {
		return api.ReviewRunRequest{Run: run, Env: d.Env, Config: d.CallerConfig()}
	}, list)
}

// CompleteTags offers the tags of the runs here.
func (d *Deps) CompleteTags(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.Ask(cmd, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := ListAround(ctx, client, api.ListRunsRequest{Dir: d.Dir, Status: []string{}})
		tags := []string{}
		for i := range resp.Runs {
			tags = append(tags, resp.Runs[i].Tags...)
		}
		slices.Sort(tags)
		return slices.Compact(tags), err
	})
}

// Limits of completion.
const (
	completionTime = 500 * time.Millisecond
	mostOffered    = 50 // sessions
)

// CompleteRunners offers the names of runners, custom ones included.
func (d *Deps) CompleteRunners(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{}
	for _, kind := range config.RunnerKinds() {
		names = append(names, string(kind))
	}
	if cfg, _ := d.Config(); cfg != nil {
		names = append(names, slices.Sorted(maps.Keys(cfg.Custom))...)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

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
	return around(req, func(req api.ListRunsRequest) (api.ListRunsResponse, error) {
		return api.Call(ctx, client, api.ListRuns, req)
	})
}

// ListTextAround is ListAround for the envelope as it is printed.
func ListTextAround(ctx context.Context, client *api.Client, req api.ListRunsRequest) ([]byte, error) {
	return around(req, func(req api.ListRunsRequest) ([]byte, error) {
		return api.CallText(ctx, client, api.ListRuns, req)
	})
}

// around asks again without a repository when there is none around req.Dir.
func around[T any](req api.ListRunsRequest, ask func(api.ListRunsRequest) (T, error)) (T, error) {
	answer, err := ask(req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		answer, err = ask(req)
	}
	return answer, err
}
