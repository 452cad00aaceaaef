package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// The sizes at which the dashboard changes its layout, and the smallest that it draws.
const (
	besideColumns = 120 // the pane is beside the list
	paneColumns   = 60  // there is a pane
	paneRows      = 16
	leastColumns  = 20
	leastRows     = 5
)

// place is where the parts are on the screen.
type place struct {
	top, listWidth, listHeight int
	paneX, paneY               int // of the title of the pane
	paneWidth, paneHeight      int // with its title; 0 when there is no pane
}

// place returns where the parts are. The list keeps at least a third.
func (m *Model) place() place {
	p := place{top: 1, listWidth: m.width, listHeight: max(m.height-2, 1)}
	switch {
	case !m.paneFits():
	case m.big:
		p.paneY, p.paneWidth, p.paneHeight, p.listHeight = 1, m.width, p.listHeight, 0
	case m.width >= besideColumns:
		p.listWidth = m.width * 45 / 100
		p.paneX, p.paneY, p.paneWidth, p.paneHeight = p.listWidth+1, 1, m.width-p.listWidth-1, p.listHeight
	default:
		p.paneHeight = p.listHeight * 55 / 100
		p.listHeight -= p.paneHeight
		p.paneY, p.paneWidth = 1+p.listHeight, m.width
	}
	return p
}

func (m *Model) paneFits() bool {
	return !m.hidden && m.list.Chosen() != nil && m.width >= paneColumns && m.height >= paneRows
}

// paneShown reports whether there is a pane now, so that its content is asked for.
func (m *Model) paneShown() bool { return m.paneFits() && m.mode != helping }

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
	lines := make([]string, 0, m.height)
	lines = append(lines, m.header().String())
	if m.mode == helping {
		lines = append(lines, m.help(m.height-2)...)
	} else {
		lines = append(lines, m.body()...)
	}
	lines = append(lines, m.bottom().Crop(m.width).String())
	return strings.Join(lines, "\n")
}

