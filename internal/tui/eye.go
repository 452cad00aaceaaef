package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/cell"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// eye is the look at the run under the cursor: it decides what of the run is read, and when again,
// and holds what the pane shows. Only the newest turn counts.
type eye struct {
	desk *page.Desk
	list *list.List
	pane preview.Pane

	run    agency.RunID
	tab    preview.Tab
	turn   int
	ctx    context.Context //nolint:containedctx // of this turn
	cancel context.CancelFunc
}

// Times of a look at a screen.
const (
	lookSoon  = 60 * time.Millisecond // after a move of the cursor, which may continue
	lookEvery = 40 * time.Millisecond
	lookSlow  = 200 * time.Millisecond // over ssh, where each frame is sent
	lookAgain = 2 * time.Second        // after an error
	lookWait  = 60 * time.Second       // how long the daemon waits for a change
)

type (
	lookMsg   struct{ turn int }
	screenMsg struct {
		turn int
		resp api.ShowScreenResponse
		err  error
	}
)

// follow looks at the run under the cursor when that is another than before, and at none when the
// pane is hidden.
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
	e.run, e.tab, e.turn, e.ctx, e.cancel = want, e.pane.Tab, e.turn+1, nil, nil
	e.pane.Clear(e.pane.Tab)
	if want == "" {
		return nil
	}
	e.ctx, e.cancel = context.WithCancel(e.desk.Ctx)
	return e.desk.Later(lookSoon, lookMsg{e.turn})
}

// show changes the tab of the pane, and reads it again when it is the present one.
func (e *eye) show(tab preview.Tab) {
	e.pane.Clear(tab)
	e.run = ""
}

// look asks for the screen: at once when there is none yet, else for the next one.
func (e *eye) look(turn int) tea.Cmd {
	if turn != e.turn || e.run == "" {
		return nil
	}
	if e.tab != preview.Screen {
		return e.read(turn)
	}
	ctx, show := e.ctx, e.desk.Daemon.ShowScreen
	req := api.ShowScreenRequest{Run: string(e.run), Seen: e.pane.Screen.Revision, Wait: lookWait.Milliseconds()}
	return func() tea.Msg {
		resp, err := show(ctx, req)
		return screenMsg{turn, resp, err}
	}
}

func (e *eye) saw(msg screenMsg) tea.Cmd {
	if msg.turn != e.turn || e.run == "" {
		return nil
	}
	next := lookEvery
	switch {
	case msg.err != nil:
		next = lookAgain
	default:
		e.pane.Show(e.run, &msg.resp.Screen)
		if agency.Environ(e.desk.Env).Lookup("SSH_TTY") != "" {
			next = lookSlow
		}
	}
	return e.desk.Later(next, lookMsg{msg.turn})
}

// read returns the text of the present tab of a run.
func (e *eye) read(turn int) tea.Cmd {
	names := e.list.Names()
	ctx, d, run, tab := e.ctx, &e.desk.Daemon, string(e.run), e.tab
	return func() tea.Msg {
		var lines []cell.Line
		var err error
		switch tab {
		case preview.Why:
			lines, err = whyLines(ctx, d, run)
		case preview.Messages:
			lines, err = messageLines(ctx, d, run, names)
		case preview.Timeline:
			lines, err = eventLines(ctx, d, run)
		default:
			var resp api.ShowOutputResponse
			resp, err = d.ShowOutput(ctx, api.ShowOutputRequest{Run: run, Lines: logLines})
			for _, line := range resp.Lines {
				lines = append(lines, cell.Of(cell.Plain, line))
			}
		}
		return textMsg{turn, lines, err}
	}
}

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

// title returns the row that parts the pane from the list: the run, its status, and the tabs.
func (e *eye) title(r *api.Run, width int) cell.Line {
	line := cell.Of(cell.Dim, "─ ").Add(cell.Bold, term.Fit(r.Ref(), max(width/3, 10))).
		Add(cell.Coloured(view.MarkColour(r.Status.Mark())), " "+r.Status.Mark()+" "+r.Status.String()).Add(cell.Dim, " ")
	right := cell.Line{}
	if at := e.pane.Position(); at != "" {
		right = right.Add(cell.Dim, " "+at+" ")
	}
	tabs := tabNames(e.pane.Tab)
	if line.Width()+right.Width()+tabs.Width() > width {
		tabs = cell.Of(cell.Bold, "["+e.pane.Tab.String()+"]")
	}
	if line.Width()+right.Width()+tabs.Width() <= width {
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
