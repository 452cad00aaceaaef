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
func (m *Model) changed() tea.Cmd {
	if m.feed.asked {
		m.feed.stale = true
		return nil
	}
	return m.fetch()
}

func (m *Model) fetch() tea.Cmd {
	m.feed.asked, m.feed.stale = true, false
	ctx, list := m.ctx, m.o.Daemon.ListRuns
	return func() tea.Msg {
		begun := time.Now()
		resp, err := list(ctx, api.ListRunsRequest{Fields: fields(), Order: api.OrderByNeed})
		return runsMsg{resp, err, time.Since(begun)}
	}
}

func (m *Model) listed(msg runsMsg) tea.Cmd {
	m.feed.asked = false
	if msg.err != nil {
		m.away = agency.AsError(msg.err).Message
		return nil
	}
	m.loaded, m.away = true, ""
	m.list.Set(msg.resp.Runs)
	if !m.feed.stale {
		return nil
	}
	m.feed.asked = true
	return m.later(max(feedEvery, 4*msg.took), fetchMsg{})
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
func (m *Model) watch() tea.Cmd {
	want := agency.RunID("")
	if r := m.list.Chosen(); r != nil && m.paneShown() {
		want = r.ID
	}
	if want == m.eye.run && m.pane.Tab == m.eye.tab {
		return nil
	}
	if m.eye.cancel != nil {
		m.eye.cancel()
	}
	turn := m.eye.turn + 1
	m.eye = eye{run: want, tab: m.pane.Tab, turn: turn}
	m.pane.Clear(m.pane.Tab)
	if want == "" {
		return nil
	}
	m.eye.ctx, m.eye.cancel = context.WithCancel(m.ctx)
	return m.later(lookSoon, lookMsg{turn})
}

// look asks for the screen: at once when there is none yet, else for the next one.
func (m *Model) look(turn int) tea.Cmd {
	if turn != m.eye.turn || m.eye.run == "" {
		return nil
	}
	if m.eye.tab != preview.Screen {
		return m.read(turn)
	}
	ctx, show := m.eye.ctx, m.o.Daemon.ShowScreen
	req := api.ShowScreenRequest{Run: string(m.eye.run), Seen: m.pane.Screen.Revision, Wait: lookWait.Milliseconds()}
	return func() tea.Msg {
		resp, err := show(ctx, req)
		return screenMsg{turn, resp, err}
	}
}

func (m *Model) shown(msg screenMsg) tea.Cmd {
	if msg.turn != m.eye.turn || m.eye.run == "" {
		return nil
	}
	next := lookEvery
	switch {
	case msg.err != nil:
		next = lookAgain
	default:
		m.pane.Show(m.eye.run, &msg.resp.Screen)
		if agency.Environ(m.o.Env).Lookup("SSH_TTY") != "" {
			next = lookSlow
		}
	}
	return m.later(next, lookMsg{msg.turn})
}
