package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

func (a *App) sessionList() *cobra.Command {
	req := api.ListSessionsRequest{Dir: a.Dir}
	var allRepos bool
	cmd := command(cobra.Command{
		Use:     "ls",
		Short:   "List sessions, newest first",
		Long:    "Lists the sessions of this repository, or of all repositories outside of one.",
		Example: "  agency session ls\n  agency session ls --live --json",
		Args:    takes(),
	}, func(cmd *cobra.Command, _ []string) error {
		if req.Limit < 0 {
			return agency.Errorf(agency.CodeUsage, "--limit is %d; it cannot be negative", req.Limit).WithHint("0 is all of them")
		}
		if allRepos {
			req.Dir = ""
		}
		resp, err := call(cmd.Context(), a, api.ListSessions, req)
		if agency.IsCode(err, agency.CodeNotGitRepo) {
			req.Dir = ""
			resp, err = call(cmd.Context(), a, api.ListSessions, req)
		}
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) {
			if len(resp.Sessions) == 0 {
				a.chat("no sessions here; start one: agency session start plan.yaml")
				return
			}
			_, _ = io.WriteString(w, a.sessionTable(resp.Sessions))
		})
	})
	f := cmd.Flags()
	f.BoolVar(&req.Live, "live", false, "only those that are running")
	f.BoolVar(&allRepos, "all-repos", false, "show the sessions of every repository")
	f.IntVar(&req.Limit, "limit", 0, "only the newest `N` (0: all)")
	return cmd
}

// sessionTable is a list of sessions for people, with their repositories where those differ.
func (a *App) sessionTable(sessions []api.Session) string {
	rows := [][]string{{"SESSION", "STATUS", "DONE", "TOOK", "NAME", "REPOSITORY"}}
	for i := range sessions {
		s := &sessions[i]
		status, took := sessionWord(s), a.Now().Sub(s.StartedAt)
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
			s.Ref(), sessionMark(s) + " " + status, fmt.Sprintf("%d/%d", t.Complete+t.Failed+t.Cancelled, t.Total), stopwatch(took),
			orDash(term.Fit(term.SafeLine(name), summaryColumns)), term.SafeLine(s.Repo),
		})
	}
	if !slices.ContainsFunc(sessions, func(s api.Session) bool { return s.Repo != sessions[0].Repo }) {
		for i, row := range rows {
			rows[i] = row[:len(row)-1]
		}
	}
	return a.textTable(rows)
}
