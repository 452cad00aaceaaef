package tui

import (
	"bytes"
	"regexp"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/tui/page"
)

// attach gives the terminal to agency attach, which gives it back when the user detaches.
func (b *board) attach(string) tea.Cmd {
	r := b.list.Chosen()
	if r == nil {
		return b.desk.Say("there is no run")
	}
	return b.exec("attach", "--", string(r.ID))
}

// exec runs a command of agency on the terminal. If the command fails, the user sees the error that it
// wrote to its standard error.
func (b *board) exec(args ...string) tea.Cmd {
	cmd := b.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return b.desk.Exec(cmd, func(err error) tea.Msg {
		if err == nil {
			return changedMsg{}
		}
		if part := writtenError.FindStringSubmatch(stderr.String()); part != nil {
			return page.Acted{Err: agency.Errorf(agency.Code(part[2]), "%s", part[1]).WithHint("%s", part[3])}
		}
		return page.Acted{Err: err}
	})
}

// writtenError matches an error that a command of agency wrote: its text, its code and its hint.
var writtenError = regexp.MustCompile(`(?m)^agency: error: (.*) \[(E_[A-Z_]+)\]$(?:\nagency: hint: (.*))?`)
