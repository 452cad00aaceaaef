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

// notice is the text in the last row in place of the keys, or a question there.
type notice struct {
	desk *page.Desk

	text     string
	stays    bool      // the text stays until the user presses a key
	since    time.Time // when the text was drawn first; zero before that
	count    int       // counts the texts, so that the end of one does not end the next
	question question
	asking   bool // the question waits for a y
}

// question is a question and what a y does.
type question struct {
	text string
	do   func() tea.Cmd
}

// toastedMsg is the end of the time of a text, by its count.
type toastedMsg int

// say shows a text for a while, but not in place of an error that the user has not read.
func (n *notice) say(text string) tea.Cmd {
	if n.stays && n.text != "" {
		return nil
	}
	n.show(text, false)
	return n.desk.Later(toastFor, toastedMsg(n.count))
}

// fail shows an error and its hint, until the user presses a key.
func (n *notice) fail(err error) tea.Cmd {
	e := agency.AsError(err)
	text := e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	n.show(text, true)
	return nil
}

// show replaces the text.
func (n *notice) show(text string, stays bool) {
	n.count++
	n.text, n.stays, n.since = term.SafeLine(text), stays, time.Time{}
}

// moved takes away a text about the screen before, but not an error.
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

// confirm asks a question, and does something after a y.
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
