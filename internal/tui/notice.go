package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/cli/term"
)

// toastFor is how long a text stays in place of the footer.
const toastFor = 4 * time.Second

// notice is what the last row says in place of the keys.
type notice struct {
	text     string
	count    int // counts the texts, so that the end of one does not end the next
	question question
	asking   bool
}

// question is an action that a y confirms.
type question struct {
	text string
	do   func() tea.Cmd
}

type toastedMsg int

// say shows a text for a while.
func (m *Model) say(text string) tea.Cmd {
	m.notice.count++
	m.notice.text = term.SafeLine(text)
	return m.desk.Later(toastFor, toastedMsg(m.notice.count))
}

// fail shows an error and its way out.
func (m *Model) fail(err error) tea.Cmd {
	e := agency.AsError(err)
	text, _, _ := strings.Cut(e.Message, "\n")
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return m.say(text)
}

func (m *Model) confirm(text string, do func() tea.Cmd) tea.Cmd {
	m.notice.question, m.notice.asking = question{term.SafeLine(text), do}, true
	return nil
}

// decide handles the key that answers a question.
func (m *Model) decide(key string) tea.Cmd {
	m.notice.asking = false
	if key == "y" || key == "enter" {
		return m.notice.question.do()
	}
	return m.say("nothing was done")
}
