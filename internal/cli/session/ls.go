package session

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// listOptions are the flags and dependencies of agency session ls.
type listOptions struct {
	*command.Deps

	req      api.ListSessionsRequest
	allRepos bool
}

// newList returns the command agency session ls.
func newList(d *command.Deps) *cobra.Command {
	o := &listOptions{Deps: d, req: api.ListSessionsRequest{Dir: d.Dir}}
	cmd := command.New(cobra.Command{
		Use:     "ls",
		Short:   "List sessions, newest first",
		Long:    "Lists the sessions of this repository, or of all repositories outside of one.",
		Example: "  agency session ls\n  agency session ls --live --json",
		Args:    command.Takes(),
	}, o.run)
	f := cmd.Flags()
	f.BoolVar(&o.req.Live, "live", false, "show only running sessions")
	f.BoolVar(&o.allRepos, "all-repos", false, "show the sessions of every repository")
	f.IntVar(&o.req.Limit, "limit", 0, "show only the newest `N` (0: all)")
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command, _ []string) error {
	if o.req.Limit < 0 {
		return agency.Errorf(agency.CodeUsage, "--limit is %d; it cannot be negative", o.req.Limit).WithHint("0 is all of them")
	}
	if o.allRepos {
		o.req.Dir = ""
	}
	resp, err := command.Call(cmd.Context(), o.Deps, api.ListSessions, o.req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		o.req.Dir = ""
		resp, err = command.Call(cmd.Context(), o.Deps, api.ListSessions, o.req)
	}
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		if len(resp.Sessions) == 0 {
			o.Chat("no sessions here; start one: agency session start plan.yaml")
			return
		}
		_, _ = io.WriteString(w, table(o.Deps, resp.Sessions))
	})
}

// table returns a list of sessions as text, with their repositories where those differ.
func table(d *command.Deps, sessions []api.Session) string {
	rows := [][]string{{"SESSION", "STATUS", "DONE", "TOOK", "NAME", "REPOSITORY"}}
	for i := range sessions {
		s := &sessions[i]
		status, took := view.SessionStatus(s), d.Now().Sub(s.StartedAt)
		switch {
		case s.CompletedAt != nil:
			took = s.CompletedAt.Sub(s.StartedAt)
		case s.Cancelling:
		case s.Paused != "":
			status = "paused"
		case s.Waiting > 0:
			status = fmt.Sprintf("%d waiting", s.Waiting)
		}
		name := s.Name
		if name == "" {
			name = s.SourceFile
		}
		t := &s.Summary
		rows = append(rows, []string{
			s.Ref(), view.SessionMark(s) + " " + status, fmt.Sprintf("%d/%d", t.Complete, t.Total), duration.Stopwatch(took),
			command.OrDash(term.Fit(term.SafeLine(name), command.SummaryColumns)), term.SafeLine(s.Repo),
		})
	}
	if !slices.ContainsFunc(sessions, func(s api.Session) bool { return s.Repo != sessions[0].Repo }) {
		for i, row := range rows {
			rows[i] = row[:len(row)-1]
		}
	}
	return d.TextTable(rows)
}
