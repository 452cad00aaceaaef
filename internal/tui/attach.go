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

// exec runs a command of agency on the terminal. What it writes to its standard error is said when
// it fails.
func (b *board) exec(args ...string) tea.Cmd {
	cmd := b.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	return b.desk.Exec(cmd, func(err error) tea.Msg {
		if err == nil {
			return changedMsg{}
		}
		if part := written.FindStringSubmatch(said.String()); part != nil {
			return page.Acted{Err: agency.Errorf(agency.Code(part[2]), "%s", part[1]).WithHint("%s", part[3])}
		}
		return page.Acted{Err: err}
	})
}

// written is an error as a command of agency writes it, with its code and its hint.
var written = regexp.MustCompile(`(?m)^agency: error: (.*) \[(E_[A-Z_]+)\]$(?:\nagency: hint: (.*))?`)
