package session

import (
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// The widths of the column of a wave, and the rows of one. Waves without room are below the others,
// and agents without room are only counted: all are in the list below.
const (
	leastColumn = 16
	mostColumn  = 30
	mostRows    = 8
)

// waves returns the agents, each wave a column, as many beside each other as there is room for. Above
// the last rows of waves, those at the beginning are left out that are complete.
func (p *Page) waves(width int) []cell.Line {
	columns, widest := p.columns()
	lines := []cell.Line{}
	room := max(width/min(max(widest, leastColumn), mostColumn), 1)
	from := 0
	for from+room < len(columns) && complete(columns[from:from+room]) {
		from += room
	}
	if from > 0 {
		lines = append(lines, cell.Of(cell.Dim, fmt.Sprintf(" waves %d to %d are complete", p.shown.Waves[0].Wave, p.shown.Waves[from-1].Wave)))
	}
	for ; from < len(columns); from += room {
		part := columns[from:min(from+room, len(columns))]
		column := min(width/len(part), mostColumn)
		head, deepest := cell.Line{}, 0
		for i := range part {
			title := cell.Of(cell.Dim, fmt.Sprintf(" wave %d ", p.shown.Waves[from+i].Wave))
			arrow := "▶ "
			if from+i == len(columns)-1 {
				arrow = "  "
			}
			head = append(append(head, title...), cell.Of(cell.Dim, strings.Repeat("─", max(column-title.Width()-2, 0))+arrow)...)
			deepest = max(deepest, min(len(part[i]), mostRows))
		}
		lines = append(lines, head)
		for at := range deepest {
			line := cell.Line{}
			for i := range part {
				line = append(line, box(part[i], at, column)...)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// complete reports whether all agents of some waves are complete.
func complete(waves [][]*api.SessionAgent) bool {
	for _, wave := range waves {
		if slices.ContainsFunc(wave, func(a *api.SessionAgent) bool { return a.Status != agency.AgentComplete }) {
			return false
		}
	}
	return true
}

// columns returns the agents of each wave, and the width of the widest. A wave keeps the order of the
// plan; one that is too long for the page has the order of the list.
func (p *Page) columns() (columns [][]*api.SessionAgent, widest int) {
	known := map[string]*api.SessionAgent{}
	for _, a := range p.agents {
		known[a.ID] = a
		widest = max(widest, term.Width(label(a))+4)
	}
	for i := range p.shown.Waves {
		wave := []*api.SessionAgent{}
		for _, id := range p.shown.Waves[i].Agents {
			if a := known[id]; a != nil {
				wave = append(wave, a)
			}
		}
		if len(wave) > mostRows {
			wave = ordered(wave)
		}
		columns = append(columns, wave)
	}
	return columns, widest
}

// box returns what is in a row of a wave.
func box(wave []*api.SessionAgent, at, column int) cell.Line {
	switch {
	case at >= len(wave):
		return cell.Line{}.Fit(column)
	case at == mostRows-1 && len(wave) > mostRows:
		return cell.Of(cell.Dim, fmt.Sprintf("   %d more", len(wave)-at)).Fit(column)
	}
	mark := view.AgentMark(wave[at])
	return cell.Of(cell.Coloured(view.MarkColour(mark)), " "+mark+" ").Add(cell.Plain, page.Shorten(label(wave[at]), column-4)).Fit(column)
}
