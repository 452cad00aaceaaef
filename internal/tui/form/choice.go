package form

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"agency/internal/tui/field"
	"agency/internal/tui/page"
)

// choices returns the values that ctrl-n offers in a row; none for a row of free text.
func (p *Page) choices(row int) []string {
	switch row {
	case repository:
		return p.desk.Repos()
	case preset:
		return p.desk.Presets
	case runner:
		return p.desk.Runners
	case base:
		return p.refs
	case sandbox:
		return page.SandboxLevels()
	default:
		return nil
	}
}

// choose puts the next choice into the row at the cursor or, with ctrl-p, the one before. After the last
// choice the row is empty.
func (p *Page) choose(key string) tea.Cmd {
	choices := p.choices(p.at)
	if len(choices) == 0 {
		return nil
	}
	step := 1
	if key == "ctrl+p" {
		step = -1
	}
	n := len(choices) + 1 // with the empty one, at 0
	at := slices.Index(choices, p.value(p.at)) + 1
	at = ((at+step)%n + n) % n
	text := ""
	if at > 0 {
		text = choices[at-1]
	}
	p.fields[p.at] = field.New(text)
	return nil
}
