package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/preview"
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
	return []string{"id", "handle", "name", "status", "summary", "problem", "since", "state", "repo", "branch", "runner", "headless", "tags", "request", "usage", "diff", "removed_at", "decided_by"}
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

// eye is the look at the screen of the chosen run. Only the newest turn counts.
type eye struct {
	run    agency.RunID
	tab    preview.Tab
	turn   int
	ctx    context.Context //nolint:containedctx // of this turn
	cancel context.CancelFunc
}

// Times of a look at a screen.
const (
	lookSoon  = 60 * time.Millisecond // after a move of the cursor, which may go on
	lookEvery = 40 * time.Millisecond
	lookSlow  = 200 * time.Millisecond // over ssh, where each frame is sent
	lookAgain = 2 * time.Second        // after an error
	lookWait  = 60 * time.Second       // how long the daemon waits for a change
)

type (
	lookMsg   struct{ turn int }
	screenMsg struct {
		turn int
		resp api.ShowScreenResponse
		err  error
	}
)

// watch looks at the run under the cursor when that is another than before, and at none when the
// pane is hidden.
func (b *board) watch() tea.Cmd {
	want := agency.RunID("")
	if r := b.list.Chosen(); r != nil && b.paneShown() {
		want = r.ID
	}
	if want == b.eye.run && b.pane.Tab == b.eye.tab {
		return nil
	}
	if b.eye.cancel != nil {
		b.eye.cancel()
	}
	turn := b.eye.turn + 1
	b.eye = eye{run: want, tab: b.pane.Tab, turn: turn}
	b.pane.Clear(b.pane.Tab)
	if want == "" {
		return nil
	}
	b.eye.ctx, b.eye.cancel = context.WithCancel(b.desk.Ctx)
	return b.desk.Later(lookSoon, lookMsg{turn})
}

// look asks for the screen: at once when there is none yet, else for the next one.
func (b *board) look(turn int) tea.Cmd {
	if turn != b.eye.turn || b.eye.run == "" {
		return nil
	}
	if b.eye.tab != preview.Screen {
		return b.read(turn)
	}
	ctx, show := b.eye.ctx, b.desk.Daemon.ShowScreen
	req := api.ShowScreenRequest{Run: string(b.eye.run), Seen: b.pane.Screen.Revision, Wait: lookWait.Milliseconds()}
	return func() tea.Msg {
		resp, err := show(ctx, req)
		return screenMsg{turn, resp, err}
	}
}

func (b *board) saw(msg screenMsg) tea.Cmd {
	if msg.turn != b.eye.turn || b.eye.run == "" {
		return nil
	}
	next := lookEvery
	switch {
	case msg.err != nil:
		next = lookAgain
	default:
		b.pane.Show(b.eye.run, &msg.resp.Screen)
		if agency.Environ(b.desk.Env).Lookup("SSH_TTY") != "" {
			next = lookSlow
		}
	}
	return b.desk.Later(next, lookMsg{msg.turn})
}
