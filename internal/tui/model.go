package tui

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/tui/form"
	"agency/internal/tui/page"
	"agency/internal/tui/palette"
)

// Times of the dashboard.
const (
	// resizedFor is how long a new size lasts before the screen is drawn anew.
	resizedFor = 100 * time.Millisecond
	clockTick  = time.Minute // all ages change when a minute begins
	// pageEvery is the time between two readings of a page, however much changes.
	pageEvery = 500 * time.Millisecond
)

// Model is the state of the dashboard: the list of runs, and the page that is shown in its place, if there
// is one.
type Model struct {
	desk   *page.Desk
	keymap page.Keymap

	width, height int
	out           *os.File
	board         *board
	page          page.Page  // nil while the list is shown
	form          *form.Page // for a new run: it keeps what the user wrote
	helping       bool
	helpTop       int // the first visible row of the help
	palette       *palette.Palette
	notice        notice
	doing         doing
	quiet         time.Time // until then, keys do nothing: the user pressed them for a screen that is gone
	refresh       refresh
}

// doing holds what is being done, by the ids of page.Desk.Begin.
type doing struct {
	what map[int]string
	last int // the newest id
}

// begin notes what is being done, and returns its id. id is 0 for something new.
func (d *doing) begin(id int, does string) int {
	if id == 0 {
		d.last++
		id = d.last
	}
	d.what[id] = does
	return id
}

// refresh keeps the dashboard from reading a page again at each of many changes.
type refresh struct {
	waits bool // the page was read less than pageEvery ago
	stale bool // something has changed since
}

// later returns the command that ends as a message after a time.
func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// New returns the model of the dashboard. ctx ends its commands.
func New(ctx context.Context, o Options) *Model {
	m := &Model{width: 80, height: 24, keymap: o.Keys, out: o.Out, doing: doing{what: map[int]string{}}}
	m.desk = &page.Desk{
		Ctx: ctx, Daemon: o.Daemon, Now: o.Now, Dir: o.Dir, Env: o.Env, Config: o.Config, Runner: o.Runner, Runners: o.Runners, Presets: o.Presets, Later: later,
		Say: m.notice.say, Begin: m.doing.begin, Fail: m.notice.fail, Confirm: m.notice.confirm, Open: m.open, Leave: m.leave, Go: m.goTo, Name: m.name, Key: m.key, Exec: m.exec,
	}
	m.notice.desk = m.desk
	m.board = newBoard(m.desk, o.Command, o.Views)
	m.desk.Repos = m.board.list.Repos
	m.form = form.New(m.desk)
	return m
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.board.Open(), m.tick()) }

type (
	clockMsg   struct{}
	refreshMsg struct{}
)

// room returns how many rows the page has, between the first row and the last ones.
func (m *Model) room() int { return max(m.height-1-len(m.bottom()), 1) }

// now returns the page that is shown.
func (m *Model) now() page.Page {
	if m.page != nil {
		return m.page
	}
	return m.board
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		// bubbletea takes the columns that a terminal got for blank, whatever it has drawn there since.
		// Only a frame that it draws anew after the first one of the new size puts that right.
		cmd = m.desk.Later(resizedFor, tea.ClearScreen())
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseWheelMsg, tea.MouseClickMsg:
		cmd = m.mouse(msg)
	case clockMsg:
		cmd = tea.Batch(m.tick(), m.board.feed.changed("")) // finds what no event reported
	case toastedMsg:
		if int(msg) == m.notice.count && !m.notice.stays {
			m.notice.text = ""
		}
	case page.Acted:
		cmd = m.acted(msg)
	default:
		was := m.page
		if cmd = m.pass(msg); m.page != was {
			m.quiet = m.desk.Now().Add(deadKeys) // the user did not ask for another screen just now
		}
	}
	if !m.noticeHidden() {
		m.notice.drawn()
	}
	m.board.set(m.width, m.room(), m.page == nil && !m.helping)
	return m, tea.Batch(cmd, m.board.settle())
}

// pass gives a message to the list, and to the page.
func (m *Model) pass(msg tea.Msg) tea.Cmd {
	cmds := []tea.Cmd{m.board.Update(msg)}
	switch msg.(type) {
	case changedMsg, otherMsg, againMsg:
		cmds = append(cmds, m.changed())
	case refreshMsg:
		m.refresh.waits = false
		if m.refresh.stale {
			cmds = append(cmds, m.changed())
		}
	}
	if m.page != nil && m.page != page.Page(m.form) {
		cmds = append(cmds, m.page.Update(msg))
	}
	return tea.Batch(append(cmds, m.form.Update(msg))...) // the start of a run may end after the user has left the form
}

// changed reads the page again, now or a little later.
func (m *Model) changed() tea.Cmd {
	if m.page == nil || m.refresh.waits {
		m.refresh.stale = true
		return nil
	}
	m.refresh = refresh{waits: true}
	return tea.Batch(m.page.Changed(), m.desk.Later(pageEvery, refreshMsg{}))
}

// tick returns the command that ends when the next minute begins.
func (m *Model) tick() tea.Cmd {
	now := m.desk.Now()
	return m.desk.Later(now.Truncate(clockTick).Add(clockTick).Sub(now), clockMsg{})
}

