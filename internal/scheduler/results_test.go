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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
)

// aftermath is a session in a real record, with everything that follows its end.
type aftermath struct {
	t        *testing.T
	store    *busyStore
	s        *agency.Session
	alive    atomic.Bool   // the run of 002 has not ended
	failures atomic.Int32  // of git, still to come
	hours    atomic.Int64  // that the clock is ahead
	stuck    chan struct{} // git answers about 001 only once it is closed; nil answers at once
	// meanwhile is called while git is asked about 001.
	meanwhile func()

	mu    sync.Mutex
	sent  []string // messages in order: kind and text
	asked int      // number of questions to git
}

// busyStore is a record that other writers change all the time.
type busyStore struct {
	*sqlite.Store
	looks, reads, checks atomic.Int64
	found                func() // called after the record of a session was found
}

func (s *busyStore) SessionsChanged() <-chan struct{} {
	always := make(chan struct{})
	close(always)
	return always
}

func (s *busyStore) UnreportedSessions(ctx context.Context) ([]agency.Session, error) {
	s.looks.Add(1)
	return s.Store.UnreportedSessions(ctx)
}

func (s *busyStore) SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error) {
	s.reads.Add(1)
	return s.Store.SessionSince(ctx, id, since)
}

func (s *busyStore) Session(ctx context.Context, id agency.SessionID) (*agency.Session, error) {
	defer s.checks.Add(1)
	session, err := s.Store.Session(ctx, id)
	if err == nil && s.found != nil {
		s.found()
	}
	return session, err
}

func newAftermath(t *testing.T) *aftermath {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "agency.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return sessionIn(t, &busyStore{Store: store}, dir, 1)
}

