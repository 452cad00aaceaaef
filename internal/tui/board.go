package tui

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/tui/list"
	"agency/internal/tui/page"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// deadKeys is how long a request must be on the screen before a key answers it, so that a key for the
// screen before does not.
const deadKeys = 500 * time.Millisecond

// board is the page with the list of runs, and the pane for the run at the cursor.
type board struct {
	input

	desk    *page.Desk
	command func(args ...string) *exec.Cmd
	views   map[string]string // filters by name

	list    *list.List
	layout  layout
	feed    feed
	do      *actions
	eye     *eye
	replies *replies
}

// newBoard returns a board without runs.
func newBoard(desk *page.Desk, command func(args ...string) *exec.Cmd, views map[string]string) *board {
	rows := list.New()
	look, do := &eye{desk: desk, list: rows}, &actions{desk: desk, list: rows}
	answers := &replies{desk: desk, list: rows, eye: look}
	b := &board{
		desk: desk, command: command, views: views, list: rows, do: do, eye: look, replies: answers,
		layout: layout{list: rows, width: 80, height: 22, shown: true, share: usualShare},
		feed:   feed{desk: desk, list: rows},
		input:  input{desk: desk, list: rows, do: do, eye: look, replies: answers, unsent: map[typing]string{}},
	}
	b.replies.whole = b.whole
	return b
}

// The messages that commands end as.
type (
	changedMsg struct{ run agency.RunID } // a run changed, or any run if it is empty
	otherMsg   struct{}                   // something else changed that a page shows
	againMsg   struct{}                   // another daemon answers
	awayMsg    string                     // why the daemon does not answer; empty when it answers again
	liveMsg    struct{}                   // keys answer the shown request from now on
)

// Title implements page.Page: the place of the cursor among the runs that need the user, the marks, the
// filter and the grouping.
func (b *board) Title() string {
	parts := []string{}
	if all, hidden, place := b.list.Needs(); place > 0 || hidden > 0 {
		text := fmt.Sprintf("%d of %d", place, all)
		if hidden > 0 {
			text += fmt.Sprintf(", %d hidden", hidden)
		}
		parts = append(parts, text)
	}
	if marked, hidden := b.list.Marked(); marked > 0 {
		text := fmt.Sprintf("%d marked", marked)
		if hidden > 0 {
			text += fmt.Sprintf(", %d of them hidden", hidden)
		}
		parts = append(parts, text)
	}
	if f := b.list.Filtered(); f != "" && b.typing != filtering {
		parts = append(parts, "/"+f)
	}
	if by := b.list.Grouped(); by != list.ByNeed {
		parts = append(parts, "by "+by.String())
	}
	return strings.Join(parts, "  ")
}

// Open implements page.Page.
func (b *board) Open() tea.Cmd { return b.feed.fetch() }

// Changed implements page.Page: the feed reads the list again by itself.
func (b *board) Changed() tea.Cmd { return nil }

// Update implements page.Page.
func (b *board) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case changedMsg:
		return b.feed.changed(msg.run)
	case againMsg:
		b.feed.away = ""
		return tea.Batch(b.desk.Say("another daemon answers now; nothing is lost"), b.feed.changed(""))
	case awayMsg:
		was := b.feed.away
		b.feed.away = string(msg)
		if was != "" && msg == "" {
			return b.feed.changed("")
		}
	case runsMsg:
		next := b.feed.listed(msg)
		if msg.err != nil {
			return next
		}
		return tea.Batch(b.eye.changed(msg.ids), next)
	case fetchMsg:
		return b.feed.fetch()
	case screenMsg:
		return b.eye.saw(msg)
	case textMsg:
		return b.eye.hasRead(msg)
	case lookMsg:
		return b.eye.look(msg.turn)
	case answeredMsg:
		return b.answered(msg)
	case steppedMsg:
		next := b.do.stepped(msg)
		if t := msg.task; t.complete() {
			b.taken(sending, t.message)
		}
		return next
	}
	return nil
}

// set tells the board its size, and whether it is shown.
func (b *board) set(width, height int, shown bool) {
	b.layout.width, b.layout.height, b.layout.shown = width, height, shown
}

