package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/duration"
)

// picture is a session as people see it at one moment.
type picture struct {
	*api.ShowSessionResponse
	now    time.Time
	width  int // columns; 0 is as many as it takes
	colour bool
}

// lines are the whole picture: the header, the agents by wave, and what follows from it, in at most so many lines; 0 is as
// many as it takes.
func (v *picture) lines(most int) []string {
	head, foot := v.header(), v.footer()
	room := 0
	if most > 0 {
		room = max(most-len(head)-len(foot), 1)
	}
	lines := slices.Concat(head, v.agents(room), foot)
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
	lines := []string{strings.TrimSpace(term.Fit(term.SafeLine(s.Name), 40) + "  " + string(s.ID)), v.standing()}
	if s.Paused != "" && !s.Status.Final() {
		lines = append(lines, "paused: "+term.SafeLine(s.Paused))
	}
	return lines
}

// standing is how the session stands, in a line.
func (v *picture) standing() string {
	text := fmt.Sprintf("%s %s %s", sessionMark(&v.Session), sessionWord(&v.Session), duration.Stopwatch(v.elapsed()))
	t, waiting := v.Session.Summary, 0
	for i := range v.Agents {
		if a := &v.Agents[i]; a.NeedsPerson {
			waiting++
			t.Add(a.Status, -1)
		}
	}
	if tally := tallyWords(t, waiting); tally != "" {
		text += "  " + tally
	}
	return text
}

func (v *picture) elapsed() time.Duration {
	if v.Session.CompletedAt != nil {
		return v.Session.CompletedAt.Sub(v.Session.StartedAt)
	}
	return v.now.Sub(v.Session.StartedAt)
}

// footer says what a person can do, or what it all came to.
func (v *picture) footer() []string {
	s := &v.Session
	switch {
	case s.Status.Final() && s.ReportPath != "":
		return []string{"report: " + term.SafeLine(s.ReportPath)}
	case s.Status.Final():
		return []string{"results: agency session show " + s.Ref()}
	case s.Paused != "":
		return []string{"go on: agency session resume " + s.Ref()}
	}
	for i := range v.Agents {
		switch a := &v.Agents[i]; {
		case !a.NeedsPerson:
		case a.Run != "":
			return []string{fmt.Sprintf("%s waits for you: agency attach %s", a.ID, term.SafeLine(a.Run))}
		default:
			return []string{fmt.Sprintf("%s waits for you; then: agency session resume %s", a.ID, s.Ref())}
		}
	}
	return nil
}

// agents are the rows of the agents below the titles of their waves. Of more than fit, those that somebody must look at come
// first, and a line counts the others.
func (v *picture) agents(room int) []string {
	shown, hidden := v.choose(room)
	titled := slices.ContainsFunc(v.Agents, func(a api.SessionAgent) bool { return a.Wave != v.Agents[0].Wave })
	rows := [][]string{make([]string, 5)} // the header, which is left out
	for _, a := range shown {
		note := term.Fit(agentNote(a), noteColumns)
		if v.width > 0 && v.width < leastForNotes {
			note = ""
		}
		rows = append(rows, []string{agentMark(a) + " " + a.ID, agentName(a), agentWord(a), v.took(a), note})
	}
	cuts := []term.Cut{{1, 24}, {4, 24}, {1, 16}, {0, 18}, {4, 12}, {1, 8}, {2, 11}, {0, 10}, {4, 0}}
	if !slices.ContainsFunc(shown, func(a *api.SessionAgent) bool { return agentName(a) != "" }) {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 1, 2)
		}
		cuts = []term.Cut{{3, 24}, {0, 18}, {3, 12}, {1, 11}, {0, 10}, {3, 0}}
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
		return command.MarkColour(agentMark(shown[row-1])) + s + "\x1b[0m"
	}), "\n")[1:]
	lines, wave := []string{}, -1
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
		lines = append(lines, "… "+tallyWords(hidden, 0))
	}
	return lines
}

const (
	noteColumns   = 100 // the most of a note that is shown
	leastForNotes = 60  // columns of a terminal that notes are shown on
)

