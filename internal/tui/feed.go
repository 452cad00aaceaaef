package tui

import (
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
)

// feed asks for the runs that changed and puts them into the list: once for many changes, and for all
// runs the less often the longer an answer takes.
type feed struct {
	desk *page.Desk
	list *list.List

	asked  bool                  // the feed waits for an answer, or for the time to ask
	all    bool                  // any run may have changed since then
	runs   map[agency.RunID]bool // these runs have changed since then
	loaded bool                  // the first list has come
	away   string                // why the daemon does not answer
	wanted agency.RunID          // the cursor goes there with the next list of all runs
}

const (
	// feedEvery is the time between two requests. After a request for all runs, it is at least four times
	// as long as the answer took.
	feedEvery = 50 * time.Millisecond
	// mostChanged is how many runs a request names by their ids. If more have changed, it is for all runs.
	mostChanged = 200
)

type (
	fetchMsg struct{}
	runsMsg  struct {
		ids  []agency.RunID // the runs of the request; nil for all
		resp api.ListRunsResponse
		err  error
		took time.Duration
	}
)

// fields returns the fields of a run that the dashboard shows.
func fields() []string {
	return []string{"id", "handle", "name", "status", "summary", "problem", "since", "state", "repo", "branch", "runner", "headless", "mode", "tags", "type", "request", "usage", "diff", "created_at", "removed_at", "decided_by", "snoozed_until"}
}

// changed asks for a run that changed, or for all runs if it is empty: now or, while the feed waits for an
// answer, after that.
func (f *feed) changed(run agency.RunID) tea.Cmd {
	f.all = f.all || run == ""
	if run != "" {
		f.runs[run] = true
	}
	if f.asked {
		return nil
	}
	return f.fetch()
}

// fetch asks for the runs that have changed.
func (f *feed) fetch() tea.Cmd {
	req := api.ListRunsRequest{Fields: fields(), Order: api.OrderByNeed}
	if f.list.Grouped() == list.BySession { // a field that costs the daemon a search for each run
		req.Fields = append(req.Fields, "session")
	}
	if !f.all && len(f.runs) <= mostChanged {
		req.RunIDs = slices.Sorted(maps.Keys(f.runs))
	}
	f.asked, f.all, f.runs = true, false, map[agency.RunID]bool{}
	ctx, listRuns := f.desk.Ctx, f.desk.Daemon.ListRuns
	return func() tea.Msg {
		begun := time.Now()
		resp, err := listRuns(ctx, req)
		return runsMsg{req.RunIDs, resp, err, time.Since(begun)}
	}
}

// listed puts an answer into the list, and asks again if more has changed since the request.
func (f *feed) listed(msg runsMsg) tea.Cmd {
	f.asked = false
	if msg.err != nil {
		f.all = true
		f.away = agency.AsError(msg.err).Message
		return nil
	}
	f.loaded, f.away = true, ""
	if msg.ids == nil {
		f.list.Set(msg.resp.Runs)
	} else {
		f.list.Update(msg.ids, msg.resp.Runs)
	}
	var said tea.Cmd
	if f.wanted != "" && msg.ids == nil {
		if !f.list.Go(f.wanted) {
			said = f.desk.Say("that run is not in the list: it was removed, or the filter hides it")
		}
		f.wanted = ""
	}
	if !f.all && len(f.runs) == 0 {
		return said
	}
	f.asked = true
	next := feedEvery
	if msg.ids == nil { // all runs cost the daemon more than a few
		next = max(feedEvery, 4*msg.took)
	}
	return tea.Batch(said, f.desk.Later(next, fetchMsg{}))
}
