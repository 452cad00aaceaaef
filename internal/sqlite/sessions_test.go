package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/sqlite"
)

// newSession returns session number n; an external executor runs its agents.
func newSession(n int) *agency.Session {
	id := agency.NewSessionID(epoch, [4]byte{0, 0, byte(n >> 8), byte(n)})
	return &agency.Session{
		ID: id, Source: "orchestrate", SourceFile: "prompts/000.md", External: true,
		Repo:   agency.Repo{Fingerprint: "5c0f3f5e-0000-4000-8000-000000000001", Root: "/src/app", CommonDir: "/src/app/.git"},
		Status: agency.SessionRunning, StatusDir: "/src/app/.agency/status", Dir: "/src/app/.agency/status/sessions/" + string(id),
		Owner: agency.User, StartedAt: epoch,
	}
}

func newAgents(s *agency.Session, n int) []agency.SessionAgent {
	agents := make([]agency.SessionAgent, n)
	for i := range agents {
		id := fmt.Sprintf("%03d", i+1)
		agents[i] = agency.SessionAgent{Session: s.ID, Position: i, ID: id, Name: "task", Wave: 1, Status: agency.AgentQueued, LogFile: id + ".log"}
	}
	return agents
}

func createSession(tb testing.TB, s *sqlite.Store, session *agency.Session, agents []agency.SessionAgent) {
	tb.Helper()
	if err := s.CreateSession(context.Background(), session, agents, nil); err != nil {
		tb.Fatal(err)
	}
}

func to(status agency.AgentStatus) func(*agency.Session, *agency.SessionAgent, time.Time) error {
	return func(_ *agency.Session, a *agency.SessionAgent, _ time.Time) error {
		a.Status = status
		return nil
	}
}

