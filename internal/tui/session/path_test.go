package session

import (
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// agentOf returns an agent that comes after others: "api < schema" comes after schema. It took some
// minutes when that is not 0, and has ended unless it is at work.
func agentOf(plan string, minutes int, status agency.AgentStatus) api.SessionAgent {
	id, after, _ := strings.Cut(plan, " < ")
	a := api.SessionAgent{ID: id, After: strings.Fields(after), Status: status}
	if minutes > 0 {
		a.StartedAt = new(noon.Add(-time.Duration(minutes) * time.Minute))
		if status.Final() {
			a.CompletedAt = new(noon)
		}
	}
	return a
}

func TestCriticalPath(t *testing.T) {
	t.Parallel()
	const complete, running, queued = agency.AgentComplete, agency.AgentRunning, agency.AgentQueued
	for want, agents := range map[string][]api.SessionAgent{
		"":               {agentOf("one", 5, running), agentOf("two", 9, running)},
		"schema api e2e": {agentOf("schema", 5, complete), agentOf("docs", 60, complete), agentOf("api < schema", 2, running), agentOf("e2e < api docs", 0, queued)},
		"slow end":       {agentOf("quick", 1, complete), agentOf("slow", 9, complete), agentOf("end < quick slow", 1, complete)},
		"a b c":          {agentOf("c < b", 0, queued), agentOf("b < a", 0, queued), agentOf("a", 0, queued), agentOf("late < a", 0, queued)},
		"circle around":  {agentOf("around < circle", 0, queued), agentOf("circle < around gone", 0, queued)},
	} {
		got := []string{}
		for _, a := range criticalPath(agents, noon) {
			got = append(got, a.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", strings.Join(got, " "), want)
		}
	}
}

// Where there is no room for the whole path, what has ended is left out.
func TestCriticalPathIsCut(t *testing.T) {
	t.Parallel()
	p := &Page{desk: &page.Desk{Now: func() time.Time { return noon }}}
	before := ""
	for _, id := range []string{"schema", "storage", "api", "\x1b[2Jclient", "e2e", "release"} {
		status := agency.AgentQueued
		if len(p.shown.Agents) < 2 {
			status = agency.AgentComplete
		}
		p.shown.Agents = append(p.shown.Agents, agentOf(id+" < "+before, 0, status))
		before = id
	}
	for _, width := range []int{60, 80, 120} {
		text := p.path(width)[0].Fit(width).String()
		if !strings.Contains(text, "api") || !strings.Contains(text, "release") || strings.Contains(text, "\x1b[2J") {
			t.Errorf("%d columns: %q", width, text)
		}
		if cut := strings.Contains(text, "… → "); cut != (width < 80) {
			t.Errorf("%d columns: cut is %v: %q", width, cut, text)
		}
	}
}
