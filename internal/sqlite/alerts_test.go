package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/sqlite"
)

// ownSession returns session number n, which agency runs.
func ownSession(tb testing.TB, s *sqlite.Store, n int) *agency.Session {
	tb.Helper()
	session := newSession(n)
	session.External = false
	createSession(tb, s, session, newAgents(session, 3))
	return session
}

func sessionAlert(id string, kind agency.AlertKind, of *agency.Session, cause string) *agency.Alert {
	return &agency.Alert{ID: id, Kind: kind, Session: of.ID, Cause: cause, Payload: json.RawMessage(`{"text":"x"}`), OpenedAt: epoch, Recipients: []string{}}
}

// alertsOf returns the ids of the alerts in events.
func alertsOf(events []agency.Event) []string {
	ids := []string{}
	for i := range events {
		var data struct{ Alert string }
		_ = json.Unmarshal(events[i].Data, &data) // an event without one has ""
		ids = append(ids, data.Alert)
	}
	return ids
}

// resolveAlert ends an alert.
func resolveAlert(t *testing.T, s *sqlite.Store, id string) {
	t.Helper()
	_, err := s.ChangeAlert(t.Context(), id, func(a *agency.Alert) (agency.EventType, error) {
		a.ResolvedAt = new(epoch)
		return agency.AlertResolved, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An alert of a session is open once, is read back unchanged, and can open again after it ended; a
// failure cannot.
func TestSessionAlerts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	session := ownSession(t, s, 1)
	opens := func(a *agency.Alert, want bool) {
		t.Helper()
		if added, err := s.OpenAlert(t.Context(), a); err != nil || added != want {
			t.Fatalf("open %s: %v, %v", a.ID, added, err)
		}
	}
	resolve := func(id string) { t.Helper(); resolveAlert(t, s, id) }
	first := sessionAlert("a_1", agency.AlertSessionPaused, session, "agent 001 failed")
	opens(first, true)
	opens(sessionAlert("a_2", agency.AlertSessionPaused, session, "agent 001 failed"), false)
	opens(sessionAlert("a_3", agency.AlertSessionPaused, session, "agent 002 failed"), true)
	open, err := s.Alerts(t.Context(), agency.AlertFilter{Session: session.ID})
	if err != nil || len(open) != 2 || !cmp.Equal(*first, open[0]) {
		t.Errorf("open: %+v, %v", open, err)
	}
	for repo, want := range map[string]int{session.Repo.Fingerprint: 2, "another": 0} {
		if in, err := s.Alerts(t.Context(), agency.AlertFilter{Repo: repo}); err != nil || len(in) != want {
			t.Errorf("in the repository %q: %+v, %v", repo, in, err)
		}
	}
	opened := func(want string) {
		t.Helper()
		seq, err := s.OpenedSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if events, err := s.Events(t.Context(), seq, "", 1); err != nil || len(events) > 1 || fmt.Sprint(alertsOf(events)) != want {
			t.Errorf("behind %d: %+v, %v, want %s", seq, events, err, want)
		}
	}
	opened("[a_1]")
	resolve("a_1")
	opened("[a_3]")
	opens(sessionAlert("a_4", agency.AlertSessionPaused, session, "agent 001 failed"), true)
	opens(sessionAlert("a_5", agency.AlertSessionFailed, session, "failed"), true)
	resolve("a_3")
	resolve("a_4")
	opened("[]") // a failure stays open, whatever the session does
	resolve("a_5")
	opens(sessionAlert("a_6", agency.AlertSessionFailed, session, "failed"), false)
	events, err := s.Events(t.Context(), 0, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if e := &events[i]; strings.HasPrefix(string(e.Type), "alert.") && (e.RunID != "" || !strings.Contains(string(e.Data), `"session":"`+string(session.ID))) {
			t.Errorf("event %+v", e)
		}
	}
}

// An alert of the machine is open once for each cause, shows in every repository, and opens again
// after it ended.
func TestHostAlerts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	session := ownSession(t, s, 1)
	opens := func(id, disk string, want bool) {
		t.Helper()
		a := &agency.Alert{ID: id, Kind: agency.AlertHostDisk, Cause: disk, Payload: json.RawMessage(`{}`), OpenedAt: epoch, Recipients: []string{}}
		if added, err := s.OpenAlert(t.Context(), a); err != nil || added != want {
			t.Fatalf("open %s: %v, %v", id, added, err)
		}
	}
	if _, err := s.OpenAlert(t.Context(), sessionAlert("a_0", agency.AlertSessionPaused, session, "why")); err != nil {
		t.Fatal(err)
	}
	opens("a_1", "/data", true)
	opens("a_2", "/data", false)
	opens("a_3", "/data/worktrees", true)
	for want, f := range map[string]agency.AlertFilter{
		"a_1 a_3":     {Host: true},
		"a_0 a_1 a_3": {Repo: session.Repo.Fingerprint},
		"a_0":         {Session: session.ID},
		"":            {Run: "r_1"},
	} {
		alerts, err := s.Alerts(t.Context(), f)
		ids := []string{}
		for i := range alerts {
			ids = append(ids, alerts[i].ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("%+v chooses %q, want %q: %v", f, got, want, err)
		}
	}
	_, err := s.ChangeAlert(t.Context(), "a_1", func(a *agency.Alert) (agency.EventType, error) {
		a.ResolvedAt = new(epoch)
		return agency.AlertResolved, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	opens("a_4", "/data", true)
}

// A run is snoozed while all of its open alerts are.
func TestSnoozed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := newRun(1)
	create(t, s, r)
	until := epoch.Add(time.Hour)
	snooze := func(a *agency.Alert) (agency.EventType, error) {
		a.SnoozedUntil = &until
		return agency.AlertSnoozed, nil
	}
	check := func(want map[agency.RunID]time.Time) {
		t.Helper()
		got, err := s.Snoozed(t.Context())
		if err != nil || !cmp.Equal(want, got) {
			t.Fatal(cmp.Diff(want, got), err)
		}
	}
	for i, kind := range []agency.AlertKind{agency.AlertNeedsInput, agency.AlertStuck} {
		id := fmt.Sprint("a_", i)
		if _, err := s.OpenAlert(t.Context(), &agency.Alert{ID: id, Kind: kind, RunID: r.ID, Attempt: 1, Cause: id, Payload: json.RawMessage(`{}`), OpenedAt: epoch, Recipients: []string{}}); err != nil {
			t.Fatal(err)
		}
		check(map[agency.RunID]time.Time{}) // one is not put off
		if _, err := s.ChangeAlert(t.Context(), id, snooze); err != nil {
			t.Fatal(err)
		}
		check(map[agency.RunID]time.Time{r.ID: until})
	}
}

// A watchdog looks at live runs, and at every end that may need an alert, also when the attempt had
// alerts before: about another cause, or about this end while the run was not watched.
func TestWatchedRuns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	want := []agency.RunID{}
	for i, tt := range []struct {
		edit    func(r *agency.Run)
		watched bool
	}{
		{func(r *agency.Run) { r.Attempt.State = agency.Running }, true},
		{func(r *agency.Run) { r.Attempt.State = agency.Failed }, true},
		{func(r *agency.Run) { r.Attempt.State = agency.Completed }, true},
		{func(r *agency.Run) { r.Attempt.State = agency.Killed }, false},
		{func(r *agency.Run) { r.Attempt.State, r.Flag = agency.Killed, &agency.Flag{Reason: "look"} }, true},
		{func(r *agency.Run) { r.Attempt.State, r.MergedAt = agency.Completed, new(epoch) }, false},
		{func(r *agency.Run) { r.Attempt.State, r.Abandoned = agency.Failed, true }, false},
		{func(r *agency.Run) { r.Attempt.State, r.RemovedAt = agency.Failed, new(epoch) }, false},
	} {
		r := newRun(i + 1)
		create(t, s, r)
		change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			tt.edit(r)
			return nil, nil
		})
		for _, kind := range []agency.AlertKind{agency.AlertNeedsInput, agency.AlertError} {
			a := &agency.Alert{ID: fmt.Sprintf("a_%d_%s", i, kind), Kind: kind, RunID: r.ID, Attempt: 1, Cause: "ended", Payload: json.RawMessage(`{}`), OpenedAt: epoch}
			if _, err := s.OpenAlert(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			_, err := s.ChangeAlert(t.Context(), a.ID, func(a *agency.Alert) (agency.EventType, error) {
				a.ResolvedAt = new(epoch)
				return agency.AlertResolved, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if tt.watched {
			want = append(want, r.ID)
		}
	}
	ids, err := s.WatchedRuns(t.Context())
	if diff := cmp.Diff(want, ids); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// changeSession changes a session and all of its agents.
func changeSession(t *testing.T, s *sqlite.Store, of *agency.Session, edit func(s *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft) {
	t.Helper()
	_, err := s.ChangeSession(t.Context(), of.ID, nil, func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		return edit(s, agents), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The watchdog reads what the sessions of agency wait for, and nothing of external ones.
func TestSessionTurns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	external := newSession(9)
	createSession(t, s, external, newAgents(external, 1))
	running := ownSession(t, s, 1)
	since, err := s.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changeSession(t, s, external, func(_ *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft {
		agents[0].Error = "waiting: for no agent here"
		return []agency.EventDraft{agents[0].EventDraft()}
	})
	changeSession(t, s, running, func(session *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft {
		session.Paused, agents[1].Error = "agent 001 failed", "waiting: no leave"
		return []agency.EventDraft{session.EventDraft(agency.SessionChanged), agents[1].EventDraft()}
	})
	turns, newest, err := s.SessionTurns(t.Context(), since)
	want := []agency.SessionTurn{
		{Type: agency.SessionChanged, Session: running.ID, Status: agency.AgentStatus(agency.SessionRunning), Paused: "agent 001 failed"},
		{Type: agency.SessionAgentEvent, Session: running.ID, Agent: "002", Status: agency.AgentQueued, Error: "waiting: no leave"},
	}
	if diff := cmp.Diff(want, turns); diff != "" || err != nil {
		t.Errorf("turns: %v (-want +got)\n%s", err, diff)
	}
	if turns, again, err := s.SessionTurns(t.Context(), newest); err != nil || len(turns) != 0 || again != newest {
		t.Errorf("later: %+v, %d, %v", turns, again, err)
	}
	if _, agents, retried, err := s.Troubled(t.Context(), running.ID); err != nil || retried || len(agents) != 1 || agents[0].ID != "002" {
		t.Errorf("troubled: %+v, %v, %v", agents, retried, err)
	}
	if _, _, _, err := s.Troubled(t.Context(), "20260101-000000-00000000"); !agency.IsCode(err, agency.CodeSessionNotFound) {
		t.Errorf("of no session: %v", err)
	}
}

// The watchdog looks at sessions that run, and at failed ones until an alert was sent for them.
func TestWatchedSessions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	external := newSession(9)
	createSession(t, s, external, newAgents(external, 1))
	running, failed := ownSession(t, s, 1), ownSession(t, s, 2)
	changeSession(t, s, failed, func(_ *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft {
		for _, a := range agents {
			a.Status = agency.AgentRunning
		}
		return []agency.EventDraft{agents[0].EventDraft()}
	})
	changeSession(t, s, failed, func(session *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft {
		for _, a := range agents {
			a.Status = agency.AgentFailed
		}
		session.Status, session.CompletedAt = agency.SessionFailed, new(epoch)
		return []agency.EventDraft{session.EventDraft(agency.SessionSettled)}
	})
	watched := func(want ...agency.SessionID) {
		t.Helper()
		if ids, err := s.WatchedSessions(t.Context()); err != nil || !slices.Equal(ids, want) {
			t.Errorf("watched %q, want %q: %v", ids, want, err)
		}
	}
	watched(running.ID, failed.ID)
	if _, err := s.OpenAlert(t.Context(), sessionAlert("a_1", agency.AlertSessionFailed, failed, "failed")); err != nil {
		t.Fatal(err)
	}
	watched(running.ID)
	again := newSession(3)
	again.External, again.RetryOf = false, failed.ID
	createSession(t, s, again, newAgents(again, 1))
	if _, agents, retried, err := s.Troubled(t.Context(), failed.ID); err != nil || !retried || len(agents) != 3 {
		t.Errorf("troubled: %+v, %v, %v", agents, retried, err)
	}
	if err := s.RemoveSession(t.Context(), failed.ID); err != nil {
		t.Fatal(err)
	}
	if open, err := s.Alerts(t.Context(), agency.AlertFilter{Session: failed.ID}); err != nil || len(open) != 1 {
		t.Errorf("of a removed session: %+v, %v", open, err)
	}
}

// A complete session whose work was refused when it was to land is retried by a later one.
func TestTroubledAfterARefusedLanding(t *testing.T) {
	t.Parallel()
	s := setup(t)
	session := ownSession(t, s, 1)
	changeSession(t, s, session, func(session *agency.Session, agents []*agency.SessionAgent) []agency.EventDraft {
		agents[0].Landing = agency.AgentLanding{State: agency.WorkRefused, Note: "a conflict"}
		session.Status, session.CompletedAt = agency.SessionComplete, new(epoch)
		return []agency.EventDraft{agents[0].EventDraft(), session.EventDraft(agency.SessionSettled)}
	})
	want := func(want bool) {
		t.Helper()
		if _, agents, retried, err := s.Troubled(t.Context(), session.ID); err != nil || retried != want || len(agents) != 1 {
			t.Errorf("retried %v, want %v; in trouble: %+v, %v", retried, want, agents, err)
		}
	}
	want(false)
	again := newSession(2)
	again.External, again.RetryOf = false, session.ID
	createSession(t, s, again, newAgents(again, 1))
	want(true)
}

// Alerts from before sessions had alerts are unchanged, and an old failure opens none.
func TestAlertsBeforeSessions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	steps, err := sqlite.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(steps, func(step string) bool { return strings.Contains(step, "alerts_of_both") })
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), strings.Join(steps[:at], ";\n")+fmt.Sprintf(`;
		PRAGMA application_id = 0x61676379; PRAGMA user_version = %d;
		INSERT INTO repos VALUES ('f', '/src/app', '/src/app/.git', 0);
		INSERT INTO runs (id, handle, name, type, repo, base_ref, base_commit, branch, worktree_path, run_dir, runner_kind, runner_name, runner_args,
			model, tags, owner, max_minutes, stall_after_ms, config_hash, host, created_at_ms, updated_at_ms, abandoned, needs_attention, attempt)
		VALUES ('r_1', 'h', '', '', 'f', '', '', '', '', '', '', '', '[]', '', '[]', 'user', 0, 0, '', '', 0, 0, 0, '', 1);
		INSERT INTO alerts VALUES (7, 'a_7', 'worker.stuck', 'r_1', 2, 'silent', '{}', 1000, 2000, 1500, 'user', NULL, 3, 2, 1200, '["user"]');
		INSERT INTO sessions (id, name, source, source_file, outside, repo, status, queued, running, complete, failed, cancelled, status_dir, dir,
			plan_path, plan_hash, max_parallel, paused, retry_of, owner, config, started_at_ms, updated_at_ms, completed_at_ms, reported)
		VALUES ('20260101-000000-00000001', 'old', 'orchestrate', '', 0, 'f', 'failed', 0, 0, 0, 1, 0, '/s', '/s/1', '', '', 3, '', '', 'user', '', 1, 1, 5000, 1);`, at))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path)
	alerts, err := s.Alerts(t.Context(), agency.AlertFilter{Resolved: true})
	if err != nil || len(alerts) != 2 {
		t.Fatalf("%+v, %v", alerts, err)
	}
	moment := func(ms int64) *time.Time { return new(time.UnixMilli(ms).UTC()) }
	want := agency.Alert{
		ID: "a_7", Seq: 7, Kind: agency.AlertStuck, RunID: "r_1", Attempt: 2, Cause: "silent", Payload: json.RawMessage(`{}`), OpenedAt: *moment(1000),
		ResolvedAt: moment(2000), AckedAt: moment(1500), AckedBy: "user", NotifyCount: 3, Level: 2, NotifiedAt: moment(1200), Recipients: []string{"user"},
	}
	if diff := cmp.Diff(want, alerts[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if a := alerts[1]; a.Kind != agency.AlertSessionFailed || a.Open() || agency.AlertSessionName(a.Payload) != "old" {
		t.Errorf("the old failure: %+v", a)
	}
	if ids, err := s.WatchedSessions(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("watched: %q, %v", ids, err)
	}
}
