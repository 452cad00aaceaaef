package session

import (
	"cmp"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// Name returns what users call a session.
func Name(s *api.Session) string { return term.SafeLine(cmp.Or(s.Name, string(s.ID))) }

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Message("reading …", width, height)
	case len(p.sessions) == 0:
		return page.Message("no session yet: agency session start PLAN", width, height)
	}
	rows := min(len(p.sessions), max(height/3, 1))
	name := max(width/3, 16)
	p.cursor.Inactive = p.agentsFocused
	lines := p.cursor.Draw(width, rows, len(p.sessions), func(i int) cell.Line { return row(&p.sessions[i], name) })
	text := page.Text{}
	if p.current() {
		text = p.text(width)
	}
	p.agent.Height = height - rows - 1
	return page.Fill(append(lines, p.pane.Draw(text, width, height-rows)...), width, height)
}

// row returns the row of a session.
func row(s *api.Session, name int) cell.Line {
	mark := view.SessionMark(s)
	line := cell.Of(cell.Coloured(view.MarkColour(mark)), mark+" ").Add(cell.Bold, term.Pad(page.Shorten(Name(s), name), name)).
		Add(cell.Plain, " "+view.SessionStatus(s)).Add(cell.Dim, "  "+view.Counts(s.Summary, s.Waiting))
	if s.Paused != "" && !s.Status.Final() {
		line = line.Add(cell.Coloured(view.Yellow), "  paused: "+s.Paused)
	}
	return line
}

// text returns the text below the list: the waves, the critical path and the agents of the chosen session.
func (p *Page) text(width int) page.Text {
	lines := p.head(width)
	lines = append(lines, p.waves(width)...)
	lines = append(lines, cell.Of(cell.Plain, ""))
	lines = append(lines, p.path(width)...)
	agents, first, last := p.list(width)
	return page.Text{Of: string(p.shown.Session.ID), Lines: append(lines, agents...), From: len(lines) + first, To: len(lines) + last}
}

// head returns why the session is paused, what of its work has landed, and where its report is.
func (p *Page) head(width int) []cell.Line {
	s := &p.shown.Session
	lines := []cell.Line{}
	if s.Paused != "" && !s.Status.Final() {
		lines = append(lines, cell.Wrap(cell.Coloured(view.Yellow), view.SessionNeeds(&p.shown), 1, width, 0)...)
	}
	lines = append(lines, page.Fact("landed", view.Landed(p.shown.Agents), width)...)
	lines = append(lines, page.Fact("report", s.ReportPath, width)...)
	if len(lines) > 0 {
		lines = append(lines, cell.Of(cell.Plain, ""))
	}
	return lines
}

// label returns what users call an agent: its id, and its name if that is another.
func label(a *api.SessionAgent) string {
	return term.SafeLine(a.ID + " " + view.AgentName(a))
}
