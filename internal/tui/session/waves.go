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

// The widths of the column of a wave, and its rows. Waves that do not fit stand below the others. Agents that
// do not fit are only counted, because the list below has them all.
const (
	leastColumn = 16
	mostColumn  = 30
	mostRows    = 8
)

// waves returns the rows with the waves, each a column of agents. As many columns as fit stand beside each
// other. Complete waves at the beginning are left out if they fill a row of columns, but not in the last row.
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

// columns returns the agents of each wave, and the width of the widest column. A wave has the order of the
// plan or, if it is too long for its column, that of the list.
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

// box returns a row of a wave: an agent, or how many more there are.
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
