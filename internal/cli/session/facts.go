package session

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// facts are the flags that print one fact about a session, for scripts.
type facts struct{ path, isComplete, running, queued bool }

func (f *facts) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.path, "path", false, "print only the folder of its status files")
	flags.BoolVar(&f.isComplete, "is-complete", false, "print only whether it has settled: true with exit status 0, or false with 1")
	flags.BoolVar(&f.running, "running", false, "print only the ids of the running agents")
	flags.BoolVar(&f.queued, "queued", false, "print only the ids of the queued agents")
	cmd.MarkFlagsMutuallyExclusive("path", "is-complete", "running", "queued")
}

// print prints the one fact that a flag asked for; asked is false without such a flag.
func (f *facts) print(d *command.Deps, resp *api.ShowSessionResponse) (asked bool, err error) {
	s := &resp.Session
	switch {
	case f.path:
		return true, d.Print(map[string]string{"path": s.Dir}, func(w io.Writer) { _, _ = fmt.Fprintln(w, term.SafeLine(s.Dir)) })
	case f.isComplete:
		if !s.Status.Final() {
			d.Status = agency.ExitError
		}
		return true, d.Print(map[string]bool{"is_complete": s.Status.Final()}, func(w io.Writer) { _, _ = fmt.Fprintln(w, s.Status.Final()) })
	case f.running:
		return true, printAgents(d, resp, agency.AgentRunning)
	case f.queued:
		return true, printAgents(d, resp, agency.AgentQueued)
	}
	return false, nil
}

// printAgents prints the ids of the agents with a status.
func printAgents(d *command.Deps, resp *api.ShowSessionResponse, status agency.AgentStatus) error {
	ids := []string{}
	for i := range resp.Agents {
		if resp.Agents[i].Status == status {
			ids = append(ids, resp.Agents[i].ID)
		}
	}
	return d.Print(map[string][]string{"agents": ids}, func(w io.Writer) {
		for _, id := range ids {
			_, _ = fmt.Fprintln(w, id)
		}
	})
}