// choose finds the agents for which there is room, in the order of their waves, and counts the others.
func (v *picture) choose(room int) (shown []*api.SessionAgent, hidden agency.Tally) {
	shown = make([]*api.SessionAgent, len(v.Agents))
	waves, place := map[int]bool{}, map[*api.SessionAgent]int{}
	for i := range v.Agents {
		shown[i] = &v.Agents[i]
		place[shown[i]] = i
		waves[shown[i].Wave] = true
	}
	titles := len(waves)
	if titles == 1 {
		titles = 0
	}
	if room > 0 && len(shown)+titles > room {
		slices.SortStableFunc(shown, func(a, b *api.SessionAgent) int { return cmp.Compare(urgency(a), urgency(b)) })
		many, used := titles > 0, 1 // the line that counts the others
		clear(waves)
		for n, a := range shown {
			cost := 1
			if many && !waves[a.Wave] {
				cost = 2
			}
			if used+cost > room {
				for _, other := range shown[n:] {
					hidden.Add(other.Status, 1)
				}
				shown = shown[:n]
				break
			}
			used, waves[a.Wave] = used+cost, true
		}
	}
	slices.SortFunc(shown, func(a, b *api.SessionAgent) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(place[a], place[b]))
	})
	return shown, hidden
}

// urgency orders agents by how much somebody wants to see them.
func urgency(a *api.SessionAgent) int {
	switch {
	case a.NeedsPerson:
		return 0
	case a.Status == agency.AgentFailed:
		return 1
	case a.Status == agency.AgentRunning:
		return 2
	case a.Status == agency.AgentQueued:
		return 3
	default:
		return 4
	}
}

func agentMark(a *api.SessionAgent) string {
	switch {
	case a.NeedsPerson:
		return "◐"
	case betweenAttempts(a):
		return "○"
	case a.Status == agency.AgentRunning:
		return "●"
	case a.Status == agency.AgentComplete:
		return "✓"
	case a.Status == agency.AgentFailed:
		return "✕"
	case a.Status == agency.AgentCancelled:
		return "-"
	default:
		return "○"
	}
}

func sessionMark(s *api.Session) string {
	switch {
	case s.Status == agency.SessionComplete:
		return "✓"
	case s.Status == agency.SessionFailed:
		return "✕"
	case s.Status == agency.SessionCancelled:
		return "-"
	case s.NeedsPerson():
		return "◐"
	default:
		return "●"
	}
}

// sessionWord is the status of a session, or what is being done to it.
func sessionWord(s *api.Session) string {
	if s.Cancelling {
		return "being cancelled"
	}
	return string(s.Status)
}

// agentName is the name of an agent where it says more than the id.
func agentName(a *api.SessionAgent) string {
	if name := term.SafeLine(a.Name); name != a.ID {
		return name
	}
	return ""
}

// agentWord is the status of an agent, or what its run waits for.
func agentWord(a *api.SessionAgent) string {
	if a.Status == agency.AgentRunning && a.NeedsPerson {
		return string(a.Label)
	}
	if betweenAttempts(a) {
		return "waiting"
	}
	return string(a.Status)
}

// betweenAttempts says that an agent has no attempt and waits for the next one.
func betweenAttempts(a *api.SessionAgent) bool {
	return a.Status == agency.AgentRunning && (a.NotBefore != nil || a.Held != "") && !a.NeedsPerson
}

// agentNote is what there is to say of an agent: why it is not well, what it says, or what it waits for.
func agentNote(a *api.SessionAgent) string {
	switch {
	case betweenAttempts(a):
		until := ": " + term.SafeLine(a.Held)
		if a.Held == "" {
			until = " at " + a.NotBefore.Local().Format("15:04:05")
		}
		return fmt.Sprintf("attempt %d%s (%s)", a.Attempts+1, until, term.SafeLine(strings.TrimPrefix(a.Error, agency.WaitingWord)))
	case a.Error != "":
		return term.SafeLine(a.Error)
	case a.Note != "" && (a.Status != agency.AgentComplete || a.Label == agency.ReadyForReview): // what it said last need not be true at its end
		return term.SafeLine(a.Note)
	default:
		return term.SafeLine(a.Held)
	}
}

// took is how long an agent has been at it.
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

// tallyWords counts agents in words, those that somebody must look at first. waiting are those that need a person and are not
// counted otherwise.
func tallyWords(t agency.Tally, waiting int) string {
	words := []string{}
	for _, part := range []struct {
		n    int
		word string
	}{
		{waiting, "needs you"}, {t.Failed, "failed"}, {t.Running, "running"}, {t.Queued, "queued"}, {t.Complete, "done"}, {t.Cancelled, "cancelled"},
	} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return strings.Join(words, ", ")
}
