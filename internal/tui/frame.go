package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// The sizes at which the dashboard changes its layout, and the smallest that it draws.
const (
	besideColumns = 120 // the pane stands beside the list, not below it
	paneColumns   = 60  // the screen has room for a pane
	paneRows      = 16
	leastColumns  = 20 // the dashboard draws itself
	leastRows     = 5
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "agency"
	return v
}

// Frame returns the whole screen: as many rows as the terminal has, none wider.
func (m *Model) Frame() string {
	if m.width < leastColumns || m.height < leastRows {
		return cell.Of(cell.Plain, "agency: too small").Crop(m.width).String()
	}
	rows := []cell.Line{m.header()}
	bottom, height := m.bottom(), m.room()
	switch {
	case m.palette != nil:
		rows = append(rows, m.palette.Draw(m.width, height)...)
	case m.helping:
		rows = append(rows, m.help(height)...)
	default:
		rows = append(rows, m.now().Draw(m.width, height)...)
	}
	rows = append(rows, bottom...)
	lines := make([]string, 0, m.height)
	for _, row := range rows {
		lines = append(lines, row.Crop(m.width).String())
	}
	return strings.Join(lines, "\n")
}

// header returns the first row: how many runs need the user or work, the title of the page, what is being
// done, and whether the daemon answers.
func (m *Model) header() cell.Line {
	line := cell.Of(cell.With(cell.Bold, "r"), " agency ").Add(cell.Plain, "  ")
	counts := m.board.list.Counts()
	for _, c := range []struct {
		mark   string
		groups []view.Group
	}{
		{"◐", []view.Group{view.GroupNeedsYou, view.GroupStuck, view.GroupWaiting}},
		{"✕", []view.Group{view.GroupFailed}},
		{"✓", []view.Group{view.GroupReady}},
		{"●", []view.Group{view.GroupWorking}},
		{"○", []view.Group{view.GroupRest, view.GroupSnoozed}},
	} {
		n := 0
		for _, g := range c.groups {
			n += counts[g]
		}
		style := cell.Coloured(view.MarkColour(c.mark))
		if n == 0 {
			style = cell.Dim
		}
		line = line.Add(style, fmt.Sprintf("%s%d ", c.mark, n))
	}
	if title := m.now().Title(); title != "" {
		line = line.Add(cell.Bold, "  "+title)
	}
	for _, text := range m.doing.texts() {
		line = line.Add(cell.Coloured(view.Cyan), "  … "+text)
	}
	if away := m.board.feed.away; away != "" {
		line = line.Add(cell.With(cell.Coloured(view.Red), "b"), "  no daemon: "+away)
	}
	return line.Fit(m.width)
}

// texts returns what is being done, in the order in which it began.
func (d *doing) texts() []string {
	texts := []string{}
	for _, id := range slices.Sorted(maps.Keys(d.what)) {
		texts = append(texts, d.what[id])
	}
	return texts
}

// bottom returns the last row, or several for a long text: a question, what the user types, the notice, or
// the keys.
func (m *Model) bottom() []cell.Line {
	yellow, bold := cell.With(cell.Coloured(view.Yellow), "b"), cell.Bold
	switch {
	case m.notice.asking:
		return m.wrap(yellow, m.notice.question.text+"  y/n")
	case m.palette != nil:
		return []cell.Line{m.palette.Typing(m.width)}
	case m.helping:
		return []cell.Line{cell.Of(cell.Dim, " j k scroll  / find  any other key: back").Fit(m.width)}
	}
	if line := m.now().Typing(m.width); line != nil {
		return []cell.Line{line}
	}
	if m.notice.text != "" {
		if m.notice.stays {
			bold = cell.With(cell.Coloured(view.Red), "b")
		}
		return m.wrap(bold, m.notice.text)
	}
	line, _ := m.footer()
	return []cell.Line{line}
}

// wrap returns a text for the bottom of the screen.
func (m *Model) wrap(style cell.Style, text string) []cell.Line {
	lines := cell.Wrap(style, text, 1, m.width-1, min(mostNotice, max(m.height-4, 1)))
	for i := range lines {
		lines[i] = lines[i].Fit(m.width)
	}
	return lines
}

// item is a key in the footer, and the columns from and before to in which it stands.
type item struct {
	binding  page.Binding
	from, to int
}

// footer returns the row of keys, as many as there is room for.
func (m *Model) footer() (cell.Line, []item) {
	line, items, table := cell.Of(cell.Plain, " "), []item{}, m.bindings()
	for i := range table {
		b := &table[i]
		if b.Short == "" || len(b.Keys) == 0 {
			continue
		}
		next := line.Add(cell.Bold, page.ShowKey(b.Keys[0])).Add(cell.Dim, " "+b.Short+"  ")
		if next.Width() > m.width {
			break
		}
		items = append(items, item{*b, line.Width(), next.Width() - 2})
		line = next
	}
	return line.Fit(m.width), items
}

// help returns all keys, in two columns where there is room.
func (m *Model) help(height int) []cell.Line {
	rows := helpRows(m.bindings())
	lines, width := []cell.Line{}, m.width
	m.helpTop = max(min(m.helpTop, len(rows)-height), 0)
	columns := 1
	if len(rows) > height && width >= 2*paneColumns {
		columns, width, m.helpTop = 2, width/2, 0
	}
	for i := range height {
		line := cell.Line{}
		for c := range columns {
			part := cell.Of(cell.Plain, "")
			if at := c*height + i + m.helpTop; at < len(rows) {
				part = rows[at]
			}
			line = append(line, part.Fit(width)...)
		}
		lines = append(lines, line)
	}
	return lines
}

// helpRows returns a row for each key, below the titles of their groups.
func helpRows(table []page.Binding) []cell.Line {
	rows := []cell.Line{}
	group := ""
	for i := range table {
		b := &table[i]
		if b.Group != group {
			group = b.Group
			rows = append(rows, cell.Of(cell.Plain, ""), cell.Of(cell.Bold, " "+group))
		}
		rows = append(rows, cell.Of(cell.Plain, "  ").Add(cell.Coloured(view.Cyan), term.Pad(b.Shown, 9)+" ").Add(cell.Plain, b.Does))
	}
	return rows[1:]
}
