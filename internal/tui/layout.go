package tui

import "agency/internal/tui/list"

// layout decides where the list and the pane are on the screen.
type layout struct {
	list *list.List

	width, height int  // without the first row and the last one
	shown         bool // the board is on the screen, not another page
	hidden        bool // the user hides the pane, so nothing is asked for it
	big           bool // the pane has the whole screen
	share         int  // of the width or height that the pane has else, in percent
}

// place is where the parts are on the screen.
type place struct {
	top, listWidth, listHeight int
	paneX, paneY               int // of the title of the pane
	paneWidth, paneHeight      int // with its title; 0 when there is no pane
}

// The part of the width or height that the pane has beside the list, in percent.
const (
	usualShare = 55
	leastShare = 25
	mostShare  = 75
	shareStep  = 10
)

// resize gives the pane more or less of the screen.
func (l *layout) resize(by int) {
	l.share, l.hidden, l.big = min(max(l.share+by, leastShare), mostShare), false, false
}

// zoom gives the pane the whole screen, or takes it back.
func (l *layout) zoom() { l.big, l.hidden = !l.big, false }

// hide hides the pane, or shows it again.
func (l *layout) hide() { l.hidden, l.big = !l.hidden, false }

// place returns where the parts are.
func (l *layout) place() place {
	p := place{top: 1, listWidth: l.width, listHeight: max(l.height, 1)}
	switch {
	case !l.paneFits():
	case l.covers():
		p.paneY, p.paneWidth, p.paneHeight, p.listHeight = 1, l.width, p.listHeight, 0
	case l.width >= besideColumns:
		p.listWidth = l.width * (100 - l.share) / 100
		p.paneX, p.paneY, p.paneWidth, p.paneHeight = p.listWidth+1, 1, l.width-p.listWidth-1, p.listHeight
	default:
		p.paneHeight = p.listHeight * l.share / 100
		p.listHeight -= p.paneHeight
		p.paneY, p.paneWidth = 1+p.listHeight, l.width
	}
	return p
}

// paneFits reports whether the user wants the pane, a run can be shown in it, and the screen has room.
func (l *layout) paneFits() bool {
	return !l.hidden && l.list.Chosen() != nil && l.width >= paneColumns && l.height+2 >= paneRows
}

// covers reports whether the pane has the whole screen, so that no list is seen.
func (l *layout) covers() bool { return l.big && l.paneFits() }

// paneShown reports whether there is a pane now, so that its content is asked for.
func (l *layout) paneShown() bool { return l.paneFits() && l.shown }
