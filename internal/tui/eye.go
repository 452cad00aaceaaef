package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/about"
	"agency/internal/tui/cell"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// eye reads what the pane shows of the run at the cursor, and decides when to read it again. Each run, tab
// or length of history begins a turn. The answers of earlier turns are dropped.
type eye struct {
	desk *page.Desk
	list *list.List
	pane preview.Pane

	run    agency.RunID
	tab    preview.Tab
	turn   int
	ctx    context.Context //nolint:containedctx // of this turn
	cancel context.CancelFunc

	stale    bool   // the text of the tab will be read again soon
	history  int    // how many rows that scrolled off the screen the eye asks for
	recalled bool   // those rows have come
	finding  string // the text to find when those rows have come
}

// How often the pane is read.
const (
	lookSoon  = 60 * time.Millisecond // after a move of the cursor, which may continue
	lookEvery = 40 * time.Millisecond
	lookSlow  = 200 * time.Millisecond // over ssh, where each frame is sent
	lookAgain = 2 * time.Second        // after an error
	textEvery = 2 * time.Second        // a text that changes
	lookWait  = 60 * time.Second       // how long the daemon waits for a change
)

type (
	lookMsg struct{ turn int }
	textMsg struct {
		turn  int
		lines []cell.Line
		err   error
	}
	screenMsg struct {
		turn int
		resp api.ShowScreenResponse
		err  error
	}
)

// mostHistory is how many rows are asked for that scrolled off the screen, when the user wants them.
const mostHistory = 2000

// follow begins a turn when the run at the cursor or the tab is another than before. shown is false when
// the pane is hidden: then the eye reads nothing.
func (e *eye) follow(shown bool) tea.Cmd {
	want := agency.RunID("")
	if r := e.list.Chosen(); r != nil && shown {
		want = r.ID
	}
	if want == e.run && e.pane.Tab == e.tab {
		return nil
	}
	if e.cancel != nil {
		e.cancel()
	}
	e.run, e.tab, e.ctx, e.cancel = want, e.pane.Tab, nil, nil
	e.turn++
	e.stale, e.history, e.recalled, e.finding = false, 0, false, ""
	e.pane.Clear(e.pane.Tab)
	if want == "" {
		return nil
	}
	e.ctx, e.cancel = context.WithCancel(e.desk.Ctx)
	return e.desk.Later(lookSoon, lookMsg{e.turn})
}

// show changes the tab of the pane. The next follow reads it, also if it is the present one.
func (e *eye) show(tab preview.Tab) {
	e.pane.Clear(tab)
	e.run = ""
}

// look reads the text of the tab or asks for the screen. If the pane has a screen, the answer comes when the
// screen changes.
func (e *eye) look(turn int) tea.Cmd {
	if turn != e.turn || e.run == "" {
		return nil
	}
	if e.tab != preview.Screen {
		e.stale = false
		return e.read(turn)
	}
	ctx, show := e.ctx, e.desk.Daemon.ShowScreen
	req := api.ShowScreenRequest{Run: string(e.run), Seen: e.pane.Screen.Revision, Wait: lookWait.Milliseconds(), History: e.history}
	if e.history > 0 && !e.recalled {
		req.Seen = "" // the screen that the pane has lacks those rows
	}
	return func() tea.Msg {
		resp, err := show(ctx, req)
		return screenMsg{turn, resp, err}
	}
}

// saw shows a screen that has come, and looks again soon.
func (e *eye) saw(msg screenMsg) tea.Cmd {
	if msg.turn != e.turn || e.run == "" {
		return nil
	}
	next, found := lookEvery, tea.Cmd(nil)
	switch {
	case msg.err != nil:
		next = lookAgain
	default:
		e.pane.Show(e.run, &msg.resp.Screen)
		e.recalled = e.history > 0
		if e.finding != "" && !e.pane.Find(e.finding) {
			found = e.desk.Say(e.finding + " is not in what is shown here")
		}
		e.finding = ""
		if agency.Environ(e.desk.Env).Lookup("SSH_TTY") != "" {
			next = lookSlow
		}
	}
	return tea.Batch(found, e.desk.Later(next, lookMsg{msg.turn}))
}

// changed reads the text of the tab again soon if its run is one of those that changed. nil stands for all
// runs.
func (e *eye) changed(runs []agency.RunID) tea.Cmd {
	if e.run == "" || e.tab == preview.Screen || e.stale || runs != nil && !slices.Contains(runs, e.run) {
		return nil
	}
	e.stale = true
	return e.desk.Later(textEvery, lookMsg{e.turn})
}

