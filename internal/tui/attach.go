package tui

import (
	"bytes"
	"strings"

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
		for line := range strings.Lines(said.String()) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "agency: error: "); ok {
				return page.Acted{Err: agency.Errorf(agency.CodeInternal, "%s", text)}
			}
		}
		return page.Acted{Err: err}
	})
}
