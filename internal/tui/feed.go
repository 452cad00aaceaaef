package tui

import (
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/list"
)

// feed asks for the runs that changed: once for many changes, and for all runs the less often the longer
// an answer takes.
type feed struct {
	asked bool                  // an answer, or the time to ask, is awaited
	all   bool                  // any run may have changed since then
	runs  map[agency.RunID]bool // these have
}

const (
	// feedEvery is the time between two questions; after one for all runs, it is at least four times as
	// long as the answer took.
	feedEvery = 50 * time.Millisecond
	// mostChanged is how many runs are asked for by their ids; with more, all are.
	mostChanged = 200
)

type (
	fetchMsg struct{}
	runsMsg  struct {
		ids  []agency.RunID // that were asked for; nil means all
		resp api.ListRunsResponse
		err  error
		took time.Duration
	}
)

// fields are those of a run that the dashboard shows.
func fields() []string {
	return []string{"id", "handle", "name", "status", "summary", "problem", "since", "state", "repo", "branch", "runner", "headless", "mode", "tags", "type", "request", "usage", "diff", "created_at", "removed_at", "decided_by", "snoozed_until"}
}

// changed asks for a run, or for all when it is empty: now, or when the answer that is awaited has
// come.
func (b *board) changed(run agency.RunID) tea.Cmd {
	b.feed.all = b.feed.all || run == ""
	if run != "" {
		b.feed.runs[run] = true
	}
	if b.feed.asked {
		return nil
	}
	return b.fetch()
}

func (b *board) fetch() tea.Cmd {
	req := api.ListRunsRequest{Fields: fields(), Order: api.OrderByNeed}
	if b.list.Grouped() == list.BySession { // the daemon looks for it in each answer
		req.Fields = append(req.Fields, "session")
	}
	if !b.feed.all && len(b.feed.runs) <= mostChanged {
		req.RunIDs = slices.Sorted(maps.Keys(b.feed.runs))
	}
	b.feed = feed{asked: true, runs: map[agency.RunID]bool{}}
	ctx, listRuns := b.desk.Ctx, b.desk.Daemon.ListRuns
	return func() tea.Msg {
		begun := time.Now()
		resp, err := listRuns(ctx, req)
		return runsMsg{req.RunIDs, resp, err, time.Since(begun)}
	}
}

func (b *board) listed(msg runsMsg) tea.Cmd {
	b.feed.asked = false
	if msg.err != nil {
		b.feed.all = true
		b.away = agency.AsError(msg.err).Message
		return nil
	}
	b.loaded, b.away = true, ""
	if msg.ids == nil {
		b.list.Set(msg.resp.Runs)
	} else {
		b.list.Update(msg.ids, msg.resp.Runs)
	}
	more := b.eye.changed(msg.ids)
	if b.wanted != "" && msg.ids == nil {
		if !b.list.Go(b.wanted) {
			more = tea.Batch(more, b.desk.Say("that run is not in the list: it was removed, or the filter hides it"))
		}
		b.wanted = ""
	}
	if !b.feed.all && len(b.feed.runs) == 0 {
		return more
	}
	b.feed.asked = true
	next := feedEvery
	if msg.ids == nil { // all runs cost the daemon more than a few
		next = max(feedEvery, 4*msg.took)
	}
	return tea.Batch(more, b.desk.Later(next, fetchMsg{}))
}
