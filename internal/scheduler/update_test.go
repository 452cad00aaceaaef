package scheduler_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/scheduler"
	"agency/internal/sessionfile"
	"agency/internal/sqlite"
)

// outsiders returns a scheduler for external executors on a record, with a clock that the test
// moves.
func outsiders(t *testing.T) (*scheduler.Scheduler, *sqlite.Store, *time.Time) {
	t.Helper()
	now := new(time.Date(2026, 2, 1, 14, 30, 22, 600_000_000, time.UTC))
	clock := func() time.Time { return *now }
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "agency.db"), clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	drawn := byte(0)
	return scheduler.New(scheduler.Deps{Store: store, Now: clock, Random: func(b []byte) {
		drawn++
		clear(b)
		b[0] = drawn / 2 // each number is drawn twice, so that ids clash
		if len(b) > 1 {
			b[1] = byte(now.Unix())
		}
	}}, scheduler.Settings{}), store, now
}

func external(agents ...string) scheduler.External {
	o := scheduler.External{
		Repo:      agency.Repo{Fingerprint: "5c0f3f5e-0000-4000-8000-000000000001", Root: "/src/app", CommonDir: "/src/app/.git"},
		StatusDir: ".agency/status", Source: "orchestrate", Owner: agency.User,
	}
	for _, a := range agents {
		o.Agents = append(o.Agents, json.RawMessage(a))
	}
	return o
}

