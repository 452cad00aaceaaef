package tui

import (
	"context"
	"maps"
	"slices"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/diff"
	"agency/internal/tui/form"
	"agency/internal/tui/inbox"
	"agency/internal/tui/page"
	"agency/internal/tui/palette"
	"agency/internal/tui/preview"
	"agency/internal/tui/queue"
	"agency/internal/tui/session"
	"agency/internal/view"
)

// The groups of the help.
const (
	groupMove   = "Move"
	groupAnswer = "Answer"
	groupAct    = "Act on the run, or on those that are marked"
	groupLook   = "Look"
	groupPages  = "Go"
	groupAll    = "Everywhere"
)

// bindings returns the table of the keys that do something now: those of the shown page, and those that
// work everywhere.
func (m *Model) bindings() []page.Binding {
	table := append(m.now().Bindings(), m.everywhere(m.page == nil)...)
	return m.keymap.Apply(table)
}

// everywhere returns the keys that work on every screen. list is true for the list of runs, and false for a
// page.
func (m *Model) everywhere(list bool) []page.Binding {
	table := []page.Binding{}
	if !list {
		table = append(table, page.Binding{Name: "back", Keys: []string{"q", "esc"}, Shown: "q, esc", Does: "back to the list", Short: "back", Group: groupAll, Act: page.Run(m.leave)})
	}
	if list {
		table = append(table, m.pages()...)
	}
	table = append(table,
		page.Binding{Name: "help", Keys: []string{"?"}, Shown: "?", Does: "these keys", Short: "help", Group: groupAll, Act: page.Do(func() { m.helping = true })},
		page.Binding{Name: "commands", Keys: []string{":"}, Shown: ":", Does: "all commands, by letters of their words", Short: "commands", Group: groupAll, Act: page.Do(func() { m.palette = palette.New(m.bindings()) })},
	)
	if list {
		table = append(table, page.Binding{Name: "quit", Keys: []string{"q"}, Shown: "q", Does: "quit; the runs continue", Short: "quit", Group: groupAll, Act: func(string) tea.Cmd { return tea.Quit }})
	}
	return table
}

// screens returns the table of keys of each screen, without the keys that the user chose.
func (m *Model) screens() [][]page.Binding {
	tables := [][]page.Binding{append(m.board.Bindings(), m.everywhere(true)...)}
	for _, p := range []page.Page{diff.New(m.desk, &api.Run{}), form.New(m.desk), inbox.New(m.desk), session.New(m.desk), queue.New(m.desk)} {
		tables = append(tables, append(p.Bindings(), m.everywhere(false)...))
	}
	return tables
}

// key returns the first key of a binding of the list, by its name. A binding without a key is in the palette.
func (m *Model) key(name string) string {
	table := m.keymap.Apply(append(m.board.Bindings(), m.everywhere(true)...))
	for i := range table {
		if table[i].Name == name && len(table[i].Keys) > 0 {
			return page.ShowKey(table[i].Keys[0])
		}
	}
	return ":"
}

// CheckKeys returns the keys that the user chose, by the names of the bindings, or an error about a key that
// does not work. path is the configuration file with the keys and the views.
func CheckKeys(path string, chosen map[string][]string, views map[string]string) (page.Keymap, error) {
	keymap, err := page.NewKeymap(chosen)
	if err == nil && len(keymap) > 0 {
		err = keymap.Check(New(context.Background(), Options{Views: views}).screens()...)
	}
	if err != nil {
		e := agency.AsError(err)
		return nil, agency.Errorf(e.Code, "%s: [tui.keys]: %w", path, err).WithHint("%s", e.Hint)
	}
	return keymap, nil
}

