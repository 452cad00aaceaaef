package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"agency/internal/tui/field"
	"agency/internal/tui/preview"
)

// binding is a row of the one table of keys: what a key does, in the footer, in the help, in the
// palette and in docs/tui.md.
type binding struct {
	keys  []string // as bubbletea names them
	shown string   // as users read them
	does  string   // in the help
	short string   // in the footer; empty keeps it out
	group string
	act   func(m *Model, key string) tea.Cmd
}

func (b *binding) has(key string) bool { return slices.Contains(b.keys, key) }

// The groups of the help.
const (
	groupMove   = "Move"
	groupAnswer = "Answer"
	groupAct    = "Act on the run, or on those that are marked"
	groupLook   = "Look"
	groupAll    = "Everywhere"
)

// bindings returns the table of keys. Each call builds it, since only the dashboard needs it.
func bindings() []binding {
	move := func(by int) func(m *Model, _ string) tea.Cmd {
		return func(m *Model, _ string) tea.Cmd { m.list.Move(by); return nil }
	}
	next := func(step int) func(m *Model, _ string) tea.Cmd {
		return func(m *Model, _ string) tea.Cmd {
			if !m.list.Next(step) {
				return m.say("no run needs you")
			}
			return nil
		}
	}
	tab := func(tab preview.Tab) func(m *Model, _ string) tea.Cmd {
		return func(m *Model, _ string) tea.Cmd { return m.show(tab) }
	}
	return []binding{
		{[]string{"j", "down"}, "j, down", "the next run", "", groupMove, move(1)},
		{[]string{"k", "up"}, "k, up", "the run before", "", groupMove, move(-1)},
		{[]string{"ctrl+d", "pgdown"}, "ctrl-d", "half a page down", "", groupMove, func(m *Model, _ string) tea.Cmd { m.list.Page(1); return nil }},
		{[]string{"ctrl+u", "pgup"}, "ctrl-u", "half a page up", "", groupMove, func(m *Model, _ string) tea.Cmd { m.list.Page(-1); return nil }},
		{[]string{"g", "home"}, "g", "the first run", "", groupMove, func(m *Model, _ string) tea.Cmd { m.list.End(false); return nil }},
		{[]string{"G", "end"}, "G", "the last run", "", groupMove, func(m *Model, _ string) tea.Cmd { m.list.End(true); return nil }},
		{[]string{"w"}, "w", "the next run that needs you", "next", groupMove, next(1)},
		{[]string{"W"}, "W", "the run before that needs you", "", groupMove, next(-1)},
		{[]string{"a"}, "a", "allow this once", "allow", groupAnswer, (*Model).allow},
		{[]string{"r"}, "r", "reject, or give no answer to a question", "reject", groupAnswer, (*Model).reject},
		{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, "1-9", "choose an option of the question", "", groupAnswer, (*Model).choose},
		{[]string{"i"}, "i", "reply in your own words", "reply", groupAnswer, (*Model).startReply},
		{[]string{"enter"}, "enter", "attach to its terminal; tmux's own detach comes back", "attach", groupAct, (*Model).attach},
		{[]string{"s"}, "s", "send a message, typed into its terminal", "", groupAct, (*Model).startSend},
		{[]string{"x"}, "x", "stop, after a y", "", groupAct, (*Model).stop},
		{[]string{"R"}, "R", "resume, after a y", "", groupAct, (*Model).resume},
		{[]string{"D"}, "D", "remove an ended run, after a y; its work is saved first", "", groupAct, (*Model).remove},
		{[]string{"b"}, "b", "save its work in a snapshot", "", groupAct, (*Model).snapshot},
		{[]string{"space"}, "space", "mark, for an action on several", "", groupAct, func(m *Model, _ string) tea.Cmd { m.list.Mark(); return nil }},
		{[]string{"d"}, "d", "what it changed", "diff", groupLook, tab(preview.Diff)},
		{[]string{"e"}, "e", "why it has its status", "", groupLook, tab(preview.Why)},
		{[]string{"l"}, "l", "the end of its log", "", groupLook, tab(preview.Log)},
		{[]string{"v"}, "v", "its screen", "", groupLook, tab(preview.Screen)},
		{[]string{"/"}, "/", "filter: letters of a name, s:STATUS, t:TAG, r:REPOSITORY", "filter", groupLook, func(m *Model, _ string) tea.Cmd {
			m.mode, m.field = filtering, field.New(m.list.Filtered())
			return nil
		}},
		{[]string{"esc"}, "esc", "end the filter and the marks", "", groupLook, func(m *Model, _ string) tea.Cmd {
			m.list.Unmark()
			m.list.Filter("")
			return nil
		}},
		{[]string{"J", "shift+down"}, "J", "scroll the pane down", "", groupLook, func(m *Model, _ string) tea.Cmd { m.pane.ScrollBy(max(m.pane.Height()/2, 1)); return nil }},
		{[]string{"K", "shift+up"}, "K", "scroll the pane up", "", groupLook, func(m *Model, _ string) tea.Cmd { m.pane.ScrollBy(-max(m.pane.Height()/2, 1)); return nil }},
		{[]string{"+"}, "+", "give the pane the whole screen, or a part of it again", "", groupLook, func(m *Model, _ string) tea.Cmd { m.big, m.hidden = !m.big, false; return nil }},
		{[]string{"_"}, "_", "hide the pane, or show it again", "", groupLook, func(m *Model, _ string) tea.Cmd { m.hidden, m.big = !m.hidden, false; return nil }},
		{[]string{"?"}, "?", "these keys", "help", groupAll, func(m *Model, _ string) tea.Cmd { m.mode = helping; return nil }},
		{[]string{"q", "ctrl+c"}, "q", "leave; the runs go on", "quit", groupAll, func(*Model, string) tea.Cmd { return tea.Quit }},
	}
}
