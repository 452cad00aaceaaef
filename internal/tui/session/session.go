// Package session is the screen of the sessions: each with its waves as columns, and what its agents
// wait for.
package session

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// most is how many sessions are listed, the newest.
const most = 100

// Page is the sessions of all repositories.
type Page struct {
	page.Quiet

	desk     *page.Desk
	sessions []api.Session
	loaded   bool
	cursor   page.Cursor
	shown    api.ShowSessionResponse // the chosen one; of another while that is read
}

type (
	sessionsMsg struct {
		sessions []api.Session
		err      error
	}
	showMsg struct {
		resp api.ShowSessionResponse
		err  error
	}
)

// New returns the sessions.
func New(desk *page.Desk) *Page { return &Page{desk: desk} }

// Title implements page.Page.
func (p *Page) Title() string { return fmt.Sprintf("sessions %d", len(p.sessions)) }

// Open implements page.Page.
func (p *Page) Open() tea.Cmd {
	d, ctx := &p.desk.Daemon, p.desk.Ctx
	return func() tea.Msg {
		resp, err := d.ListSessions(ctx, api.ListSessionsRequest{Limit: most})
		return sessionsMsg{resp.Sessions, err}
	}
}

// Changed implements page.Page.
func (p *Page) Changed() tea.Cmd { return p.Open() }

// Update implements page.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case sessionsMsg:
		if msg.err != nil {
			return p.desk.Fail(msg.err)
		}
		was := p.chosen()
		p.sessions, p.loaded = msg.sessions, true
		for i := range p.sessions {
			if was != nil && p.sessions[i].ID == was.ID {
				p.cursor.At = i
			}
		}
		p.cursor.Keep(len(p.sessions))
		return p.read("")
	case showMsg:
		if msg.err != nil {
			return p.desk.Fail(msg.err)
		}
		if s := p.chosen(); s != nil && s.ID == msg.resp.Session.ID {
			p.shown = msg.resp
		}
	}
	return nil
}

func (p *Page) chosen() *api.Session {
	if p.cursor.At >= len(p.sessions) {
		return nil
	}
	return &p.sessions[p.cursor.At]
}

// read reads the agents of the chosen session.
func (p *Page) read(string) tea.Cmd {
	s := p.chosen()
	if s == nil {
		return nil
	}
	d, ctx, id := &p.desk.Daemon, p.desk.Ctx, string(s.ID)
	return func() tea.Msg {
		resp, err := d.ShowSession(ctx, api.SessionRequest{Session: id})
		return showMsg{resp, err}
	}
}

// act returns an action on the chosen session, after a y when it has a question.
func (p *Page) act(does, ask, done string, act func(ctx context.Context, id string) error) func(string) tea.Cmd {
	return func(string) tea.Cmd {
		s := p.chosen()
		if s == nil {
			return p.desk.Say("there is no session")
		}
		id, name := string(s.ID), Name(s)
		do := func() tea.Cmd {
			return p.desk.Act(does+" "+name, name+" "+done, func(ctx context.Context) error { return act(ctx, id) })
		}
		if ask == "" {
			return do()
		}
		return p.desk.Confirm(fmt.Sprintf(ask, name), do)
	}
}

func (p *Page) pause(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.PauseSession(ctx, api.SessionRequest{Session: id})
	return err
}

func (p *Page) resume(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.ResumeSession(ctx, api.ResumeSessionRequest{Session: id})
	return err
}

func (p *Page) cancel(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.CancelSession(ctx, api.SessionRequest{Session: id})
	return err
}

func (p *Page) retry(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.RetrySession(ctx, api.RetrySessionRequest{Session: id, Env: p.desk.Env, Config: p.desk.Config})
	return err
}

// visit goes to the run of the agent that needs the user most.
func (p *Page) visit() tea.Cmd {
	run := agency.RunID("")
	for i := range p.shown.Agents {
		a := &p.shown.Agents[i]
		if a.RunID != "" && (run == "" || a.NeedsUser) {
			run = a.RunID
			if a.NeedsUser {
				break
			}
		}
	}
	if run == "" {
		return p.desk.Say("no agent of it has started")
	}
	return p.desk.Go(run)
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the sessions"
	return append(p.cursor.Keys(group, "session", func() int { return len(p.sessions) }, p.read),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to the run of its agent that needs you, or of the first", Short: "run", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "pause", Keys: []string{"p"}, Shown: "p", Does: "pause: no more agents start", Short: "pause", Group: group, Act: p.act("pausing", "", "is paused", p.pause)},
		page.Binding{Name: "continue", Keys: []string{"R"}, Shown: "R", Does: "continue after a pause", Short: "resume", Group: group, Act: p.act("resuming", "", "continues", p.resume)},
		page.Binding{Name: "cancel", Keys: []string{"x"}, Shown: "x", Does: "cancel it, after a y", Short: "cancel", Group: group, Act: p.act("cancelling", "cancel %s? its agents are stopped", "is cancelled", p.cancel)},
		page.Binding{Name: "retry", Keys: []string{"t"}, Shown: "t", Does: "try what is not complete again, in a new session, after a y", Short: "retry", Group: group, Act: p.act("retrying", "try what is not complete of %s again?", "continues in a new session", p.retry)},
	)
}