// pages returns the keys that open a page in place of the list.
func (m *Model) pages() []page.Binding {
	open := func(p func() page.Page) func(string) tea.Cmd {
		return page.Run(func() tea.Cmd { return m.open(p()) })
	}
	return []page.Binding{
		{Name: "new-run", Keys: []string{"n"}, Shown: "n", Does: "start a new run", Group: groupPages, Act: open(func() page.Page { return m.form })},
		{Name: "inbox", Keys: []string{"A"}, Shown: "A", Does: "the inbox: alerts and messages", Group: groupPages, Act: open(func() page.Page { return inbox.New(m.desk) })},
		{Name: "sessions", Keys: []string{"S"}, Shown: "S", Does: "the sessions, with their waves", Group: groupPages, Act: open(func() page.Page { return session.New(m.desk) })},
		{Name: "queues", Keys: []string{"Q"}, Shown: "Q", Does: "the landing queues", Group: groupPages, Act: open(func() page.Page { return queue.New(m.desk) })},
	}
}

// Bindings implements page.Page.
func (b *board) Bindings() []page.Binding {
	table := b.moves()
	for _, part := range [][]page.Binding{b.answers(), b.acts(), b.looks(), b.filters()} {
		table = append(table, part...)
	}
	return table
}

// moves returns the keys that move the cursor.
func (b *board) moves() []page.Binding {
	next := func(step int) func(string) tea.Cmd {
		return page.Run(func() tea.Cmd { return b.next(step) })
	}
	return []page.Binding{
		{Name: "down", Keys: []string{"j", "down"}, Shown: "j, down", Does: "the next run", Group: groupMove, Act: page.Do(func() { b.list.Move(1) })},
		{Name: "up", Keys: []string{"k", "up"}, Shown: "k, up", Does: "the run before", Group: groupMove, Act: page.Do(func() { b.list.Move(-1) })},
		{Name: "half-down", Keys: []string{"ctrl+d", "pgdown"}, Shown: "ctrl-d", Does: "half a page down", Group: groupMove, Act: page.Do(func() { b.list.Page(1) })},
		{Name: "half-up", Keys: []string{"ctrl+u", "pgup"}, Shown: "ctrl-u", Does: "half a page up", Group: groupMove, Act: page.Do(func() { b.list.Page(-1) })},
		{Name: "first", Keys: []string{"g", "home"}, Shown: "g", Does: "the first run", Group: groupMove, Act: page.Do(func() { b.list.End(false) })},
		{Name: "last", Keys: []string{"G", "end"}, Shown: "G", Does: "the last run", Group: groupMove, Act: page.Do(func() { b.list.End(true) })},
		{Name: "next-need", Keys: []string{"w"}, Shown: "w", Does: "the next run that needs you", Short: "next", Group: groupMove, Act: next(1)},
		{Name: "previous-need", Keys: []string{"W"}, Shown: "W", Does: "the run before that needs you", Group: groupMove, Act: next(-1)},
	}
}

