package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/cli/term"
)

// Times of the texts in the last row.
const (
	toastFor = 4 * time.Second // a text stays in place of the footer
	readFor  = time.Second     // a text stays at least so long; then a key ends it
)

// mostNotice is how many rows a text has at most.
const mostNotice = 5

// notice is what the last row says in place of the keys.
type notice struct {
	text     string
	stays    bool      // until the user has read it
	since    time.Time // it was drawn first; zero before that
	count    int       // counts the texts, so that the end of one does not end the next
	question question
	asking   bool
}

// question is an action that a y confirms.
type question struct {
	text string
	do   func() tea.Cmd
}

type toastedMsg int

// say shows a text for a while. It takes the place of no error that the user has not read.
func (m *Model) say(text string) tea.Cmd {
	if m.notice.stays && m.notice.text != "" {
		return nil
	}
	m.show(text, false)
	return m.desk.Later(toastFor, toastedMsg(m.notice.count))
}

// fail shows an error and its way out, until the user presses a key.
func (m *Model) fail(err error) tea.Cmd {
	e := agency.AsError(err)
	text := e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	m.show(text, true)
	return nil
}

func (m *Model) show(text string, stays bool) {
	m.notice.count++
	m.notice.text, m.notice.stays, m.notice.since = term.SafeLine(text), stays, time.Time{}
}

// moved takes away a text that is about another screen.
func (m *Model) moved() {
	if !m.notice.stays {
		m.notice.text = ""
	}
}

// drawn notes when a text is seen first: what the user types hides it.
func (m *Model) drawn() {
	if m.notice.since.IsZero() && !m.noticeHidden() {
		m.notice.since = m.desk.Now()
	}
}

// noticeHidden reports whether something else is in the place of the notice.
func (m *Model) noticeHidden() bool {
	return m.notice.asking || m.palette != nil || m.helping || m.now().Typing(m.width) != nil
}

// read takes away a text that the user has had the time to read.
func (m *Model) read() {
	if !m.notice.since.IsZero() && !m.noticeHidden() && m.desk.Now().Sub(m.notice.since) >= readFor {
		m.notice.text = ""
	}
}

func (m *Model) confirm(text string, do func() tea.Cmd) tea.Cmd {
	m.notice.question, m.notice.asking = question{term.SafeLine(text), do}, true
	return nil
}

// decide handles the key that answers a question.
func (m *Model) decide(key string) tea.Cmd {
	m.notice.asking = false
	if key == "y" {
		return m.notice.question.do()
	}
	return m.say("nothing was done")
}