func (m *Model) header() cell.Line {
	line := cell.Of(cell.With(cell.Bold, "r"), " agency ").Add(cell.Plain, "  ")
	counts := m.list.Counts()
	for _, c := range []struct {
		mark   string
		groups []view.Group
	}{{"◐", []view.Group{view.GroupNeedsYou}}, {"✕", []view.Group{view.GroupFailed}}, {"✓", []view.Group{view.GroupReady}}, {"●", []view.Group{view.GroupWorking}}, {"○", []view.Group{view.GroupRest}}} {
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
	if n := m.list.Marked(); n > 0 {
		line = line.Add(cell.Bold, fmt.Sprintf("  %d marked", n))
	}
	if f := m.list.Filtered(); f != "" && m.mode != filtering {
		line = line.Add(cell.Bold, "  /"+f)
	}
	if m.away != "" {
		line = line.Add(cell.With(cell.Coloured(view.Red), "b"), "  no daemon: "+m.away)
	}
	return line.Fit(m.width)
}

// body returns the list and the pane.
func (m *Model) body() []string {
	p := m.place()
	lines := []string{}
	list := []cell.Line{}
	if p.listHeight > 0 {
		list = m.list.Draw(p.listWidth, p.listHeight, m.o.Now())
		if text := m.empty(); len(text) > 0 {
			for i := range min(len(text), len(list)-1) {
				list[i+1] = cell.Of(cell.Plain, "  "+text[i]).Fit(p.listWidth)
			}
		}
	}
	if p.paneHeight == 0 {
		for _, line := range list {
			lines = append(lines, line.String())
		}
		return lines
	}
	pane := m.drawPane(p.paneWidth, p.paneHeight)
	if p.paneX == 0 {
		for _, line := range append(list, pane...) {
			lines = append(lines, line.String())
		}
		return lines
	}
	for i := range list {
		lines = append(lines, list[i].String()+cell.Of(cell.Dim, "│").String()+pane[i].String())
	}
	return lines
}

// empty returns what is shown in place of a list without runs.
func (m *Model) empty() []string {
	switch {
	case m.list.Chosen() != nil:
		return nil
	case !m.loaded && m.away != "":
		return []string{"The daemon does not answer. It is asked again."}
	case !m.loaded:
		return nil
	case m.list.Len() > 0:
		return []string{"No run matches the filter. esc ends it."}
	default:
		return []string{
			"No run yet. Start an agent on a task, in a git repository:", "",
			"  agency run \"fix the login test\"", "",
			"It appears here, with what its terminal shows. Five keys to begin with:", "",
			"  w      go to the next run that needs you",
			"  a  r   allow or reject what it asks",
			"  enter  attach to its terminal, and come back by tmux's detach",
			"  /      filter the list",
			"  ?      all keys",
		}
	}
}

// drawPane returns the title of the pane, the request, and the tab.
func (m *Model) drawPane(width, height int) []cell.Line {
	r := m.list.Chosen()
	lines := []cell.Line{m.paneTitle(r, width)}
	card := preview.Card(r, m.options(), m.takes(), width)
	if most := max(height/2, 3); len(card) > most {
		keys := card[len(card)-1]
		card = append(card[:most-1:most-1], keys)
	}
	for _, line := range card {
		lines = append(lines, line.Fit(width))
	}
	if len(card) > 0 {
		lines = append(lines, cell.Of(cell.Dim, strings.Repeat("┄", width)))
	}
	if left := height - len(lines); left > 0 {
		lines = append(lines, m.pane.Draw(width, left)...)
	}
	return lines[:height]
}

// paneTitle returns the row that parts the pane from the list: the run, its status, and the tabs.
func (m *Model) paneTitle(r *api.Run, width int) cell.Line {
	line := cell.Of(cell.Dim, "─ ").Add(cell.Bold, term.Fit(r.Ref(), max(width/3, 10))).
		Add(cell.Coloured(view.MarkColour(r.Status.Mark())), " "+r.Status.Mark()+" "+r.Status.String()).Add(cell.Dim, " ")
	right := cell.Line{}
	if at := m.pane.Position(); at != "" {
		right = right.Add(cell.Dim, " "+at+" ")
	}
	if tabs := tabNames(m.pane.Tab); line.Width()+right.Width()+tabs.Width() <= width {
		right = append(right, tabs...)
	}
	fill := width - line.Width() - right.Width()
	if fill < 0 {
		return line.Fit(width)
	}
	line = line.Add(cell.Dim, strings.Repeat("─", fill))
	return append(line, right...).Fit(width)
}

// tabNames returns the names of the tabs, the present one in brackets.
func tabNames(present preview.Tab) cell.Line {
	line := cell.Line{}
	for _, tab := range preview.Tabs() {
		if tab == present {
			line = line.Add(cell.Bold, "["+tab.String()+"]")
		} else {
			line = line.Add(cell.Dim, " "+tab.String()+" ")
		}
	}
	return line
}

// bottom returns the last row: what the user types, a question, what happened, or the keys.
func (m *Model) bottom() cell.Line {
	switch {
	case m.mode == filtering:
		return m.field.Draw("/", m.width)
	case m.mode == replying:
		return m.field.Draw("reply to "+m.about.Ref()+"> ", m.width)
	case m.mode == sending:
		return m.field.Draw("send to "+named(m.targets)+"> ", m.width)
	case m.mode == confirming:
		return cell.Of(cell.With(cell.Coloured(view.Yellow), "b"), " "+m.question.text).Add(cell.Plain, "  y/n").Fit(m.width)
	case m.mode == helping:
		return cell.Of(cell.Dim, " j k scroll  any other key: back").Fit(m.width)
	case m.toast != "":
		return cell.Of(cell.Bold, " "+m.toast).Fit(m.width)
	}
	line := cell.Of(cell.Plain, " ")
	for i := range m.bindings {
		b := &m.bindings[i]
		if b.short == "" {
			continue
		}
		next := line.Add(cell.Bold, b.keys[0]).Add(cell.Dim, " "+b.short+"  ")
		if next.Width() > m.width {
			break
		}
		line = next
	}
	return line.Fit(m.width)
}

// help returns all keys, in two columns where there is room.
func (m *Model) help(height int) []string {
	rows := []cell.Line{}
	group := ""
	for i := range m.bindings {
		b := &m.bindings[i]
		if b.group != group {
			group = b.group
			rows = append(rows, cell.Of(cell.Plain, ""), cell.Of(cell.Bold, " "+group))
		}
		rows = append(rows, cell.Of(cell.Plain, "  ").Add(cell.Coloured(view.Cyan), term.Pad(b.shown, 9)).Add(cell.Plain, b.does))
	}
	rows = rows[1:]
	lines, width := []string{}, m.width
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
		lines = append(lines, line.String())
	}
	return lines
}

func (m *Model) wheel(at tea.Mouse) {
	by := 3
	if at.Button == tea.MouseWheelUp {
		by = -3
	}
	if p := m.place(); p.paneHeight > 0 && at.X >= p.paneX && at.Y >= p.paneY {
		m.pane.ScrollBy(by)
		return
	}
	m.list.Move(by / 3)
}

func (m *Model) click(at tea.Mouse) {
	if p := m.place(); m.mode == browsing && at.X < p.listWidth && at.Y >= p.top && at.Y < p.top+p.listHeight {
		m.list.Click(at.Y - p.top)
	}
}
