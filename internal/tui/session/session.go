// Package session is the screen of the sessions. It shows the waves of the chosen one as columns, and its
// agents with what they do and wait for.
package session

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/page"
)

// most is how many sessions the page lists at most: the newest.
const most = 100

// Page is the sessions of all repositories.
type Page struct {
	page.Quiet

	desk          *page.Desk
	sessions      []api.Session
	loaded        bool
	cursor        page.Cursor
	shown         api.ShowSessionResponse // the chosen session, or the one before until its answer comes
	agents        []*api.SessionAgent     // those of shown, in the order of the list
	agent         page.Cursor             // in agents
	agentsFocused bool                    // the keys move the cursor in agents
	wanted        agency.SessionID        // the cursor goes there with the first list
	pane          page.Pane
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

// At returns the sessions, with the cursor on one of them.
func At(desk *page.Desk, id agency.SessionID) *Page { return &Page{desk: desk, wanted: id} }

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
		at, wanted := p.wanted, p.wanted != ""
		if was := p.chosen(); was != nil {
			at = was.ID
		}
		p.sessions, p.loaded, p.wanted = msg.sessions, true, ""
		for i := range p.sessions {
			if p.sessions[i].ID == at {
				p.cursor.At, wanted = i, false
			}
		}
		p.cursor.Keep(len(p.sessions))
		if wanted {
			return tea.Batch(p.read(""), p.desk.Say(fmt.Sprintf("that session is not one of the newest %d", most)))
		}
		return p.read("")
	case showMsg:
		if msg.err != nil {
			return p.desk.Fail(msg.err)
		}
		if s := p.chosen(); s != nil && s.ID == msg.resp.Session.ID {
			p.show(msg.resp)
		}
	}
	return nil
}

// chosen returns the session at the cursor; nil if there is none.
func (p *Page) chosen() *api.Session {
	if p.cursor.At >= len(p.sessions) {
		return nil
	}
	return &p.sessions[p.cursor.At]
}

// show shows a session that has come. The cursor in the agents stays on its agent.
func (p *Page) show(resp api.ShowSessionResponse) {
	was := ""
	if a := p.chosenAgent(); a != nil && p.shown.Session.ID == resp.Session.ID {
		was = a.ID
	}
	agents := make([]*api.SessionAgent, len(resp.Agents))
	for i := range resp.Agents {
		agents[i] = &resp.Agents[i]
	}
	p.shown, p.agents, p.agent.At = resp, ordered(agents), 0
	for i, a := range p.agents {
		if a.ID == was {
			p.agent.At = i
		}
	}
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

// act returns the action of a key that does something with the chosen session, after a y if ask is not empty.
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

// pause pauses a session.
func (p *Page) pause(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.PauseSession(ctx, api.SessionRequest{Session: id})
	return err
}

// resume continues a session.
func (p *Page) resume(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.ResumeSession(ctx, api.ResumeSessionRequest{Session: id})
	return err
}

// cancel cancels a session.
func (p *Page) cancel(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.CancelSession(ctx, api.SessionRequest{Session: id})
	return err
}

// retry tries the agents of a session that are not complete again.
func (p *Page) retry(ctx context.Context, id string) error {
	_, err := p.desk.Daemon.RetrySession(ctx, api.RetrySessionRequest{Session: id, Env: p.desk.Env, Config: p.desk.Config})
	return err
}

// current reports whether the page has the agents of the chosen session.
func (p *Page) current() bool {
	s := p.chosen()
	return s != nil && s.ID == p.shown.Session.ID
}

// chosenAgent returns the agent at the cursor; nil if there is none.
func (p *Page) chosenAgent() *api.SessionAgent {
	if !p.current() || p.agent.At >= len(p.agents) {
		return nil
	}
	return p.agents[p.agent.At]
}

// enter makes the keys move the cursor in the agents, or again the one in the sessions.
func (p *Page) enter() tea.Cmd {
	if !p.agentsFocused && p.chosenAgent() == nil {
		return p.none()
	}
	p.agentsFocused = !p.agentsFocused
	return nil
}

// none tells the user why there is no agent at the cursor.
func (p *Page) none() tea.Cmd {
	if !p.current() {
		return p.desk.Say("its agents are not read yet")
	}
	return p.desk.Say("it has no agents")
}

// moves returns the cursor that the keys move, and how many rows its list has.
func (p *Page) moves() (c *page.Cursor, rows int) {
	if p.agentsFocused {
		return &p.agent, len(p.agents)
	}
	return &p.cursor, len(p.sessions)
}

// moved reads the agents of the session to which the cursor has moved.
func (p *Page) moved(key string) tea.Cmd {
	if p.agentsFocused {
		return nil
	}
	p.agent.At = 0
	return p.read(key)
}

// visit goes to the run of the agent at the cursor. While the keys move the cursor in the sessions, it goes to
// the first run in the list of agents: that of the agent that needs the user most.
func (p *Page) visit() tea.Cmd {
	a := p.chosenAgent()
	switch {
	case a == nil:
		return p.none()
	case p.agentsFocused && a.RunID == "":
		return p.desk.Say(term.SafeLine(a.ID) + " has not started")
	case p.agentsFocused:
		return p.desk.Go(a.RunID)
	}
	for _, a := range p.agents {
		if a.RunID != "" {
			return p.desk.Go(a.RunID)
		}
	}
	return p.desk.Say("no agent of it has started")
}

// Bindings implements page.Page.
func (p *Page) Bindings() []page.Binding {
	const group = "In the sessions"
	other := "agents"
	if p.agentsFocused {
		other = "sessions"
	}
	return append(append(page.MoveKeys(group, "session or agent", p.moves, p.moved), p.pane.Keys(group)...),
		page.Binding{Name: "open", Keys: []string{"enter"}, Shown: "enter", Does: "to the run of the agent, or of the one that needs you most", Short: "run", Group: group, Act: page.Run(p.visit)},
		page.Binding{Name: "focus", Keys: []string{"tab"}, Shown: "tab", Does: "to the agents of the session, and back", Short: other, Group: group, Act: page.Run(p.enter)},
		page.Binding{Name: "pause", Keys: []string{"p"}, Shown: "p", Does: "pause: no more agents start", Short: "pause", Group: group, Act: p.act("pausing", "", "is paused", p.pause)},
		page.Binding{Name: "continue", Keys: []string{"R"}, Shown: "R", Does: "continue after a pause", Short: "resume", Group: group, Act: p.act("resuming", "", "continues", p.resume)},
		page.Binding{Name: "cancel", Keys: []string{"x"}, Shown: "x", Does: "cancel the session, after a y", Short: "cancel", Group: group, Act: p.act("cancelling", "cancel %s? its agents are stopped", "is cancelled", p.cancel)},
		page.Binding{Name: "retry", Keys: []string{"t"}, Shown: "t", Does: "try what is not complete again, in a new session, after a y", Short: "retry", Group: group, Act: p.act("retrying", "try what is not complete of %s again?", "continues in a new session", p.retry)},
	)
}