// Reports mean what they meant in the file protocol: times in whole seconds, a pid while the agent
// runs, an exit code and an error at its end.
func TestReportsMeanWhatTheyMeant(t *testing.T) {
	t.Parallel()
	s, store, now := outsiders(t)
	session, err := s.CreateExternal(t.Context(), external(`{"id": "001", "log_file": "/etc/passwd"}`, `{"id": "002"}`, `{"id": "003"}`, `{"id": "004"}`))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	report := func(u ...scheduler.Update) {
		t.Helper()
		for i, err := range s.Update(t.Context(), session.ID, u) {
			if err != nil {
				t.Fatalf("%+v: %v", u[i], err)
			}
		}
	}
	report(scheduler.Update{Agent: "001", Action: "start", PID: new(7)}, scheduler.Update{Agent: "002", Action: "start"}, scheduler.Update{Agent: "003", Action: "start", PID: new(9)})
	*now = now.Add(3500 * time.Millisecond)
	end := start.Add(4 * time.Second) // 22.6 + 3.5 is 26.1; the file gets 22 and 26
	report(
		scheduler.Update{Agent: "001", Action: "start", PID: new(8)}, // another process of the same agent
		scheduler.Update{Agent: "001", Action: "complete"}, scheduler.Update{Agent: "002", Action: "fail", Error: "no"},
		scheduler.Update{Agent: "003", Action: "fail", Error: "why", ExitCode: new(-9)}, scheduler.Update{Agent: "004", Action: "cancel"},
		scheduler.Update{Action: "complete"},
	)
	agents, err := store.SessionAgents(t.Context(), session.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []agency.SessionAgent{
		{Status: agency.AgentComplete, StartedAt: &start, CompletedAt: &end, ExitCode: new(0)},
		{Status: agency.AgentFailed, StartedAt: &start, CompletedAt: &end, ExitCode: new(1), Error: "no"},
		{Status: agency.AgentFailed, StartedAt: &start, CompletedAt: &end, ExitCode: new(-9), Error: "why"},
		{Status: agency.AgentCancelled, CompletedAt: &end},
	} {
		a := agents[i]
		want.Session, want.Position, want.ID, want.LogFile, want.Absent = a.Session, i, a.ID, session.LogFile(a.ID), a.Absent
		if got, is := string(sessionfile.EncodeAgent(sessionfile.AgentObject(&a))), string(sessionfile.EncodeAgent(sessionfile.AgentObject(&want))); got != is {
			t.Errorf("got %s\nwant %s", got, is)
		}
	}
	if got := sessionfile.AgentObject(&agents[0]).Get("duration_seconds"); string(got) != "4" {
		t.Errorf("it took %s s", got)
	}
	if got, err := store.Session(t.Context(), session.ID); err != nil || got.Status != agency.SessionFailed || got.CompletedAt == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// life is what a session and its agents have become, by the reports that were accepted.
type life struct {
	agents []agency.AgentStatus
	whole  agency.SessionStatus
}

// report makes a report on an agent, or on the session if who is beyond the agents. It returns
// whether the report is possible.
func (l *life) report(who int, action string) bool {
	becomes := map[string]agency.AgentStatus{"start": agency.AgentRunning, "complete": agency.AgentComplete, "fail": agency.AgentFailed, "cancel": agency.AgentCancelled}
	if who < len(l.agents) {
		next := becomes[action]
		may := !l.whole.Final() && (agency.NextAgent(l.agents[who], next) == nil || l.agents[who] == agency.AgentRunning && action == "start")
		if may {
			l.agents[who] = next
		}
		return may
	}
	switch action {
	case "complete":
		return l.whole == agency.SessionComplete || l.whole == agency.SessionFailed
	case "cancel":
		if l.whole != agency.SessionRunning && l.whole != agency.SessionCancelled {
			return false
		}
		for i := range l.agents {
			if !l.agents[i].Final() {
				l.agents[i] = agency.AgentCancelled
			}
		}
		l.whole = agency.SessionCancelled
		return true
	}
	return false
}

// settle ends the session when its agents have ended, and returns their counts.
func (l *life) settle() agency.Counts {
	counts := agency.Counts{}
	for _, status := range l.agents {
		counts.Add(status, 1)
	}
	if !l.whole.Final() && counts.Settled() {
		l.whole = agency.SessionComplete
		if counts.Failed > 0 {
			l.whole = agency.SessionFailed
		}
	}
	return counts
}

// Whatever is reported in any order, only possible transitions are accepted, and nothing else
// changes anything.
func TestReportsFollowALife(t *testing.T) {
	t.Parallel()
	s, store, now := outsiders(t)
	rapid.Check(t, func(t *rapid.T) {
		*now = now.Add(time.Second)
		size := rapid.IntRange(1, 4).Draw(t, "agents")
		var agents []string
		for i := range size {
			agents = append(agents, fmt.Sprintf(`{"id": "%03d"}`, i+1))
		}
		session, err := s.CreateExternal(t.Context(), external(agents...))
		if err != nil {
			t.Fatal(err)
		}
		life := life{slices.Repeat([]agency.AgentStatus{agency.AgentQueued}, size), agency.SessionRunning}
		for range rapid.IntRange(1, 20).Draw(t, "reports") {
			who := rapid.IntRange(0, size).Draw(t, "who")
			u := scheduler.Update{Action: rapid.SampledFrom([]string{"start", "complete", "fail", "cancel"}).Draw(t, "action")}
			if who < size {
				u.Agent = fmt.Sprintf("%03d", who+1)
			}
			may := life.report(who, u.Action)
			counts := life.settle()
			if err := s.Update(t.Context(), session.ID, []scheduler.Update{u})[0]; (err == nil) != may {
				t.Fatalf("%+v: %v", u, err)
			}
			got, err := store.Session(t.Context(), session.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != life.whole || got.Counts != counts || (got.CompletedAt != nil) != life.whole.Final() {
				t.Fatalf("%s %+v, want %s %+v", got.Status, got.Counts, life.whole, counts)
			}
		}
	})
}

// An impossible session is refused, and so are reports on agents that agency runs.
func TestExternalRefusals(t *testing.T) {
	t.Parallel()
	s, store, _ := outsiders(t)
	for name, o := range map[string]scheduler.External{
		"no agents":      external(),
		"no object":      external(`7`),
		"no id":          external(`{}`),
		"twice the same": external(`{"id": "a"}`, `{"id": "A"}`),
		"a wave without": func() scheduler.External {
			o := external()
			o.File = json.RawMessage(`{"agents": [{"id": "a"}], "waves": [{"wave": 1, "agents": ["b"]}]}`)
			return o
		}(),
		"agents beside a file": func() scheduler.External {
			o := external(`{"id": "a"}`)
			o.File = json.RawMessage(`{"agents": []}`)
			return o
		}(),
		"a source of its file": func() scheduler.External {
			o := external()
			o.Source, o.File = "", json.RawMessage(`{"source": "night\u001bly", "agents": [{"id": "a"}]}`)
			return o
		}(),
		"no such source":  func() scheduler.External { o := external(`{"id": "a"}`); o.Source = "x"; return o }(),
		"a name of lines": func() scheduler.External { o := external(`{"id": "a"}`); o.Name = "a\nb"; return o }(),
	} {
		if _, err := s.CreateExternal(t.Context(), o); err == nil || agency.AsError(err).Code == agency.CodeInternal || agency.AsError(err).Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	ours := &agency.Session{
		ID: agency.NewSessionID(time.Now(), [4]byte{9}), Source: "orchestrate", Status: agency.SessionRunning, Owner: agency.User,
		Repo: external().Repo, StartedAt: time.Now(),
	}
	if err := store.CreateSession(t.Context(), ours, []agency.SessionAgent{{Session: ours.ID, ID: "001", Status: agency.AgentRunning}}, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	for _, u := range []scheduler.Update{{Agent: "001", Action: "complete"}, {Action: "complete"}, {Action: "cancel"}} {
		if err := s.Update(t.Context(), ours.ID, []scheduler.Update{u})[0]; !agency.IsCode(err, agency.CodeInvalidState) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	for _, u := range []scheduler.Update{{Action: "start"}, {Agent: "001", Action: "sing"}} {
		session, err := s.CreateExternal(t.Context(), external(`{"id": "001"}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), session.ID, []scheduler.Update{u})[0]; !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%+v: %v", u, err)
		}
	}
}