// Everything about a session and its agents is read back as it was written, by every query.
func TestSessionRoundTrip(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session := newSession(1)
	session.Name, session.PlanPath, session.PlanHash, session.MaxParallel, session.Paused = "night", "/src/app/plan.yaml", "sha256:0", 7, "agent 002 failed"
	session.CancelAt, session.RetryOf, session.Config = new(epoch.Add(time.Hour)), newSession(9).ID, "/etc/agency.toml"
	session.CompletedAt, session.Extra = new(epoch.Add(2*time.Hour)), json.RawMessage(`{"x": [1]}`)
	agents := newAgents(session, 3)
	run := newRun(1).ID
	agents[1] = agency.SessionAgent{
		Session: session.ID, Position: 1, ID: "b", Name: "two", PromptPath: "p.md", Wave: 2, Status: agency.AgentFailed,
		StartedAt: new(epoch), CompletedAt: new(epoch.Add(time.Minute)), ExitCode: new(0), PID: new(77), LogFile: "l", Model: "m", Error: "e\n",
		Run: run, Tries: 1, Losses: 2, Attempt: 3, NotBefore: new(epoch), Extra: json.RawMessage(`{"y":null}`), Absent: []string{"name", "wave"},
	}
	if err := s.CreateSession(ctx, session, agents, []byte("plan")); err != nil {
		t.Fatal(err)
	}
	if want := (agency.Counts{Total: 3, Queued: 2, Failed: 1}); session.Counts != want {
		t.Errorf("counts %+v", session.Counts)
	}
	other := newSession(2)
	createSession(t, s, other, nil)

	got, err := s.Session(ctx, session.ID)
	if diff := cmp.Diff(session, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	read, err := s.SessionAgents(ctx, session.ID)
	if diff := cmp.Diff(agents, read); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if plan, err := s.SessionPlan(ctx, session.ID); err != nil || string(plan) != "plan" {
		t.Errorf("plan %q, %v", plan, err)
	}
	if plan, err := s.SessionPlan(ctx, other.ID); err != nil || plan != nil {
		t.Errorf("plan %q, %v", plan, err)
	}
	if in, agent, found, err := s.AgentOfRun(ctx, run); err != nil || !found || in != session.ID || agent != "b" {
		t.Errorf("agent of run: %v %v %v %v", in, agent, found, err)
	}
	want := map[agency.RunID]agency.Membership{run: {Session: session.ID, Name: session.Name, Agent: "b"}}
	for _, ids := range [][]agency.RunID{nil, {run, newRun(2).ID}} {
		if of, err := s.SessionsOfRuns(ctx, ids); err != nil || !maps.Equal(of, want) {
			t.Errorf("sessions of runs %v: %v %v", ids, of, err)
		}
	}
	for _, id := range []agency.RunID{"", newRun(2).ID} {
		if _, _, found, err := s.AgentOfRun(ctx, id); err != nil || found {
			t.Errorf("agent of run %q: %v %v", id, found, err)
		}
	}
	wantCode(t, s.CreateSession(ctx, newSession(1), nil, nil), agency.CodeNameExists)
}

// Sessions are found by the beginnings of their ids and names, by the end of an id, and by filters.
func TestFindSessions(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session, other := newSession(1), newSession(2)
	session.Name = "night"
	createSession(t, s, session, nil)
	createSession(t, s, other, nil)
	for ref, want := range map[string][]agency.SessionID{
		string(session.ID): {session.ID}, "night": {session.ID}, "nigh": {session.ID}, "20261122": {other.ID, session.ID},
		"2026": {other.ID, session.ID}, "nig": {}, "%%%%": {}, "": {},
	} {
		found, err := s.MatchSessions(ctx, ref, 0)
		if ids := idsOf(found); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%q matches %v, %v", ref, ids, err)
		}
	}
	for _, c := range []struct {
		filter agency.SessionFilter
		want   []agency.SessionID
	}{
		{agency.SessionFilter{}, []agency.SessionID{other.ID, session.ID}},
		{agency.SessionFilter{Live: true, Repo: session.Repo.Fingerprint, Limit: 1}, []agency.SessionID{other.ID}},
		{agency.SessionFilter{Repo: "none"}, []agency.SessionID{}},
	} {
		found, err := s.Sessions(ctx, c.filter)
		if ids := idsOf(found); err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%+v gives %v, %v", c.filter, ids, err)
		}
	}
	night := newSession(4)
	night.Name = "nighté" // sorts after every ASCII name
	createSession(t, s, night, nil)
	if found, err := s.MatchSessions(ctx, "nigh", 0); err != nil || !slices.Equal(idsOf(found), []agency.SessionID{night.ID, session.ID}) {
		t.Errorf("matches %v, %v", idsOf(found), err)
	}
	tail := string(night.ID[len(night.ID)-8:])
	if found, err := s.MatchSessions(ctx, tail, 0); err != nil || !slices.Equal(idsOf(found), []agency.SessionID{night.ID}) {
		t.Errorf("%q matches %v, %v", tail, idsOf(found), err)
	}
	for _, err := range []error{
		second(s.Session(ctx, newSession(3).ID)), second(s.SessionPlan(ctx, newSession(3).ID)), s.RemoveSession(ctx, newSession(3).ID),
		second(s.ChangeSession(ctx, newSession(3).ID, nil, nil)),
	} {
		wantCode(t, err, agency.CodeSessionNotFound)
	}
}

func second[T any](_ T, err error) error { return err }

func idsOf(sessions []agency.Session) []agency.SessionID {
	ids := make([]agency.SessionID, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].ID
	}
	return ids
}