// scroll scrolls by rows; up is negative. At the top of a screen it asks for the rows that scrolled off the
// screen.
func (e *eye) scroll(rows int) tea.Cmd {
	e.pane.ScrollBy(rows)
	switch {
	case e.tab != preview.Screen || e.run == "":
		return nil
	case rows < 0 && e.pane.AtTop():
		return e.recall()
	case e.pane.Scroll == 0:
		e.history, e.recalled = 0, false
	}
	return nil
}

// recall asks for the rows that scrolled off the screen, unless the eye has done that before.
func (e *eye) recall() tea.Cmd {
	if e.history > 0 || e.run == "" || e.pane.Run != e.run {
		return nil
	}
	e.history = mostHistory
	e.turn++ // drops the answer of the look that waits for a change
	e.cancel()
	e.ctx, e.cancel = context.WithCancel(e.desk.Ctx)
	return e.look(e.turn)
}

// find scrolls to the next row with a text. It also searches the rows that scrolled off the screen.
func (e *eye) find(text string) tea.Cmd {
	if e.tab == preview.Screen && e.history == 0 {
		if more := e.recall(); more != nil {
			e.finding = text
			return more
		}
	}
	if e.pane.Find(text) {
		return nil
	}
	return e.desk.Say(text + " is not in what is shown here")
}

// read reads the text of the tab.
func (e *eye) read(turn int) tea.Cmd {
	names, key := e.list.Names(), e.desk.Key("diff")
	ctx, d, run, tab := e.ctx, &e.desk.Daemon, string(e.run), e.tab
	return func() tea.Msg {
		var lines []cell.Line
		var err error
		switch tab {
		case preview.Files:
			if lines, err = about.Files(ctx, d, run); len(lines) > 0 {
				lines = append([]cell.Line{cell.Of(cell.Dim, key+" opens them")}, lines...)
			}
		case preview.Why:
			lines, err = about.Why(ctx, d, run)
		case preview.Messages:
			lines, err = about.Messages(ctx, d, run, names)
		case preview.Timeline:
			lines, err = about.Events(ctx, d, run)
		default:
			lines, err = about.Log(ctx, d, run)
		}
		return textMsg{turn, lines, err}
	}
}

// hasRead shows the text of a tab that has come.
func (e *eye) hasRead(msg textMsg) tea.Cmd {
	if msg.turn != e.turn || e.run == "" {
		return nil
	}
	if msg.err != nil {
		return e.desk.Fail(msg.err)
	}
	if len(msg.lines) == 0 {
		msg.lines = []cell.Line{cell.Of(cell.Dim, " (nothing)")}
	}
	e.pane.ShowText(e.run, e.tab, msg.lines)
	return nil
}

// title returns the row above the pane: the run, its status, and the tabs.
func (e *eye) title(r *api.Run, width int) cell.Line {
	line, tabs := e.titleParts(r, width)
	fill := width - line.Width() - tabs.Width()
	if fill < 0 {
		return line.Fit(width)
	}
	line = line.Add(cell.Dim, strings.Repeat("─", fill))
	return append(line, tabs...).Fit(width)
}

// titleParts returns the run and its status for the left of the title, and the tabs for the right. In a
// narrow pane it shortens the status to its mark, and in a narrower one the tabs to the present one.
func (e *eye) titleParts(r *api.Run, width int) (left, tabs cell.Line) {
	at := e.pane.Position()
	if at != "" {
		at = " " + at + " "
	}
	tabs = append(cell.Of(cell.Dim, at), tabNames(e.pane.Tab)...)
	for _, status := range []string{" " + r.Status.String(), ""} {
		left = cell.Of(cell.Dim, "─ ").Add(cell.Bold, term.Fit(r.Ref(), max(width/3, 10))).
			Add(cell.Coloured(view.MarkColour(r.Status.Mark())), " "+r.Status.Mark()+status).Add(cell.Dim, " ")
		if left.Width()+tabs.Width() <= width {
			return left, tabs
		}
	}
	return left, cell.Of(cell.Dim, at).Add(cell.Bold, "["+e.pane.Tab.String()+"]")
}

// tabAt returns the tab whose name is at a column of the title.
func (e *eye) tabAt(r *api.Run, width, x int) (preview.Tab, bool) {
	_, tabs := e.titleParts(r, width)
	if len(tabs) <= len(preview.Tabs()) { // only the present one is named
		return e.pane.Tab, false
	}
	at := width - tabs.Width()
	for i := range tabs {
		next := at + tabs[i:i+1].Width()
		if i > 0 && x >= at && x < next {
			return preview.Tabs()[i-1], true
		}
		at = next
	}
	return e.pane.Tab, false
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
