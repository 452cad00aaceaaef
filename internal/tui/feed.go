package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
)

// feed asks for the list again when something changed: once for many changes, and the less often
// the longer an answer takes.
type feed struct {
	asked bool // an answer, or the time to ask, is awaited
	stale bool // something changed after that
}

// The time between two lists: this, or four times as long as one takes.
const feedEvery = 100 * time.Millisecond

type (
	fetchMsg struct{}
	runsMsg  struct {
		resp api.ListRunsResponse
		err  error
		took time.Duration
	}
)

// fields are those of a run that the dashboard shows.
func fields() []string {
	return []string{"id", "handle", "name", "status", "summary", "problem", "since", "state", "repo", "branch", "runner", "headless", "tags", "request", "usage", "diff", "removed_at", "decided_by", "snoozed_until"}
}

// changed asks for the list, now or when the one that is asked for has come.
func (b *board) changed() tea.Cmd {
	if b.feed.asked {
		b.feed.stale = true
		return nil
	}
	return b.fetch()
}

func (b *board) fetch() tea.Cmd {
	b.feed.asked, b.feed.stale = true, false
	ctx, list := b.desk.Ctx, b.desk.Daemon.ListRuns
	return func() tea.Msg {
		begun := time.Now()
		resp, err := list(ctx, api.ListRunsRequest{Fields: fields(), Order: api.OrderByNeed})
		return runsMsg{resp, err, time.Since(begun)}
	}
}

func (b *board) listed(msg runsMsg) tea.Cmd {
	b.feed.asked = false
	if msg.err != nil {
		b.away = agency.AsError(msg.err).Message
		return nil
	}
	b.loaded, b.away = true, ""
	b.list.Set(msg.resp.Runs)
	var lost tea.Cmd
	if b.wanted != "" && !b.list.Go(b.wanted) {
		lost = b.desk.Say("that run is not in the list: it was removed, or the filter hides it")
	}
	b.wanted = ""
	if !b.feed.stale {
		return lost
	}
	b.feed.asked = true
	return tea.Batch(lost, b.desk.Later(max(feedEvery, 4*msg.took), fetchMsg{}))
}