// settle follows a change of the run at the cursor, or of its request.
func (b *board) settle() tea.Cmd {
	return tea.Batch(b.eye.follow(b.layout.paneShown()), b.replies.notice(b.layout.shown))
}

// show shows a tab in the pane. It reads the tab again if it is the present one.
func (b *board) show(tab preview.Tab) tea.Cmd {
	b.layout.hidden = false
	b.eye.show(tab)
	return nil
}

// filter begins a filter of the list, or a search if the pane hides the list.
func (b *board) filter() {
	if b.layout.covers() {
		b.search()
		return
	}
	b.startFilter()
}

// search begins the search for a text in the pane, which gets the whole screen.
func (b *board) search() {
	if b.list.Chosen() == nil {
		return // there is nothing to find a text in
	}
	b.layout.big, b.layout.hidden = true, false
	b.startFind()
}

// copy gives what the pane shows to the clipboard of the terminal.
func (b *board) copy() tea.Cmd {
	text := b.eye.pane.Visible()
	if !b.layout.paneShown() || text == "" {
		return b.desk.Say("the pane shows nothing to copy")
	}
	return tea.Batch(tea.SetClipboard(text), b.desk.Say("what the pane shows is handed to the terminal to copy"))
}

// forget ends one thing: the search in the pane, an action on several runs, the filter, or the marks.
func (b *board) forget() tea.Cmd {
	switch {
	case b.eye.pane.Forget():
	case b.do.end():
		return b.desk.Say("it ends after the present run")
	case b.list.Filtered() != "":
		b.list.Filter("")
	default:
		b.list.Unmark()
	}
	return nil
}

// next goes to the next run that needs the user, or to the one before.
func (b *board) next(step int) tea.Cmd {
	_, hidden, _ := b.list.Needs()
	switch {
	case b.list.Next(step):
		return nil
	case hidden > 0:
		return b.desk.Say(fmt.Sprintf("the filter hides what needs you (%d): %s ends it", hidden, b.desk.Key("forget")))
	default:
		return b.desk.Say("no run needs you")
	}
}

// regroup groups the list by the next criterion.
func (b *board) regroup() tea.Cmd {
	b.list.Group(b.list.Grouped().Next())
	said := b.desk.Say("grouped by " + b.list.Grouped().String())
	if b.list.Grouped() == list.BySession {
		return tea.Batch(said, b.feed.changed("")) // the runs were read without their sessions
	}
	return said
}

// answered tells the user how an answer ended.
func (b *board) answered(msg answeredMsg) tea.Cmd {
	ref := msg.run.Ref()
	if msg.err == nil {
		b.taken(replying, msg.typed)
	}
	switch {
	case msg.err != nil && agency.IsCode(msg.err, agency.CodeInvalidState) && msg.now != view.PromptID(&msg.run):
		return tea.Batch(b.desk.Say(ref+": already answered"), b.feed.changed(""))
	case msg.err != nil:
		return b.desk.Fail(msg.err)
	case !msg.resp.Confirmed:
		return b.desk.Say(ref + ": " + msg.reply + ", but agency did not see the agent accept it")
	default:
		return b.desk.Say(ref + ": " + msg.reply)
	}
}

// wheel scrolls the pane, or moves the cursor.
func (b *board) wheel(at tea.Mouse, up bool) tea.Cmd {
	p, by := b.layout.place(), 3
	if up {
		by = -3
	}
	if p.paneHeight > 0 && at.X >= p.paneX && at.Y >= p.paneY {
		return b.eye.scroll(by)
	}
	b.list.Move(by / 3)
	return nil
}

// click goes to the run or the tab at a place of the screen.
func (b *board) click(x, y int) tea.Cmd {
	p := b.layout.place()
	switch {
	case b.typing != nothing:
	case p.paneHeight > 0 && y == p.paneY && x >= p.paneX:
		if tab, ok := b.eye.tabAt(b.list.Chosen(), p.paneWidth, x-p.paneX); ok {
			return b.show(tab)
		}
	case x < p.listWidth && y >= p.top && y < p.top+p.listHeight:
		b.list.Click(y - p.top)
	}
	return nil
}