// hint returns the text of a key in the footer, or none if the key does nothing for the run at the cursor.
func hint(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

// answers returns the keys that answer the run at the cursor.
func (b *board) answers() []page.Binding {
	r := b.list.Chosen()
	asks := r != nil && view.PromptID(r) != "" && (r.Request == nil || r.Request.Kind != agency.AsksDialog)
	permission := asks && r.Request != nil && r.Request.Kind == agency.AsksPermission
	return []page.Binding{
		{Name: "allow", Keys: []string{"a"}, Shown: "a", Does: "allow this once", Short: hint(permission, "allow"), Group: groupAnswer, Act: b.replies.allow},
		{Name: "reject", Keys: []string{"r"}, Shown: "r", Does: "reject, or give no answer to a question", Short: hint(permission, "reject"), Group: groupAnswer, Act: b.replies.reject},
		{Keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, Shown: "1-9", Does: "choose an option of the question", Group: groupAnswer, Act: b.replies.choose},
		{Name: "reply", Keys: []string{"i"}, Shown: "i", Does: "reply in your own words", Short: hint(asks && !permission, "reply"), Group: groupAnswer, Act: b.startReply},
	}
}

// acts returns the keys that act on runs.
func (b *board) acts() []page.Binding {
	r, do := b.list.Chosen(), b.do
	ended, ready := r != nil && r.State.Final(), r != nil && r.Status == agency.ReadyForReview
	return []page.Binding{
		{Name: "attach", Keys: []string{"enter"}, Shown: "enter", Does: "attach to its terminal; tmux's own detach comes back", Short: hint(r != nil && !ended, "attach"), Group: groupAct, Act: b.attach},
		{Name: "send", Keys: []string{"s"}, Shown: "s", Does: "send a message, typed into its terminal", Short: hint(r != nil && !ended, "send"), Group: groupAct, Act: b.startSend},
		{Name: "interrupt", Keys: []string{"I"}, Shown: "I", Does: "interrupt its agent, in the mode protocol; the run continues", Group: groupAct, Act: do.now("interrupting", "interrupted", do.interrupt)},
		{Name: "stop", Keys: []string{"x"}, Shown: "x", Does: "stop, after a y", Group: groupAct, Act: do.sure("stop %s? the worktree stays", "stopping", "stopped", do.stop)},
		{Name: "resume", Keys: []string{"R"}, Shown: "R", Does: "resume, after a y", Short: hint(ended, "resume"), Group: groupAct, Act: do.sure("resume %s?", "resuming", "resumed", do.resume)},
		{Name: "remove", Keys: []string{"D"}, Shown: "D", Does: "remove an ended run, after a y; its work is saved first", Short: hint(ended, "remove"), Group: groupAct, Act: do.sure("remove %s? unsaved work is saved first", "removing", "removed", do.remove)},
		{Name: "mode", Keys: []string{"c"}, Shown: "c", Does: "continue it in the mode that you type, with or without a task", Group: groupAct, Act: b.startMove},
		{Name: "snapshot", Keys: []string{"b"}, Shown: "b", Does: "save its work in a snapshot", Group: groupAct, Act: do.now("saving", "saved", do.snapshot)},
		{Name: "verify", Keys: []string{"V"}, Shown: "V", Does: "run the checks of its branch on it", Short: hint(ready, "verify"), Group: groupAct, Act: do.now("verifying", "passed the checks", do.verify)},
		{Name: "merge", Keys: []string{"M"}, Shown: "M", Does: "merge it into its branch, after a y and the checks", Short: hint(ready, "merge"), Group: groupAct, Act: do.sure("merge %s?", "merging", "merged", do.merge)},
		{Name: "enqueue", Keys: []string{"L"}, Shown: "L", Does: "have it land when its turn in the queue comes, after a y", Group: groupAct, Act: do.sure("queue %s to land?", "queueing", "queued to land", do.enqueue)},
		{Name: "snooze", Keys: []string{"z"}, Shown: "z", Does: "no more of its alerts for an hour, or take that back", Group: groupAct, Act: do.snooze},
		{Name: "mark", Keys: []string{"space"}, Shown: "space", Does: "mark, for an action on several", Group: groupAct, Act: page.Do(b.list.Mark)},
		{Name: "mark-all", Keys: []string{"*"}, Shown: "*", Does: "mark all that are listed, or none", Group: groupAct, Act: page.Do(b.list.MarkAll)},
	}
}

// looks returns the keys that change what the list and the pane show.
func (b *board) looks() []page.Binding {
	tab := func(tab preview.Tab) func(string) tea.Cmd {
		return page.Run(func() tea.Cmd { return b.show(tab) })
	}
	scroll := func(by int) func(string) tea.Cmd {
		return page.Run(func() tea.Cmd { return b.eye.scroll(by * max(b.eye.pane.Height()/2, 1)) })
	}
	slash := "filter"
	if b.layout.covers() {
		slash = "find"
	}
	return []page.Binding{
		{Name: "diff", Keys: []string{"d"}, Shown: "d", Does: "what it changed, file by file, with comments", Short: "diff", Group: groupLook, Act: page.Run(b.openDiff)},
		{Name: "changes", Keys: []string{"f"}, Shown: "f", Does: "the files that it changed", Group: groupLook, Act: tab(preview.Files)},
		{Name: "why", Keys: []string{"e"}, Shown: "e", Does: "why it has its status", Group: groupLook, Act: tab(preview.Why)},
		{Name: "log", Keys: []string{"l"}, Shown: "l", Does: "the end of its log", Group: groupLook, Act: tab(preview.Log)},
		{Name: "messages", Keys: []string{"m"}, Shown: "m", Does: "the messages that it got", Group: groupLook, Act: tab(preview.Messages)},
		{Name: "timeline", Keys: []string{"t"}, Shown: "t", Does: "what happened to it, the newest first", Group: groupLook, Act: tab(preview.Timeline)},
		{Name: "screen", Keys: []string{"v"}, Shown: "v", Does: "its screen", Group: groupLook, Act: tab(preview.Screen)},
		{Name: "next-tab", Keys: []string{"]", "tab"}, Shown: "], tab", Does: "the next of these", Group: groupLook, Act: page.Run(func() tea.Cmd { return b.show(b.eye.pane.Tab.Next(1)) })},
		{Name: "previous-tab", Keys: []string{"[", "shift+tab"}, Shown: "[", Does: "the one before", Group: groupLook, Act: page.Run(func() tea.Cmd { return b.show(b.eye.pane.Tab.Next(-1)) })},
		{Name: "filter", Keys: []string{"/"}, Shown: "/", Does: "filter: letters of a name, s:STATUS, t:TAG, r:REPOSITORY", Short: slash, Group: groupLook, Act: page.Do(b.filter)},
		{Shown: "+ /", Does: "find a text in the pane; with no text, the next place", Group: groupLook, Act: page.Do(b.search)},
		{Name: "group", Keys: []string{"o"}, Shown: "o", Does: "group the list by need, repository, session or tag", Group: groupLook, Act: page.Run(b.regroup)},
		{Name: "forget", Keys: []string{"esc"}, Shown: "esc", Does: "end the search, an action on several runs, the filter, or the marks", Group: groupLook, Act: page.Run(b.forget)},
		{Name: "scroll-down", Keys: []string{"J", "shift+down"}, Shown: "J", Does: "scroll the pane down", Group: groupLook, Act: scroll(1)},
		{Name: "scroll-up", Keys: []string{"K", "shift+up"}, Shown: "K", Does: "scroll the pane up", Group: groupLook, Act: scroll(-1)},
		{Name: "copy-pane", Keys: []string{"Y"}, Shown: "Y", Does: "copy what the pane shows, or the row that was found, to the clipboard of the terminal", Group: groupLook, Act: page.Run(b.copy)},
		{Name: "zoom", Keys: []string{"+"}, Shown: "+", Does: "give the pane the whole screen, or a part of it again", Group: groupLook, Act: page.Do(b.layout.zoom)},
		{Name: "larger", Keys: []string{">"}, Shown: ">", Does: "make the pane larger", Group: groupLook, Act: page.Do(func() { b.layout.resize(shareStep) })},
		{Name: "smaller", Keys: []string{"<"}, Shown: "<", Does: "make the pane smaller", Group: groupLook, Act: page.Do(func() { b.layout.resize(-shareStep) })},
		{Name: "hide", Keys: []string{"_"}, Shown: "_", Does: "hide the pane, or show it again", Group: groupLook, Act: page.Do(b.layout.hide)},
	}
}

// filters returns the bindings of the views of the user. They have only the keys that the user chose.
func (b *board) filters() []page.Binding {
	table := []page.Binding{}
	for _, name := range slices.Sorted(maps.Keys(b.views)) {
		filter := b.views[name]
		table = append(table, page.Binding{
			Name: "view-" + name, Does: "the view " + name + ": " + filter, Group: groupLook, Act: page.Do(func() { b.list.Filter(filter) }),
		})
	}
	return table
}

// openDiff shows what the run at the cursor changed.
func (b *board) openDiff() tea.Cmd {
	r := b.list.Chosen()
	if r == nil {
		return b.desk.Say("there is no run")
	}
	return b.desk.Open(diff.New(b.desk, r))
}