// A change that is refused, or that changes nothing, leaves the session and its events as they
// were.
func TestChangeSession(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session := newSession(1)
	session.External = false
	createSession(t, s, session, newAgents(session, 3))
	before, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type edit = func(*agency.Session, []*agency.SessionAgent) ([]agency.EventDraft, error)
	refused := agency.Errorf(agency.CodeUsage, "no").WithHint("do not")
	for name, c := range map[string]struct {
		agents []string
		edit   edit
		code   agency.Code
	}{
		"refused by change": {nil, func(s *agency.Session, a []*agency.SessionAgent) ([]agency.EventDraft, error) {
			s.Name, a[0].Status = "x", agency.AgentRunning
			return nil, refused
		}, agency.CodeUsage},
		"no transition": {[]string{"001", "002"}, func(_ *agency.Session, a []*agency.SessionAgent) ([]agency.EventDraft, error) {
			a[0].Status, a[1].Status = agency.AgentRunning, agency.AgentComplete
			return nil, nil
		}, agency.CodeInvalidState},
		"unknown agent": {[]string{"001", "004"}, nil, agency.CodeAgentNotFound},
	} {
		_, err := s.ChangeSession(ctx, session.ID, c.agents, c.edit)
		if !agency.IsCode(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	same, err := s.ChangeSession(ctx, session.ID, nil, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		s.ID, s.Seq, s.Counts = "x", 99, agency.Counts{Failed: 4} // fields that a change cannot set
		return nil, nil
	})
	if diff := cmp.Diff(session, same); err != nil || diff != "" {
		t.Errorf("nothing was changed: %v\n%s", err, diff)
	}
	if now, err := s.LastSeq(ctx); err != nil || now != before {
		t.Fatalf("%d events instead of %d, %v", now, before, err)
	}
}

// A change updates the counts, is an event, and is listed among the changes since a time.
func TestSessionSince(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session := newSession(1)
	session.External = false
	createSession(t, s, session, newAgents(session, 3))
	run := newRun(1).ID
	changed, err := s.ChangeSession(ctx, session.ID, []string{"002"}, func(_ *agency.Session, a []*agency.SessionAgent) ([]agency.EventDraft, error) {
		a[0].Status, a[0].Run, a[0].StartedAt = agency.AgentRunning, run, new(epoch)
		return []agency.EventDraft{a[0].EventDraft()}, nil
	})
	if want := (agency.Counts{Total: 3, Queued: 2, Running: 1}); err != nil || changed.Counts != want || !changed.UpdatedAt.After(session.UpdatedAt) {
		t.Fatalf("%+v, %v", changed, err)
	}
	event := lastEvent(t, s)
	if event.Type != agency.SessionAgentEvent || string(event.Data) != `{"session":"`+string(session.ID)+`","agent":"002","status":"running","run":"`+string(run)+`"}` {
		t.Errorf("event %s %s", event.Type, event.Data)
	}
	now, agents, err := s.SessionSince(ctx, session.ID, session.UpdatedAt)
	if err != nil || len(agents) != 1 || agents[0].ID != "002" || !now.UpdatedAt.Equal(changed.UpdatedAt) {
		t.Errorf("%+v %+v %v", now, agents, err)
	}
	if _, agents, err = s.SessionSince(ctx, session.ID, now.UpdatedAt); err != nil || len(agents) != 0 {
		t.Errorf("%v %v", agents, err)
	}
	if _, agents, err = s.SessionSince(ctx, session.ID, time.Time{}); err != nil || len(agents) != 3 {
		t.Errorf("%v %v", agents, err)
	}
}

// A settled session does not change, leaves the list of unfiled ones when its file is written, and
// only then can be removed; its events stay.
func TestSettledSession(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session, other := newSession(1), newSession(2)
	createSession(t, s, session, newAgents(session, 2))
	createSession(t, s, other, newAgents(other, 1))
	wantCode(t, s.RemoveSession(ctx, session.ID), agency.CodeInvalidState)
	report := func(agent string, status agency.AgentStatus) error {
		return s.UpdateAgents(ctx, []agency.AgentReport{{Session: session.ID, Agent: agent, Apply: to(status)}})[0]
	}
	for _, err := range []error{report("001", agency.AgentRunning), report("001", agency.AgentFailed), s.MarkFilesWritten(ctx, session.ID)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if unfiled, err := s.SessionsWithStaleFiles(ctx); err != nil || len(unfiled) != 2 {
		t.Errorf("a running session was filed: %v, %v", unfiled, err)
	}
	if err := report("002", agency.AgentCancelled); err != nil {
		t.Fatal(err)
	}
	settled, err := s.Session(ctx, session.ID)
	if err != nil || settled.Status != agency.SessionFailed || settled.CompletedAt == nil {
		t.Fatalf("%+v, %v", settled, err)
	}
	if e := lastEvent(t, s); e.Type != agency.SessionSettled {
		t.Errorf("the last event is %s", e.Type)
	}
	wantCode(t, report("001", agency.AgentRunning), agency.CodeInvalidState)
	_, err = s.ChangeSession(ctx, session.ID, nil, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		s.Paused = "x"
		return nil, nil
	})
	wantCode(t, err, agency.CodeInvalidState)
	if err := s.MarkFilesWritten(ctx, session.ID); err != nil {
		t.Fatal(err)
	}
	if unfiled, err := s.SessionsWithStaleFiles(ctx); err != nil || len(unfiled) != 1 || unfiled[0].ID != other.ID {
		t.Errorf("unfiled %v, %v", unfiled, err)
	}
	before, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveSession(ctx, session.ID); err != nil {
		t.Fatal(err)
	}
	if events, err := s.Events(ctx, 0, "", 0); err != nil || int64(len(events)) != before+1 || events[before].Type != agency.SessionRemoved {
		t.Errorf("events %v, %v", events, err)
	}
	if agents, err := s.SessionAgents(ctx, session.ID); err != nil || len(agents) != 0 {
		t.Errorf("agents %v, %v", agents, err)
	}
}

// After sessions were removed, the record still has until when the newest of them led a run.
func TestLedUntil(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	for n, settled := range []time.Time{epoch.Add(time.Hour), epoch} {
		session := newSession(n + 1)
		session.Status, session.CompletedAt = agency.SessionComplete, &settled
		agents := newAgents(session, 2)
		agents[0].Run = "r_1"
		createSession(t, s, session, agents)
		if err := s.RemoveSession(ctx, session.ID); err != nil {
			t.Fatal(err)
		}
	}
	for run, want := range map[agency.RunID]time.Time{"r_1": epoch.Add(time.Hour), "r_2": {}, "": {}} {
		if until, err := s.LedUntil(ctx, run); err != nil || !until.Equal(want) {
			t.Errorf("%q was led until %v, want %v: %v", run, until, want, err)
		}
	}
}

// A removed session is listed until its files are gone; no later session has its sequence number.
func TestForgetSession(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	session, other := newSession(1), newSession(2)
	session.Status, session.CompletedAt = agency.SessionComplete, new(epoch)
	createSession(t, s, session, nil)
	createSession(t, s, other, nil)
	for _, err := range []error{s.MarkFilesWritten(ctx, session.ID), s.RemoveSession(ctx, session.ID)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []agency.Session{{ID: session.ID, Repo: agency.Repo{Root: session.Repo.Root}, StatusDir: session.StatusDir, Dir: session.Dir}}
	if removed, err := s.RemovedSessions(ctx); err != nil || cmp.Diff(want, removed) != "" {
		t.Errorf("removed %+v, %v", removed, err)
	}
	for range 2 {
		if err := s.ForgetSession(ctx, session.ID); err != nil {
			t.Error(err)
		}
	}
	if removed, err := s.RemovedSessions(ctx); err != nil || len(removed) > 0 {
		t.Errorf("removed %+v, %v", removed, err)
	}
	third := newSession(3)
	createSession(t, s, third, nil)
	if third.Seq != other.Seq+1 {
		t.Errorf("sequence number %d after %d", third.Seq, other.Seq)
	}
}

// Concurrent reports share transactions: each caller gets the answers to its own reports, a refused
// report affects no other, and each accepted one is stored, with one event.
func TestUpdateAgentsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	const callers, each = 16, 20
	session := newSession(1)
	createSession(t, s, session, newAgents(session, callers+1))
	before, err := s.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range callers {
		agent := fmt.Sprintf("%03d", w+1)
		wg.Go(func() {
			for k := range each {
				setPID := func(_ *agency.Session, a *agency.SessionAgent, _ time.Time) error {
					if k > 0 && (a.PID == nil || *a.PID != k) {
						return fmt.Errorf("the report before was lost: %v", a.PID)
					}
					a.Status, a.PID = agency.AgentRunning, new(k+1)
					return nil
				}
				errs := s.UpdateAgents(ctx, []agency.AgentReport{
					{Session: session.ID, Agent: "none", Apply: setPID},
					{Session: session.ID, Agent: agent, Apply: setPID},
					{Session: newSession(7).ID, Agent: agent, Apply: setPID},
					{Session: session.ID, Agent: agent, Apply: to(agency.AgentQueued)},
				})
				if !agency.IsCode(errs[0], agency.CodeAgentNotFound) || errs[1] != nil || !agency.IsCode(errs[2], agency.CodeSessionNotFound) ||
					!agency.IsCode(errs[3], agency.CodeInvalidState) {
					t.Errorf("errors %v", errs)
				}
			}
		})
	}
	wg.Wait()
	agents, err := s.SessionAgents(ctx, session.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range callers {
		if agents[i].PID == nil || *agents[i].PID != each {
			t.Errorf("agent %s: %v", agents[i].ID, agents[i].PID)
		}
	}
	got, err := s.Session(ctx, session.ID)
	if want := (agency.Counts{Total: callers + 1, Queued: 1, Running: callers}); err != nil || got.Counts != want {
		t.Errorf("counts %+v, %v", got.Counts, err)
	}
	if now, err := s.LastSeq(ctx); err != nil || now != before+callers*each {
		t.Errorf("%d events, %v", now-before, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if errs := s.UpdateAgents(ended, []agency.AgentReport{{Session: session.ID, Agent: "017", Apply: to(agency.AgentRunning)}}); errs[0] == nil {
		t.Error("the report of a caller that had gone was taken")
	}
}

// For any reports, an agent makes only allowed transitions, the stored counts are right, and the
// session settles with its last agent.
func TestReportsFollowTheTransitions(t *testing.T) {
	t.Parallel()
	ctx, s, n := context.Background(), setup(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		session := newSession(n)
		size := rapid.IntRange(1, 4).Draw(t, "agents")
		agents := newAgents(session, size)
		if err := s.CreateSession(ctx, session, agents, nil); err != nil {
			t.Fatal(err)
		}
		status := slices.Repeat([]agency.AgentStatus{agency.AgentQueued}, size)
		settled := false
		for range rapid.IntRange(1, 25).Draw(t, "reports") {
			i := rapid.IntRange(0, size-1).Draw(t, "agent")
			next := rapid.SampledFrom(agency.AgentStatuses()).Draw(t, "status")
			err := s.UpdateAgents(ctx, []agency.AgentReport{{Session: session.ID, Agent: agents[i].ID, Apply: to(next)}})[0]
			may := !settled && (status[i] == next || agency.NextAgent(status[i], next) == nil)
			if may != (err == nil) {
				t.Fatalf("%s -> %s: %v", status[i], next, err)
			}
			if may {
				status[i] = next
			}
			var counts agency.Counts
			for _, st := range status {
				counts.Add(st, 1)
			}
			settled = counts.Settled()
			got, err := s.Session(ctx, session.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.Counts != counts || got.Status.Final() != settled || settled && (got.Status == agency.SessionFailed) != (counts.Failed > 0) {
				t.Fatalf("%+v, want %+v", got, counts)
			}
		}
	})
}

// Frequent queries use an index, however many sessions there are.
func TestSessionQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, query := range []string{
		`SELECT 1 FROM session_agents WHERE run = 'r' AND run <> ''`,
		`SELECT 1 FROM sessions WHERE filed = 0 ORDER BY seq`,
		`SELECT 1 FROM sessions WHERE status = 'running' ORDER BY seq DESC`,
		`SELECT 1 FROM session_agents WHERE session = 1 AND id = '001'`,
	} {
		var id, parent, unused int
		var detail string
		if err := s.Readers().QueryRow(`EXPLAIN QUERY PLAN `+query).Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(detail, "INDEX") && !strings.Contains(detail, "PRIMARY KEY") {
			t.Errorf("%s: %s", query, detail)
		}
	}
}

func BenchmarkUpdateAgents(b *testing.B) {
	for _, agents := range []int{5, 100, 1000} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			s, session := setup(b), newSession(1)
			createSession(b, s, session, newAgents(session, agents))
			reports := make([]agency.AgentReport, 64)
			for b.Loop() {
				for i := range reports {
					reports[i] = agency.AgentReport{Session: session.ID, Agent: "003", Apply: to(agency.AgentRunning)}
				}
				if err := s.UpdateAgents(context.Background(), reports)[63]; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(reports))/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
