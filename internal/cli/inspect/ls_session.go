package inspect

import (
	"cmp"
	"context"
	"io"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
)

// sessionRuns are the runs of a session in the order of its plan and, separately in JSON, the
// agents without a run.
type sessionRuns struct {
	Runs   []api.Run          `json:"runs"`
	Agents []api.SessionAgent `json:"agents"`
}

// listSession prints the runs of a session in the order of its plan, and its agents that have not
// begun, if they have the status and the tag that the options select. The runs have the given
// fields; none means all.
func (o *listOptions) listSession(ctx context.Context, client *api.Client, fields []string) error {
	s, err := api.Call(ctx, client, api.ShowSession, api.SessionRequest{Session: o.session, Dir: o.Dir})
	if err != nil {
		return err
	}
	all, err := api.Call(ctx, client, api.ListRuns, api.ListRunsRequest{Removed: true, Status: command.OrEmpty(o.status), Tag: o.tag, Fields: fields})
	if err != nil {
		return err
	}
	byID := make(map[agency.RunID]*api.Run, len(all.Runs))
	for i := range all.Runs {
		byID[all.Runs[i].ID] = &all.Runs[i]
	}
	found := sessionRuns{[]api.Run{}, []api.SessionAgent{}}
	rows := []api.Run{}
	for i := range s.Agents {
		a := &s.Agents[i]
		if r := byID[a.RunID]; r != nil {
			found.Runs = append(found.Runs, *r)
			rows = append(rows, *r)
			continue
		}
		if o.tag != "" || len(o.status) > 0 && (a.RunID != "" || !slices.Contains(o.status, string(a.Status))) {
			continue // not selected
		}
		found.Agents = append(found.Agents, *a)
		rows = append(rows, api.Run{
			Name: a.ID, Status: agency.Label(a.Status), Summary: cmp.Or(a.Error, a.WaitReason), Runner: a.Runner, Repo: s.Session.Repo,
		})
	}
	switch {
	case o.JSON:
		return o.Print(found, nil)
	case o.format.output == "yaml":
		return command.YAML(o.Out, api.Success(found))
	case o.format.quiet || o.format.output == "name":
		rows = slices.Clone(found.Runs) // output for other commands has only names of runs
	}
	if done, err := o.format.print(o.Out, o.Deps, rows); done {
		return err
	}
	_, _ = io.WriteString(o.Out, o.RunTable(rows, false))
	return nil
}
