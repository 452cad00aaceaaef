package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/tui/cell"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// ordered returns agents in the order of the list: those that need the user first, the complete ones last.
func ordered(agents []*api.SessionAgent) []*api.SessionAgent {
	return slices.SortedStableFunc(slices.Values(agents), func(a, b *api.SessionAgent) int {
		return cmp.Or(cmp.Compare(view.Urgency(a), view.Urgency(b)), done(a)-done(b))
	})
}

// done returns 1 for a complete agent, and 0 for the others.
func done(a *api.SessionAgent) int {
	if a.Status == agency.AgentComplete {
		return 1
	}
	return 0
}

// list returns a row for each agent, and below the agent at the cursor the facts about it. Its rows are those
// from first to before last.
func (p *Page) list(width int) (lines []cell.Line, first, last int) {
	name, status := 8, 8
	for _, a := range p.agents {
		name, status = max(name, term.Width(label(a))), max(status, term.Width(view.AgentStatus(a)))
	}
	name = min(name, max(width/4, 16))
	p.agent.Inactive = !p.agentsFocused
	for i, a := range p.agents {
		row := p.agentRow(a, name, status)
		if !p.agentsFocused {
			lines = append(lines, append(cell.Of(cell.Plain, " "), row...))
			continue
		}
		at := len(lines)
		lines = append(lines, p.agent.Row(i, row, width))
		if i == p.agent.At {
			lines = append(lines, p.facts(a, width)...)
			first, last = at, len(lines)
		}
	}
	return lines, first, last
}

// agentRow returns the row of an agent: its status, how long it took, its note, its result and where it lands.
// For a complete agent, the note comes last.
func (p *Page) agentRow(a *api.SessionAgent, name, status int) cell.Line {
	mark, lasted := view.AgentMark(a), ""
	if a.StartedAt != nil {
		lasted = duration.Short(took(a, p.desk.Now()))
	}
	parts := []string{note(a), result(a), landing(a)}
	if a.Status == agency.AgentComplete {
		parts = []string{result(a), landing(a), note(a)}
	}
	line := cell.Of(cell.Coloured(view.MarkColour(mark)), mark+" ").
		Add(cell.Bold, term.Pad(page.Shorten(label(a), name), name)).
		Add(cell.Plain, "  "+term.Pad(view.AgentStatus(a), status)).Add(cell.Dim, fmt.Sprintf(" %5s", lasted))
	for _, part := range parts {
		if part != "" {
			line = line.Add(cell.Plain, "  "+part)
		}
	}
	return line
}

// note returns the note about an agent, or what the agent waits for.
func note(a *api.SessionAgent) string {
	switch said := view.AgentNote(a); {
	case said != "" || a.Status != agency.AgentQueued:
		return said
	case a.NotBefore != nil:
		return "starts at " + a.NotBefore.Local().Format(time.TimeOnly)
	case len(a.After) > 0:
		return after(a)
	default:
		return ""
	}
}

// after returns the agents that an agent comes after.
func after(a *api.SessionAgent) string { return "after " + strings.Join(a.After, ", ") }

// result returns the result of an agent in words.
func result(a *api.SessionAgent) string {
	r := a.Result
	switch {
	case r == nil:
		return ""
	case r.Problem != "":
		return "its changes cannot be counted"
	case !r.Changed():
		return "no changes"
	}
	text := fmt.Sprintf("%s, %s, +%d -%d", page.Count(r.Commits, "commit", "commits"), page.Count(r.Files, "file", "files"), r.Added, r.Deleted)
	if r.Dirty {
		text += ", not all committed"
	}
	return text
}

// landing returns where the work of an agent has landed, or its state on the way there.
func landing(a *api.SessionAgent) string {
	l := a.Landed
	switch {
	case l == nil:
		return ""
	case l.State == string(agency.WorkLanded) && l.Into != "":
		return "→ " + l.Into
	case l.State == string(agency.WorkPart):
		return "lands with " + l.Why
	case l.State == string(agency.WorkNothing):
		return "nothing to land"
	default:
		return "landing: " + l.State
	}
}

// facts returns all facts about an agent, without cutting any off.
func (p *Page) facts(a *api.SessionAgent, width int) []cell.Line {
	const indent = 2
	lines := []cell.Line{}
	fact := func(name, text string) {
		for _, line := range page.Fact(name, text, width-indent) {
			lines = append(lines, append(cell.Of(cell.Plain, strings.Repeat(" ", indent)), line...))
		}
	}
	fact("note", view.AgentNote(a))
	if len(a.After) > 0 {
		fact("comes", fmt.Sprintf("in wave %d, %s", a.Wave, after(a)))
	}
	if a.Status == agency.AgentComplete && a.Note != "" && a.Note != view.AgentNote(a) {
		fact("reported", a.Note)
	}
	fact("result", result(a))
	if l := a.Landed; l != nil {
		text := strings.TrimPrefix(landing(a), "landing: ")
		if l.Why != "" && l.State != string(agency.WorkPart) {
			text += ": " + l.Why
		}
		fact("landing", text)
	}
	if r := a.Result; r != nil {
		fact("problem", r.Problem)
		fact("to test", r.Tests)
		if r.Usage.Known() {
			fact("used", view.Usage(&r.Usage))
		}
		if len(r.Nested) > 0 {
			fact("left out", "other repositories: "+strings.Join(r.Nested, ", "))
		}
	}
	fact("times", p.times(a))
	fact("agent", strings.Join(slices.DeleteFunc([]string{a.Runner, a.Model}, func(s string) bool { return s == "" }), ", "))
	fact("branch", a.Branch)
	return append(lines, cell.Of(cell.Plain, ""))
}

// times returns when an agent began and ended, and how many attempts it had.
func (p *Page) times(a *api.SessionAgent) string {
	if a.StartedAt == nil {
		return ""
	}
	text := "began at " + a.StartedAt.Local().Format(time.TimeOnly)
	if a.CompletedAt != nil {
		text += ", ended at " + a.CompletedAt.Local().Format(time.TimeOnly) + " after "
	} else {
		text += ", for "
	}
	text += duration.Stopwatch(took(a, p.desk.Now()))
	if a.Attempts > 1 {
		text += fmt.Sprintf(", %d attempts", a.Attempts)
	}
	return text
}
