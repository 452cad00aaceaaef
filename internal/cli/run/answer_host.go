package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
)

// always allows a host for this run and, by the user's configuration, for all later ones.
const always = "always"

// scopes returns the answers to the refusal of a host.
func scopes() []string { return []string{string(agency.GrantOnce), string(agency.GrantRun), always} }

// unanswered returns the hosts that the user can still allow the agent of a run.
func unanswered(resp *api.ShowRunResponse) []agency.Refusal {
	if n := len(resp.Attempts); n > 0 {
		return resp.Attempts[n-1].Network.Unanswered()
	}
	return []agency.Refusal{}
}

// allowHost answers the refusal of a host.
func (o *answerOptions) allowHost(ctx context.Context, args []string) error {
	if len(args) != 2 || !slices.Contains(scopes(), args[1]) {
		return agency.Errorf(agency.CodeUsage, "the answers for a host are %s", strings.Join(scopes(), ", ")).
			WithHint("until the attempt ends: agency answer %s once --host %s", append(args, "RUN")[0], o.host)
	}
	scope := agency.GrantScope(args[1])
	if args[1] == always {
		scope = agency.GrantRun
	}
	resp, err := command.Call(ctx, o.Deps, api.AllowHost, api.AllowHostRequest{Run: args[0], Host: o.host, Scope: scope})
	if err != nil {
		return err
	}
	path := ""
	if args[1] == always {
		path, err = o.EditConfig(func(cfg *config.Config, data []byte) ([]byte, error) { return cfg.AddHost(o.Env, data, o.host) })
		if err != nil {
			return err
		}
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s is allowed", o.host)
		if path != "" {
			_, _ = fmt.Fprintf(w, ", for all your runs: [sandbox] hosts in %s", term.SafeLine(path))
		}
		_, _ = fmt.Fprintln(w)
		if !resp.Reached {
			o.Chat("no running agent has it yet; the next attempt of a run gets it")
		}
	})
}
