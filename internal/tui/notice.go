package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/cli/term"
	"agency/internal/tui/page"
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
	desk *page.Desk

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
func (n *notice) say(text string) tea.Cmd {
	if n.stays && n.text != "" {
		return nil
	}
	n.show(text, false)
	return n.desk.Later(toastFor, toastedMsg(n.count))
}

// fail shows an error and its way out, until the user presses a key.
func (n *notice) fail(err error) tea.Cmd {
	e := agency.AsError(err)
	text := e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	n.show(text, true)
	return nil
}

func (n *notice) show(text string, stays bool) {
	n.count++
	n.text, n.stays, n.since = term.SafeLine(text), stays, time.Time{}
}

// moved takes away a text that is about another screen.
func (n *notice) moved() {
	if !n.stays {
		n.text = ""
	}
}

// drawn notes that the text is on the screen, and since when.
func (n *notice) drawn() {
	if n.since.IsZero() {
		n.since = n.desk.Now()
	}
}

// read takes away a text on the screen that the user has had the time to read.
func (n *notice) read() {
	if !n.since.IsZero() && n.desk.Now().Sub(n.since) >= readFor {
		n.text = ""
	}
}

func (n *notice) confirm(text string, do func() tea.Cmd) tea.Cmd {
	n.question, n.asking = question{term.SafeLine(text), do}, true
	return nil
}

// decide handles the key that answers a question.
func (n *notice) decide(key string) tea.Cmd {
	n.asking = false
	if key == "y" {
		return n.question.do()
	}
	return n.say("nothing was done")
}
