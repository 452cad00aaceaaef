package tui

import (
	"strings"

	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/preview"
)

// Draw implements page.Page: it returns the list and the pane.
func (b *board) Draw(width, height int) []cell.Line {
	b.layout.width, b.layout.height = width, height
	p := b.layout.place()
	list := []cell.Line{}
	if p.listHeight > 0 {
		list = b.list.Draw(p.listWidth, p.listHeight, b.desk.Now().Truncate(clockTick)) // all ages change at once
		if text := b.empty(); len(text) > 0 {
			for i := range min(len(text), len(list)-1) {
				list[i+1] = cell.Of(cell.Plain, "  "+text[i]).Fit(p.listWidth)
			}
		}
	}
	if p.paneHeight == 0 {
		return list
	}
	pane := b.drawPane(p.paneWidth, p.paneHeight)
	if p.paneX == 0 {
		return append(list, pane...)
	}
	for i := range list {
		list[i] = append(append(list[i], cell.Of(cell.Dim, "│")...), pane[i]...)
	}
	return list
}

// empty returns what is shown in place of a list without runs.
func (b *board) empty() []string {
	switch {
	case b.list.Chosen() != nil:
		return nil
	case !b.feed.loaded && b.feed.away != "":
		return []string{"The daemon does not answer. It is asked again."}
	case !b.feed.loaded:
		return nil
	case b.list.Len() > 0:
		return []string{"No run matches the filter. " + b.desk.Key("forget") + " ends it."}
	default:
		key := b.desk.Key
		row := func(keys, does string) string { return "  " + term.Pad(keys, 7) + does }
		return []string{
			"No run yet. " + key("new-run") + " starts an agent on a task, and so does this in a git repository:", "",
			"  agency run \"fix the login test\"", "",
			"It appears here, with what its terminal shows. Five keys to begin with:", "",
			row(key("next-need"), "go to the next run that needs you"),
			row(key("allow")+"  "+key("reject"), "allow or reject what it asks"),
			row(key("attach"), "attach to its terminal, and come back by tmux's detach"),
			row(key("filter"), "filter the list"),
			row(key("help"), "all keys"),
		}
	}
}

// cardRows is how many rows a request has at most, unless the pane has the whole screen.
const cardRows = 8

// card returns the rows with the request of the run at the cursor. whole reports whether they show all of
// it. In a pane that has the whole screen, the card may have all rows.
func (b *board) card(width, height int) (card []cell.Line, whole bool) {
	rows := min(cardRows, max(height/2, 3)-1)
	if b.layout.covers() {
		rows = max(height-3, 1)
	}
	return preview.Card(b.list.Chosen(), b.replies.options(), b.replies.takes(), b.desk.Key, width, rows)
}

// whole reports whether all of the request of the run at the cursor is on the screen.
func (b *board) whole() bool {
	p := b.layout.place()
	if p.paneHeight == 0 {
		return false
	}
	_, whole := b.card(p.paneWidth, p.paneHeight)
	return whole
}

// drawPane returns the title of the pane, the request, and the text of the tab.
func (b *board) drawPane(width, height int) []cell.Line {
	r := b.list.Chosen()
	lines := []cell.Line{b.eye.title(r, width)}
	card, _ := b.card(width, height)
	for _, line := range card {
		lines = append(lines, line.Fit(width))
	}
	if len(card) > 0 {
		lines = append(lines, cell.Of(cell.Dim, strings.Repeat("┄", width)))
	}
	if left := height - len(lines); left > 0 {
		lines = append(lines, b.eye.pane.Draw(width, left)...)
	}
	return lines[:height]
}
