// Package complete offers what a shell can complete: the values of arguments and flags.
package complete

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// Limits of completion.
const (
	answerTime  = 500 * time.Millisecond // of the daemon
	mostOffered = 50                     // sessions
)

// Ask offers the words that list gets from a running daemon. It starts no daemon, and offers
// nothing when the daemon takes too long: a shell has no place for errors of completion.
func Ask(d *command.Deps, list func(ctx context.Context, client *api.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client := d.CompletionClient()
		if client == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), answerTime)
		defer cancel()
		words, err := list(ctx, client)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(words, func(word string) bool {
			word, _, _ = strings.Cut(word, "\t")
			return term.SafeLine(word) != word // such as the name of a remote, which an agent can make up
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// First is offer for the first argument only, unless the command takes many runs.
func First(offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && cmd.Annotations[command.ManyRuns] == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, word)
	}
}

// Then is first for the first argument, and second for the one after it.
func Then(first, second cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return first(cmd, args, word)
		case 1:
			return second(cmd, args, word)
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// Words offers words that are known without a daemon.
func Words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// Described returns a word of a completion with its description, which may be untrusted.
func Described(word, description string) string {
	return cobra.CompletionWithDesc(word, term.Fit(term.SafeLine(description), command.SummaryColumns))
}

// Values makes a flag complete its values from words that are known without a daemon.
func Values(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, Words(words...))
}

// Sessions offers the ids of the newest sessions here, with their status.
func Sessions(d *command.Deps) cobra.CompletionFunc {
	return First(Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListSessions, api.ListSessionsRequest{Dir: d.Dir, Limit: mostOffered})
		words := make([]string, 0, len(resp.Sessions))
		for i := range resp.Sessions {
			s := &resp.Sessions[i]
			words = append(words, Described(s.Ref(), string(s.Status)+" "+s.Name))
		}
		return words, err
	}))
}

// Agents offers the ids of the agents of the session that is the first argument.
func Agents(d *command.Deps) cobra.CompletionFunc {
	return Of(d, api.ShowSession, func(session string) api.SessionRequest { return api.SessionRequest{Session: session, Dir: d.Dir} },
		func(resp *api.ShowSessionResponse) []string {
			words := make([]string, 0, len(resp.Agents))
			for i := range resp.Agents {
				agent := &resp.Agents[i]
				words = append(words, Described(agent.ID, string(agent.Status)+" "+agent.Name))
			}
			return words
		})
}

// Work offers what Runs and Sessions offer.
func Work(d *command.Deps) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		runs, _ := Runs(d)(cmd, args, word)
		sessions, directive := Sessions(d)(cmd, args, word)
		return append(runs, sessions...), directive
	}
}

// Bases offers the branches and tags of the repository here.
func Bases(d *command.Deps) cobra.CompletionFunc {
	return refs(d, func(resp *api.RefsResponse) []string { return resp.Names })
}

// Remotes offers the names of the remotes of the repository here.
func Remotes(d *command.Deps) cobra.CompletionFunc {
	return refs(d, func(resp *api.RefsResponse) []string { return resp.Remotes })
}

// Landings offers the landings here that can be taken back.
func Landings(d *command.Deps) cobra.CompletionFunc {
	return refs(d, func(resp *api.RefsResponse) []string {
		words := make([]string, 0, len(resp.Landings))
		for _, l := range resp.Landings {
			words = append(words, Described(string(l.ID), l.Run+" in "+l.Target))
		}
		return words
	})
}

// refs offers the words that list takes from the refs of the repository here.
func refs(d *command.Deps, list func(resp *api.RefsResponse) []string) cobra.CompletionFunc {
	return Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListRefs, api.RefsRequest{Dir: d.Dir})
		return list(&resp), err
	})
}

// Queued offers the runs that wait to land here, with their states; with left, also those that have
// left their queue.
func Queued(d *command.Deps, left bool) cobra.CompletionFunc {
	return First(Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
		resp, err := api.Call(ctx, client, api.ListQueue, api.ListQueueRequest{Dir: d.Dir, All: left})
		words := make([]string, 0, len(resp.Entries))
		for i := range resp.Entries {
			e := &resp.Entries[i].Entry
			words = append(words, Described(e.Run, string(e.State)+" in the queue of "+e.Target))
		}
		return words, err
	}))
}

// Of offers the words that list returns for the response of an operation about the first argument.
func Of[Req, Resp any](d *command.Deps, op api.Operation[Req, Resp], about func(arg string) Req, list func(resp *Resp) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return Ask(d, func(ctx context.Context, client *api.Client) ([]string, error) {
			resp, err := api.Call(ctx, client, op, about(args[0]))
			if err != nil {
				return nil, err
			}
			return list(&resp), nil
		})(cmd, args, word)
	}
}

// Shown offers the words that list returns for the run that is the first argument.
func Shown(d *command.Deps, list func(resp *api.ShowRunResponse) []string) cobra.CompletionFunc {
	return Of(d, api.ShowRun, func(run string) api.RunRequest { return api.RunRequest{Run: run} }, list)
}

// Attempts offers the numbers of the attempts of the run that is the first argument.
func Attempts(d *command.Deps) cobra.CompletionFunc {
	return Shown(d, func(resp *api.ShowRunResponse) []string {
		numbers := []string{}
		for i := range resp.Attempts {
			numbers = append(numbers, Described(strconv.Itoa(resp.Attempts[i].Number), string(resp.Attempts[i].State)))
		}
		return numbers
	})
}

// Reviewed is Shown for what agency review shows.
func Reviewed(d *command.Deps, list func(resp *api.ReviewRunResponse) []string) cobra.CompletionFunc {
	return Of(d, api.ReviewRun, func(run string) api.ReviewRunRequest {
		return api.ReviewRunRequest{Run: run, Env: d.Env, Config: d.CallerConfig()}
	}, list)
}

// Runners offers the names of runners, custom ones included.
func Runners(d *command.Deps) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := []string{}
		for _, kind := range config.RunnerKinds() {
			names = append(names, string(kind))
		}
		if cfg, _ := d.Config(); cfg != nil {
			names = append(names, slices.Sorted(maps.Keys(cfg.Custom))...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// Presets offers the names of presets.
func Presets(d *command.Deps) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := d.Config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(cfg.Presets)), cobra.ShellCompDirectiveNoFileComp
	}
}
