package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/duration"
	"agency/internal/view"
)

// picture is a session at one moment, as it is shown.
type picture struct {
	*api.ShowSessionResponse
	now    time.Time
	width  int // columns; 0 is no limit
	colour bool
	runs   bool // show the runs of the agents, and headings
}

// lines returns the whole picture: the header, the agents by wave, and the footer, in at most this
// many lines; 0 means no limit.
func (v *picture) lines(most int) []string {
	head, foot := v.header(), v.footer()
	width := 0
	if most > 0 {
		width = max(most-len(head)-len(foot), 1)
	}
	lines := slices.Concat(head, v.agents(width), foot)
	if v.width > 0 {
		for i := range lines {
			lines[i] = ansi.Truncate(lines[i], v.width, "…")
		}
	}
	if most > 0 {
		lines = lines[:min(len(lines), most)]
	}
	return lines
}

func (v *picture) header() []string {
	s := &v.Session
	lines := []string{strings.TrimSpace(term.Fit(term.SafeLine(s.Name), 40) + "  " + string(s.ID)), v.pending()}
	if s.Paused != "" && !s.Status.Final() {
		lines = append(lines, "paused: "+term.SafeLine(s.Paused))
	}
	return lines
}

// pending returns the status of the session on one line.
func (v *picture) pending() string {
	text := fmt.Sprintf("%s %s %s", view.SessionMark(&v.Session), view.SessionStatus(&v.Session), duration.Stopwatch(v.elapsed()))
	t, waiting := v.Session.Summary, 0
	for i := range v.Agents {
		if a := &v.Agents[i]; a.NeedsUser {
			waiting++
			t.Add(a.Status, -1)
		}
	}
	if counts := view.Counts(t, waiting); counts != "" {
		text += "  " + counts
	}
	return text
}

func (v *picture) elapsed() time.Duration {
	if v.Session.CompletedAt != nil {
		return v.Session.CompletedAt.Sub(v.Session.StartedAt)
	}
	return v.now.Sub(v.Session.StartedAt)
}

// footer returns what the user can do, or the result of the session.
func (v *picture) footer() []string {
	s := &v.Session
	switch {
	case s.Status.Final() && s.ReportPath != "":
		return []string{"report: " + term.SafeLine(s.ReportPath)}
	case s.Status.Final():
		return []string{"results: agency session show " + s.Ref()}
	case s.Paused != "":
		return []string{"continue: agency session resume " + s.Ref()}
	}
	for i := range v.Agents {
		switch a := &v.Agents[i]; {
		case !a.NeedsUser:
		case a.Run != "":
			return []string{fmt.Sprintf("%s waits for you: agency attach %s", a.ID, term.SafeLine(a.Run))}
		default:
			return []string{fmt.Sprintf("%s waits for you; then: agency session resume %s", a.ID, s.Ref())}
		}
	}
	return nil
}

// agents returns the rows of the agents below the titles of their waves. When not all fit, those
// that need attention come first, and a line counts the others.
func (v *picture) agents(width int) []string {
	shown, hidden := view.FitAgents(v.Agents, width)
	titled := slices.ContainsFunc(v.Agents, func(a api.SessionAgent) bool { return a.Wave != v.Agents[0].Wave })
	columns, rows := v.table(shown)
	type cut struct {
		column string
		least  int
	}
	order := []cut{{"NAME", 24}, {"NOTE", 24}, {"NAME", 16}, {"  AGENT", 18}, {"NOTE", 12}, {"NAME", 8}, {"STATUS", 11}, {"  AGENT", 10}, {"NOTE", 0}}
	if v.runs { // an agent can be named by what stands here, so its name is cut last
		order = []cut{{"NAME", 24}, {"NOTE", 24}, {"NAME", 16}, {"NOTE", 12}, {"NAME", 8}, {"NOTE", 0}, {"STATUS", 11}, {"  AGENT", 10}}
	}
	cuts := []term.Cut{}
	for _, c := range order {
		if i := slices.Index(columns, c.column); i >= 0 {
			cuts = append(cuts, term.Cut{i, c.least})
		}
	}
	indent := ""
	if titled {
		indent = "  "
	}
	if v.width > 0 {
		term.Narrow(rows, v.width-len(indent), cuts)
	}
	painted := strings.Split(term.PaintedTable(rows, 0, func(row int, s string) string {
		if row == 0 || !v.colour {
			return s
		}
		return term.Paint(string(view.MarkColour(view.AgentMark(shown[row-1]))), s)
	}), "\n")
	lines, wave := []string{}, -1
	if v.runs {
		lines = append(lines, indent+painted[0])
	}
	painted = painted[1:]
	for i, a := range shown {
		if titled && a.Wave != wave {
			wave = a.Wave
			title := fmt.Sprintf("wave %d", wave)
			if wave == 0 {
				title = "in no wave"
			}
			lines = append(lines, title)
		}
		lines = append(lines, indent+painted[i])
	}
	if hidden.Total > 0 {
		lines = append(lines, "… "+view.Counts(hidden, 0))
	}
	return lines
}

// table returns the columns of a table of agents, without those that would be empty, and its rows,
// the first one with the headings.
func (v *picture) table(shown []*api.SessionAgent) (columns []string, rows [][]string) {
	columns = []string{"  AGENT", "NAME", "STATUS", "TOOK", "RUN", "NOTE"}
	rows = [][]string{slices.Clone(columns)}
	for _, a := range shown {
		said := term.Fit(note(a), noteColumns)
		if v.width > 0 && v.width < leastForNotes {
			said = ""
		}
		rows = append(rows, []string{view.AgentMark(a) + " " + a.ID, name(a), view.AgentStatus(a), v.took(a), term.SafeLine(a.Run), said})
	}
	remove := func(column string) {
		i := slices.Index(columns, column)
		columns = slices.Delete(columns, i, i+1)
		for n, row := range rows {
			rows[n] = slices.Delete(row, i, i+1)
		}
	}
	narrow := v.runs && v.width > 0 && v.width < leastForNames
	if narrow || !slices.ContainsFunc(shown, func(a *api.SessionAgent) bool { return name(a) != "" }) {
		remove("NAME")
	}
	if !v.runs || v.width > 0 && v.width < leastForRuns || !slices.ContainsFunc(shown, func(a *api.SessionAgent) bool { return a.Run != "" }) {
		remove("RUN")
	}
	if !v.runs {
		rows[0] = make([]string, len(columns)) // the headings take no room
	}
	return columns, rows
}

const (
	noteColumns   = 100 // the longest part of a note that is shown
	leastForNotes = 58  // the narrowest picture that shows notes
	leastForRuns  = 78  // and the runs of agents
	leastForNames = 98  // and beside them the names of agents
)

// name returns the name of an agent where it differs from the id.
func name(a *api.SessionAgent) string { return term.SafeLine(view.AgentName(a)) }

// note returns the note about an agent.
func note(a *api.SessionAgent) string { return term.SafeLine(view.AgentNote(a)) }

// took returns how long an agent has been working.
func (v *picture) took(a *api.SessionAgent) string {
	switch {
	case a.StartedAt == nil:
		return ""
	case a.CompletedAt != nil:
		return duration.Stopwatch(a.CompletedAt.Sub(*a.StartedAt))
	default:
		return duration.Stopwatch(v.now.Sub(*a.StartedAt))
	}
}
