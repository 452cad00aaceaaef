package command

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// Names returns a function that returns the name of the run or user with an id. It asks the daemon
// once for each id.
func (d *Deps) Names(ctx context.Context) func(id string) string {
	known := map[string]string{"": "no recipient", agency.Daemon: agency.Daemon, agency.User: "you"}
	if self := d.Getenv("AGENCY_RUN_ID"); self != "" {
		known[self], known[agency.User] = "you", "the user"
	}
	return func(id string) string {
		if name, ok := known[id]; ok {
			return name
		}
		known[id] = term.SafeLine(id)
		if resp, err := Call(ctx, d, api.ListRuns, api.ListRunsRequest{Run: id, Removed: true}); err == nil && len(resp.Runs) == 1 {
			known[id] = term.SafeLine(resp.Runs[0].Ref())
		}
		return known[id]
	}
}