// acted ends an action: it shows the result, and reads again what may have changed.
func (m *Model) acted(done page.Acted) tea.Cmd {
	delete(m.doing.what, done.ID)
	cmds := []tea.Cmd{m.pass(changedMsg{}), m.pass(done)}
	switch {
	case done.Err != nil:
		cmds = append(cmds, m.notice.fail(done.Err))
	case done.Text != "":
		cmds = append(cmds, m.notice.say(done.Text))
	}
	return tea.Batch(cmds...)
}

// open shows a page in place of the list.
func (m *Model) open(p page.Page) tea.Cmd {
	m.page, m.refresh = p, refresh{}
	m.notice.moved()
	return p.Open()
}

// leave goes back to the list.
func (m *Model) leave() tea.Cmd {
	m.page = nil
	m.notice.moved()
	return nil
}

// exec gives the terminal to a program until it ends.
func (m *Model) exec(cmd *exec.Cmd, done func(err error) tea.Msg) tea.Cmd {
	if m.out != nil {
		cmd.Stdout = m.out
	}
	return tea.ExecProcess(cmd, done)
}

// goTo goes back to the list, and moves its cursor to a run.
func (m *Model) goTo(run agency.RunID) tea.Cmd {
	m.page, m.board.feed.wanted = nil, run
	m.notice.moved()
	return m.board.feed.changed("")
}

// name returns what users call a run, by its id.
func (m *Model) name(id string) string {
	if r := m.board.list.Find(agency.RunID(id)); r != nil {
		return r.Ref()
	}
	return id
}

// noticeHidden reports whether something else is in the place of the notice.
func (m *Model) noticeHidden() bool {
	return m.notice.asking || m.palette != nil || m.helping || m.now().Typing(m.width) != nil
}

// press handles a key.
func (m *Model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if !m.noticeHidden() {
		m.notice.read()
	}
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.desk.Now().Before(m.quiet):
		return nil
	case m.notice.asking:
		return m.notice.decide(name)
	case m.palette != nil:
		return m.command(key)
	case m.helping:
		m.pressHelp(name)
		return nil
	case m.now().Typing(m.width) != nil:
		return m.now().Type(key)
	}
	table := m.bindings()
	for i := range table {
		if table[i].Has(name) {
			return table[i].Act(name)
		}
	}
	return nil
}

// do does what the binding with a name does on the shown screen.
func (m *Model) do(name string) tea.Cmd {
	table := m.bindings()
	for i := range table {
		if table[i].Name == name {
			return table[i].Act("")
		}
	}
	return nil
}

// command handles a key for the palette.
func (m *Model) command(key tea.KeyPressMsg) tea.Cmd {
	chosen, done := m.palette.Press(key)
	if !done {
		return nil
	}
	m.palette = nil
	if chosen == nil {
		return nil
	}
	return chosen.Act("")
}

// pressHelp handles a key for the help. / opens the palette, which finds a binding by its words.
func (m *Model) pressHelp(name string) {
	rows := map[string]int{
		"j": 1, "down": 1, "ctrl+d": m.height / 2, "pgdown": m.height - 3,
		"k": -1, "up": -1, "ctrl+u": -m.height / 2, "pgup": 3 - m.height,
	}
	switch by := rows[name]; {
	case by != 0:
		m.helpTop = max(m.helpTop+by, 0)
	case name == "/" || name == ":":
		m.helping, m.helpTop, m.palette = false, 0, palette.New(m.bindings())
	default:
		m.helping, m.helpTop = false, 0
	}
}

// lineEnds turns the ends of lines in a paste, which depend on the terminal, into newlines.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// paste types a pasted text where the user types.
func (m *Model) paste(text string) {
	text = lineEnds.Replace(text)
	switch {
	case m.palette != nil:
		m.palette.Paste(text)
	case m.now().Typing(m.width) != nil:
		m.now().Paste(text)
	}
}

// mouse handles the wheel, and a click on the footer or on the list and its pane.
func (m *Model) mouse(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		at := msg.Mouse()
		switch {
		case m.palette != nil || m.helping || m.notice.asking:
		case at.Y == m.height-1 && m.now().Typing(m.width) == nil:
			return m.clickFooter(at.X)
		case m.page == nil:
			return m.board.click(at.X, at.Y)
		}
	case tea.MouseWheelMsg:
		name, up := "down", msg.Mouse().Button == tea.MouseWheelUp
		if up {
			name = "up"
		}
		switch {
		case m.palette != nil:
		case m.helping:
			m.pressHelp(name)
		case m.page == nil:
			return m.board.wheel(msg.Mouse(), up)
		case m.page.Typing(m.width) == nil:
			return m.do(name)
		}
	}
	return nil
}

// clickFooter does what the key at a column of the footer does.
func (m *Model) clickFooter(x int) tea.Cmd {
	if m.notice.text != "" {
		m.notice.text = ""
		return nil
	}
	_, items := m.footer()
	for _, it := range items {
		if x >= it.from && x < it.to {
			return it.binding.Act(it.binding.Keys[0])
		}
	}
	return nil
}