// sessionIn makes another session in a record.
func sessionIn(t *testing.T, store *busyStore, dir string, n byte) *aftermath {
	t.Helper()
	start := time.Now().UTC().Truncate(time.Second)
	id := agency.NewSessionID(start, [4]byte{n, 2, 3, 4})
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
	_, err := m.store.ChangeSession(m.t.Context(), m.s.ID, []string{agent}, func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		edit(s, agents[0])
		return []agency.EventDraft{agents[0].EventDraft()}, nil
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

// settle ends the last agent, and the session.
func (m *aftermath) settle(status agency.AgentStatus) {
	m.t.Helper()
	m.run("003", status)
	_, err := m.store.ChangeSession(m.t.Context(), m.s.ID, []string{"003"}, func(s *agency.Session, _ []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if !s.Settle(time.Now()) {
			return nil, errors.New("not settled")
		}
		return []agency.EventDraft{s.EventDraft(agency.SessionSettled)}, nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// results returns a new Results, as a daemon starts it.
func (m *aftermath) results() *scheduler.Results {
	return scheduler.NewResults(scheduler.ResultDeps{
		Store: m.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(time.Duration(m.hours.Load()) * time.Hour) },
		Ended: func(_ context.Context, id agency.RunID) (bool, error) { return id != "r_002" || !m.alive.Load(), nil },
		Facts: func(ctx context.Context, id agency.RunID) (agency.AgentResult, error) {
			m.mu.Lock()
			m.asked++
			m.mu.Unlock()
			if id == "r_001" && m.meanwhile != nil {
				m.meanwhile()
			}
			if id == "r_001" && m.stuck != nil {
				select {
				case <-m.stuck:
				case <-ctx.Done():
					return agency.AgentResult{}, ctx.Err()
				}
			}
			if m.failures.Add(-1) >= 0 {
				return agency.AgentResult{}, errors.New("index.lock exists")
			}
			return agency.AgentResult{Commits: 1, Added: len(id)}, nil
		},
		Notify: func(_ context.Context, _ *agency.Session, kind agency.NoticeKind, text string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if notice := fmt.Sprintf("%s %s", kind, text); !slices.Contains(m.sent, notice) { // an id makes one message
				m.sent = append(m.sent, notice)
			}
			return nil
		},
	})
}

// until looks, as a daemon does, until a condition holds.
func (m *aftermath) until(what string, holds func() bool) {
	m.t.Helper()
	r := m.results()
	if err := r.Start(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	defer r.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("not %s within 20 seconds; sent %q", what, m.sent)
		}
	}
}

func (m *aftermath) messages() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

func (m *aftermath) reported() bool {
	s, err := m.store.Store.Session(m.t.Context(), m.s.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return s.Reported
}

// rest has a daemon look three times, after which it has done everything.
func (m *aftermath) rest() {
	m.t.Helper()
	before := m.store.looks.Load()
	m.until("at rest", func() bool { return m.store.looks.Load() >= before+3 })
}

func (m *aftermath) known(n int) func() bool {
	return func() bool {
		results, err := m.store.SessionResults(m.t.Context(), m.s.ID)
		return err == nil && len(results) == n
	}
}

func (m *aftermath) timesAsked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// The result of each agent is determined once, as soon as the agent is final and its run has ended,
// and not again by a later daemon; the end of the session is reported once all results are known.
func TestResults(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	m.alive.Store(true)
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.until("one result known", m.known(1))
	m.settle(agency.AgentComplete)
	m.until("two results known", m.known(2))
	m.rest()
	if m.reported() || len(m.messages()) > 0 || m.timesAsked() != 2 {
		t.Errorf("before all is known: reported %v, sent %q, asked git %d times", m.reported(), m.messages(), m.timesAsked())
	}
	m.alive.Store(false)
	m.until("reported", m.reported)
	if diff := cmp.Diff([]string{"session.complete 3 complete"}, m.messages()); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
	report, err := os.ReadFile(m.s.ReportPath())
	if err != nil || len(report) == 0 {
		t.Errorf("report: %q, %v", report, err)
	}
	m.rest()
	if asked := m.timesAsked(); asked != 3 {
		t.Errorf("a later daemon asked again: %d times", asked)
	}
	if events, err := m.store.Events(t.Context(), 0, "", 100); err != nil || events[len(events)-1].Type != agency.SessionReported {
		t.Errorf("events: %+v, %v", events, err)
	}
	if err := m.store.RemoveSession(t.Context(), m.s.ID); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// A new daemon takes over the results of the one before, and sends the messages that are missing.
func TestResultsAreTakenOver(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	m.alive.Store(true)
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.until("one result known", m.known(1))
	for range 2 {
		m.rest()
	}
	if asked := m.timesAsked(); asked != 1 {
		t.Errorf("git was asked %d times about one run", asked)
	}
	m.settle(agency.AgentFailed)
	m.alive.Store(false)
	m.until("reported", m.reported)
	if sent := m.messages(); len(sent) > 0 {
		t.Errorf("sent %q, of which an alert tells", sent)
	}
	if asked := m.timesAsked(); asked != 3 {
		t.Errorf("git was asked %d times about three runs", asked)
	}
}

// A session is read when it has changed, not at every commit.
func TestResultsReadWhatChanged(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	m.alive.Store(true)
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.rest()
	if reads := m.store.reads.Load(); reads != 1 {
		t.Errorf("%d reads in %d looks", reads, m.store.looks.Load())
	}
}

// A session does not wait for the repository of another one.
func TestResultsOfASlowRepository(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	m.stuck = make(chan struct{})
	other := sessionIn(t, m.store, m.s.Repo.Root, 2)
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.settle(agency.AgentComplete)
	other.change("001", func(_ *agency.Session, a *agency.SessionAgent) { a.Status = agency.AgentCancelled })
	other.run("002", agency.AgentComplete)
	other.settle(agency.AgentComplete)
	m.until("other session reported, other agents known", func() bool { return other.reported() && m.known(2)() })
	if m.reported() {
		t.Error("reported before all is known")
	}
	close(m.stuck)
	m.until("reported", m.reported)
}

// A result that git could not determine is known soon after, before clients that wait for the
// report give up.
func TestResultsAfterAFailure(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	m.failures.Store(1)
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.settle(agency.AgentComplete)
	m.until("reported", m.reported)
	if asked := m.timesAsked(); asked != 4 {
		t.Errorf("git was asked %d times about three runs, once in vain", asked)
	}
}

// A status folder that cannot be written does not keep the end of a session back: after some tries
// it ends without its report.
func TestResultsWithoutAReport(t *testing.T) {
	t.Parallel()
	m := newAftermath(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(m.s.Repo.Root, ".agency")); err != nil {
		t.Fatal(err)
	}
	m.run("001", agency.AgentComplete)
	m.run("002", agency.AgentComplete)
	m.settle(agency.AgentComplete)
	m.until("tried once", func() bool { return m.store.checks.Load() >= 1 })
	m.rest()
	if m.reported() || len(m.messages()) > 0 {
		t.Errorf("after the first try: reported %v, sent %q", m.reported(), m.messages())
	}
	m.until("reported", func() bool {
		m.hours.Add(1) // the next try is due
		return m.reported()
	})
	if diff := cmp.Diff([]string{"session.complete 3 complete"}, m.messages()); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
	if _, err := os.Stat(m.s.ReportPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the report is there (%v)", err)
	}
}

// A session that is removed as soon as it has settled leaves no files, and sends no message.
func TestResultsOfARemovedSession(t *testing.T) {
	t.Parallel()
	for removal, checks := range map[string]int64{"before the report": 1, "while it is written": 2} {
		m := newAftermath(t)
		m.run("001", agency.AgentComplete)
		m.run("002", agency.AgentComplete)
		m.settle(agency.AgentComplete)
		remove := func() {
			if err := errors.Join(m.store.RemoveSession(t.Context(), m.s.ID), os.RemoveAll(m.s.Dir)); err != nil {
				t.Error(err)
			}
		}
		if checks == 1 {
			m.meanwhile = remove
		} else {
			m.store.found = remove
		}
		m.until("checked", func() bool { return m.store.checks.Load() == checks })
		if _, err := os.Lstat(m.s.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("removed %s: %s is there (%v)", removal, m.s.Dir, err)
		}
		if sent := m.messages(); len(sent) > 0 {
			t.Errorf("removed %s: sent %q", removal, sent)
		}
	}
}
