package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
)

// aftermath is a session in a real record, with what its ends bring about.
type aftermath struct {
	t     *testing.T
	store *sqlite.Store
	s     *agency.Session
	alive bool // the run of 002 has not ended

	mu    sync.Mutex
	told  []string // as they arrive: ID, kind, number and text
	asked int      // how often a run was looked at
}

func newAftermath(t *testing.T) *aftermath {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "agency.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	start := time.Now().UTC().Truncate(time.Second)
	id := agency.NewSessionID(start, [4]byte{1, 2, 3, 4})
	m := &aftermath{t: t, store: store, s: &agency.Session{
		ID: id, Name: "auth", Source: "orchestrate", Status: agency.SessionRunning, Owner: agency.User, StartedAt: start, MaxParallel: 3,
		Repo:      agency.Repo{Fingerprint: "5c0f3f5e-0000-4000-8000-000000000001", Root: dir, CommonDir: filepath.Join(dir, ".git")},
		StatusDir: filepath.Join(dir, ".agency", "status"), Dir: filepath.Join(dir, ".agency", "status", "sessions", string(id)),
	}}
	agents := []agency.SessionAgent{}
	for i, agent := range []string{"001", "002", "003"} {
		agents = append(agents, agency.SessionAgent{Session: id, Position: i, ID: agent, Wave: 1, Status: agency.AgentQueued})
	}
	if err := store.CreateSession(t.Context(), m.s, agents, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return m
}

// change edits the session and one agent.
func (m *aftermath) change(agent string, edit func(s *agency.Session, a *agency.SessionAgent)) {
	m.t.Helper()
	_, err := m.store.ChangeSession(m.t.Context(), m.s.ID, []string{agent}, func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.News, error) {
		edit(s, agents[0])
		return []agency.News{agents[0].News()}, nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *aftermath) run(agent string, status agency.AgentStatus) {
	m.t.Helper()
	m.change(agent, func(_ *agency.Session, a *agency.SessionAgent) {
		a.Status, a.Run, a.StartedAt = agency.AgentRunning, agency.RunID("r_"+agent), new(time.Now())
	})
	m.change(agent, func(_ *agency.Session, a *agency.SessionAgent) {
		a.Status, a.Attempt, a.CompletedAt = status, 1, new(time.Now())
	})
}

func (m *aftermath) settle() {
	m.t.Helper()
	m.run("003", agency.AgentFailed)
	_, err := m.store.ChangeSession(m.t.Context(), m.s.ID, []string{"003"}, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.News, error) {
		if !s.Settle(time.Now()) {
			return nil, errors.New("not settled")
		}
		return []agency.News{s.News(agency.SessionSettled)}, nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// results makes what a daemon starts.
func (m *aftermath) results() *scheduler.Results {
	return scheduler.NewResults(scheduler.ResultDeps{
		Store: m.store, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Facts: func(_ context.Context, id agency.RunID) (agency.AgentResult, bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.asked++
			return agency.AgentResult{Commits: 1, Added: len(id)}, id != "r_002" || !m.alive, nil
		},
		Tell: func(_ context.Context, _ *agency.Session, kind agency.NoticeKind, n int, text string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if telling := fmt.Sprintf("%s-%d %s", kind, n, text); !slices.Contains(m.told, telling) { // one id, one message
				m.told = append(m.told, telling)
			}
			return nil
		},
	})
}

// until looks, as a daemon does, until a condition holds.
func (m *aftermath) until(what string, holds func() bool) {
	m.t.Helper()
	r := m.results()
	r.Start(m.t.Context())
	defer r.Stop()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("not %s within 20 seconds; told %q", what, m.told)
		}
	}
}

func (m *aftermath) tellings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

func (m *aftermath) reported() bool {
	s, err := m.store.Session(m.t.Context(), m.s.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return s.Reported
}

// What agents came to is found out once each, as soon as they are final, and again nothing by a later daemon; the end of the session
// is told and reported once all is known.
func TestResults(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	known := func(n int) func() bool {
		return func() bool {
			results, err := m.store.SessionResults(t.Context(), m.s.ID)
			return err == nil && len(results) == n
		}
	}
	m.alive = true
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.until("one result known", known(1))
	m.settle()
	m.until("two results known", known(2))
	if m.reported() || len(m.tellings()) > 0 {
		t.Errorf("reported before all is known: %q", m.told)
	}
	m.alive = false
	m.until("reported", m.reported)
	if diff := cmp.Diff([]string{"session.failed-0 2 complete, 1 failed; 003: "}, m.tellings()); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}
	report, err := os.ReadFile(filepath.Join(m.s.Dir, scheduler.ReportName))
	if err != nil || len(report) == 0 {
		t.Errorf("report: %q, %v", report, err)
	}
	asked := m.asked
	m.until("at rest", m.reported)
	if m.asked != asked {
		t.Errorf("a later daemon asked again: %d, then %d", asked, m.asked)
	}
	if events, err := m.store.Events(t.Context(), 0, "", 100); err != nil || events[len(events)-1].Type != agency.SessionReported {
		t.Errorf("events: %+v, %v", events, err)
	}
	if err := m.store.RemoveSession(t.Context(), m.s.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// A session that waits for somebody is told of once for each reason, whatever happens to daemons; one that was paused by hand is not.
func TestNeedIsToldOnce(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	pause := func(why string) {
		m.change("001", func(s *agency.Session, _ *agency.SessionAgent) { s.Paused = why })
	}
	said := func(n int) func() bool { return func() bool { return len(m.tellings()) == n } }
	quiet := func() bool {
		need, _, err := m.store.Told(t.Context(), m.s.ID)
		return err == nil && need == ""
	}
	pause("agent 002 failed")
	m.until("told", said(1))
	m.until("still told once", said(1))
	pause("")
	m.until("quiet", quiet)
	pause(agency.PausedByHand)
	m.until("quiet", quiet)
	pause("agent 002 failed")
	m.until("told again", said(2))
	pause("")
	m.change("003", func(_ *agency.Session, a *agency.SessionAgent) {
		a.Error = "waiting: the results of 001 and 002 conflict"
	})
	m.until("told of the conflict", said(3))
	m.change("002", func(_ *agency.Session, a *agency.SessionAgent) { a.Error = "waiting: more" })
	m.until("told of what is new", said(4))
	m.change("003", func(_ *agency.Session, a *agency.SessionAgent) { a.Error = "" })
	m.until("seen", func() bool {
		needs, _, err := m.store.Told(t.Context(), m.s.ID)
		return err == nil && needs == "002: waiting: more"
	})
	want := []string{"session.paused-1 agent 002 failed", "session.paused-2 agent 002 failed", "session.paused-3 003: waiting: the results of 001 and 002 conflict", "session.paused-4 002: waiting: more"}
	if diff := cmp.Diff(want, m.tellings()); diff != "" {
		t.Errorf("told (-want +got)\n%s", diff)
	}
}
