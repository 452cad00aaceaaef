package session

import (
	"cmp"
	"fmt"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// leastColumn is the narrowest column of a wave. Waves without room are below the others.
const leastColumn = 16

// Name returns what users call a session.
func Name(s *api.Session) string { return term.SafeLine(cmp.Or(s.Name, string(s.ID))) }

// Draw implements page.Page.
func (p *Page) Draw(width, height int) []cell.Line {
	switch {
	case !p.loaded:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  reading …")}, width, height)
	case len(p.sessions) == 0:
		return page.Fill([]cell.Line{cell.Of(cell.Dim, "  no session yet: agency session start PLAN")}, width, height)
	}
	rows := min(len(p.sessions), max(height/3, 1))
	lines := p.cursor.Draw(width, rows, len(p.sessions), func(i int) cell.Line { return row(&p.sessions[i]) })
	lines = append(lines, cell.Of(cell.Dim, strings.Repeat("─", width)))
	if s := p.chosen(); s != nil && p.shown.Session.ID == s.ID {
		lines = append(lines, p.waves(width)...)
		lines = append(lines, cell.Of(cell.Plain, ""))
		lines = append(lines, p.path(width)...)
		lines = append(lines, p.notes()...)
	}
	return page.Fill(lines, width, height)
}

func row(s *api.Session) cell.Line {
	mark := view.SessionMark(s)
	line := cell.Of(cell.Coloured(view.MarkColour(mark)), mark+" ").Add(cell.Bold, term.Pad(term.Fit(Name(s), 26), 26)).
		Add(cell.Plain, " "+view.SessionStatus(s)).Add(cell.Dim, "  "+view.Counts(s.Summary, s.Waiting))
	if s.Paused != "" && !s.Status.Final() {
		line = line.Add(cell.Coloured(view.Yellow), "  paused: "+s.Paused)
	}
	return line
}

// waves returns the agents, each wave a column, as many beside each other as there is room for.
func (p *Page) waves(width int) []cell.Line {
	agents := map[string]*api.SessionAgent{}
	for i := range p.shown.Agents {
		agents[p.shown.Agents[i].ID] = &p.shown.Agents[i]
	}
	lines := []cell.Line{}
	room := max(width/leastColumn, 1)
	for waves := p.shown.Waves; len(waves) > 0; {
		n := min(len(waves), room)
		part := waves[:n]
		waves = waves[n:]
		column := min(width/n, 30)
		deepest := 0
		for i := range part {
			deepest = max(deepest, len(part[i].Agents))
		}
		head := cell.Line{}
		for i := range part {
			title := cell.Of(cell.Dim, fmt.Sprintf(" wave %d ", part[i].Wave))
			arrow := "▶ "
			if i == n-1 {
				arrow = "  "
			}
			head = append(append(head, title...), cell.Of(cell.Dim, strings.Repeat("─", max(column-title.Width()-2, 0))+arrow)...)
		}
		lines = append(lines, head)
		for at := range deepest {
			line := cell.Line{}
			for i := range part {
				box := cell.Of(cell.Plain, "")
				if at < len(part[i].Agents) {
					box = agent(agents[part[i].Agents[at]])
				}
				line = append(line, box.Fit(column)...)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func agent(a *api.SessionAgent) cell.Line {
	if a == nil {
		return cell.Line{}
	}
	mark := view.AgentMark(a)
	return cell.Of(cell.Coloured(view.MarkColour(mark)), " "+mark+" ").Add(cell.Plain, a.ID)
}

// notes returns what the agents say that are not complete, and what they wait for.
func (p *Page) notes() []cell.Line {
	lines := []cell.Line{}
	for i := range p.shown.Agents {
		a := &p.shown.Agents[i]
		if a.Status == agency.AgentComplete {
			continue
		}
		mark := view.AgentMark(a)
		line := cell.Of(cell.Coloured(view.MarkColour(mark)), " "+mark+" ").Add(cell.Bold, term.Pad(term.Fit(term.SafeLine(a.ID), 18), 18)).Add(cell.Plain, " "+view.AgentStatus(a))
		if len(a.After) > 0 && a.Status == agency.AgentQueued {
			line = line.Add(cell.Dim, "  after "+strings.Join(a.After, ", "))
		}
		if note := view.AgentNote(a); note != "" {
			line = line.Add(cell.Dim, "  "+note)
		}
		lines = append(lines, line)
	}
	return lines
}
