package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/field"
	"agency/internal/tui/list"
	"agency/internal/tui/preview"
	"agency/internal/view"
)

// Times of the dashboard.
const (
	// deadKeys is how long a request must have been shown before a key answers it, so that a key that
	// was meant for another one does not.
	deadKeys = 500 * time.Millisecond
	toastFor = 4 * time.Second
	// resizedFor is how long a new size lasts before the screen is drawn anew.
	resizedFor = 100 * time.Millisecond
	clockTick  = 15 * time.Second // ages change with time alone
)

// mode is what keys do.
type mode int

const (
	browsing mode = iota
	filtering
	replying // the field is for the run in about
	sending  // the field is for the runs in targets
	confirming
	helping
)

// Model is the state of the dashboard.
type Model struct {
	o   Options
	ctx context.Context //nolint:containedctx // of the program, for the commands

	width, height int
	mode          mode
	bindings      []binding
	helpTop       int // the first visible row of the help
	list          *list.List
	loaded        bool // the first list has come
	pane          preview.Pane
	hidden        bool // the pane is not shown, so nothing is asked for it
	big           bool // the pane has the whole screen
	field         field.Field
	about         api.Run // what the field or the question is about, as it was shown
	targets       []api.Run
	question      question

	// The request that is shown: the run, its id, and when it appeared.
	asking string
	since  time.Time

	toast   string
	toasted int    // counts toasts, so that the end of one does not end the next
	away    string // why the daemon does not answer

	feed feed
	eye  eye

	// later returns a command that ends as a message after a time.
	later func(d time.Duration, msg tea.Msg) tea.Cmd
}

func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// question is an action that a y confirms.
type question struct {
	text string
	do   func() tea.Cmd
}

// New returns the model of the dashboard. ctx ends its commands.
func New(ctx context.Context, o Options) *Model {
	return &Model{o: o, ctx: ctx, list: list.New(), bindings: bindings(), width: 80, height: 24, later: later}
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.fetch(), m.tick()) }

// The messages that commands end as.
type (
	changedMsg struct{}
	againMsg   struct{}
	awayMsg    string
	clockMsg   struct{}
	toastedMsg int
	liveMsg    struct{} // a request has been shown long enough
	actedMsg   struct {
		text string
		err  error
	}
)

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		// bubbletea takes the columns that a terminal got for blank, whatever it has drawn there since.
		// Only a frame that it draws anew after the first one of the new size puts that right.
		cmd = m.later(resizedFor, tea.ClearScreen())
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	case tea.PasteMsg:
		if m.mode == filtering || m.mode == replying || m.mode == sending {
			m.field.Insert(msg.Content)
			m.typed()
		}
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
	case tea.MouseClickMsg:
		m.click(msg.Mouse())
	case changedMsg:
		cmd = m.changed()
	case againMsg:
		m.away = ""
		cmd = tea.Batch(m.say("another daemon answers now; nothing is lost"), m.changed())
	case awayMsg:
		if m.away != "" && msg == "" {
			cmd = m.changed()
		}
		m.away = string(msg)
	case runsMsg:
		cmd = m.listed(msg)
	case fetchMsg:
		cmd = m.fetch()
	case screenMsg:
		cmd = m.shown(msg)
	case textMsg:
		cmd = m.hasRead(msg)
	case lookMsg:
		cmd = m.look(msg.turn)
	case clockMsg:
		cmd = m.tick()
	case toastedMsg:
		if int(msg) == m.toasted {
			m.toast = ""
		}
	case actedMsg:
		cmd = m.acted(msg)
	case answeredMsg:
		cmd = m.answered(msg)
	}
	return m, tea.Batch(cmd, m.watch(), m.noticeRequest())
}

func (m *Model) tick() tea.Cmd {
	return m.later(clockTick, clockMsg{})
}

// say shows a text in place of the footer for a while.
func (m *Model) say(text string) tea.Cmd {
	m.toasted++
	m.toast = term.SafeLine(text)
	n := m.toasted
	return m.later(toastFor, toastedMsg(n))
}

// sayError shows an error and its way out.
func (m *Model) sayError(err error) tea.Cmd {
	e := agency.AsError(err)
	text, _, _ := strings.Cut(e.Message, "\n")
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return m.say(text)
}

func (m *Model) acted(msg actedMsg) tea.Cmd {
	if msg.err != nil {
		return m.sayError(msg.err)
	}
	if msg.text == "" {
		return nil
	}
	return m.say(msg.text)
}

// noticeRequest notes when the request under the cursor changes: keys answer it only after it has
// been shown for a while.
func (m *Model) noticeRequest() tea.Cmd {
	asking := ""
	if r := m.list.Chosen(); r != nil && view.PromptID(r) != "" {
		asking = string(r.ID) + " " + view.PromptID(r)
	}
	if asking == m.asking {
		return nil
	}
	m.asking, m.since = asking, m.o.Now()
	if asking == "" {
		return nil
	}
	return m.later(deadKeys, liveMsg{})
}

// takes reports whether a key answers the request that is shown.
func (m *Model) takes() bool { return m.asking != "" && m.o.Now().Sub(m.since) >= deadKeys }

// press handles a key.
func (m *Model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if name == "ctrl+z" {
		return tea.Suspend
	}
	switch m.mode {
	case filtering, replying, sending:
		return m.edit(key, name)
	case confirming:
		m.mode = browsing
		if name == "y" || name == "enter" {
			return m.question.do()
		}
		return m.say("nothing was done")
	case browsing:
	case helping:
		switch name {
		case "j", "down":
			m.helpTop++
		case "k", "up":
			m.helpTop = max(m.helpTop-1, 0)
		default:
			m.mode, m.helpTop = browsing, 0
		}
		return nil
	}
	for i := range m.bindings {
		b := &m.bindings[i]
		if b.has(name) {
			return b.act(m, name)
		}
	}
	return nil
}

// edit handles a key for the field.
func (m *Model) edit(key tea.KeyPressMsg, name string) tea.Cmd {
	text := m.field.Text()
	switch name {
	case "esc":
		if m.mode == filtering {
			m.list.Filter("")
		}
		m.mode = browsing
	case "enter":
		was := m.mode
		m.mode = browsing
		if was == replying && strings.TrimSpace(text) != "" {
			return m.reply(&m.about, text)
		}
		if was == sending && strings.TrimSpace(text) != "" {
			return m.send(text)
		}
	case "up", "down":
		if m.mode == filtering {
			m.list.Move(map[string]int{"up": -1, "down": 1}[name])
		}
	default:
		m.field.Press(key)
		m.typed()
	}
	return nil
}

// typed applies a field that acts while the user types.
func (m *Model) typed() {
	if m.mode == filtering {
		m.list.Filter(m.field.Text())
	}
}
