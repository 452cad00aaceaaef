package scheduler_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agency"
	"agency/internal/schedule"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
	"agency/internal/status"
)

// fakeRuns is an executor in memory, beside the real record. The test decides the outcome of each
// attempt.
type fakeRuns struct {
	*sqlite.Store
	// play returns the outcome of attempt n of an agent; a nil attempt works until it is stopped.
	play func(agent string, n int) (*agency.Attempt, error)
	gate chan struct{} // starts wait until it is closed; nil is open

	mu      sync.Mutex
	runs    map[agency.RunID]*agency.Run
	drafts  []agency.RunID
	changed chan struct{}
	log     []string // the requests, in order
	twice   []string // runs that were started while they lived
}

func newFakeRuns(t *testing.T, play func(agent string, n int) (*agency.Attempt, error)) *fakeRuns {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "agency.db"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &fakeRuns{Store: store, play: play, runs: map[agency.RunID]*agency.Run{}, changed: make(chan struct{})}
}

func (c *fakeRuns) note(id agency.RunID, what string) {
	c.log = append(c.log, what)
	c.drafts = append(c.drafts, id)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeRuns) begin(id agency.RunID, agent string, n int) error {
	a, err := c.play(agent, n)
	if err != nil {
		return err
	}
	if a == nil {
		a = &agency.Attempt{State: agency.Running}
	}
	a.Number = n
	c.runs[id] = &agency.Run{ID: id, Name: agent, Attempt: *a}
	return nil
}

func (c *fakeRuns) Start(_ context.Context, s scheduler.Start) error {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.note(s.ID, "start "+s.Agent.ID)
	for _, r := range c.runs {
		if r.Name == s.Agent.ID && !r.Attempt.State.Final() {
			c.twice = append(c.twice, r.Name)
		}
	}
	return c.begin(s.ID, s.Agent.ID, 1)
}

func (c *fakeRuns) Resume(_ context.Context, a scheduler.ResumeRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.note(a.ID, "again "+a.Agent.ID+": "+a.Reason)
	r := c.runs[a.ID]
	if !r.Attempt.State.Final() {
		c.twice = append(c.twice, r.Name)
	}
	return c.begin(a.ID, a.Agent.ID, r.Attempt.Number+1)
}

func (c *fakeRuns) Stop(_ context.Context, id agency.RunID, attempt int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[id]; !r.Attempt.State.Final() && (attempt == 0 || attempt == r.Attempt.Number) {
		r.Attempt.State = agency.Killed
	}
	c.note(id, "stop")
	return nil
}

func (c *fakeRuns) Outcome(_ context.Context, id agency.RunID) (*scheduler.Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[id]
	if r == nil {
		return nil, agency.Errorf(agency.CodeRunNotFound, "there is no run %s", id)
	}
	copied := *r
	return &scheduler.Outcome{Run: &copied, Status: status.Derive(status.Facts{Run: &copied}, time.Now()), SignalAt: time.Now()}, nil
}

func (c *fakeRuns) MayStart(context.Context, scheduler.Start) error { return nil }

func (c *fakeRuns) Activity(context.Context, agency.RunID) (agency.Activity, error) {
	return agency.Activity{}, errors.ErrUnsupported
}

func (c *fakeRuns) Result(_ context.Context, id agency.RunID) (string, error) { return string(id), nil }

func (c *fakeRuns) Merge(context.Context, *agency.Session, []string) (string, error) {
	return "", errors.ErrUnsupported
}

func (c *fakeRuns) ChangedRuns(ctx context.Context, _ int64) ([]agency.RunID, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	drafts := c.drafts
	c.drafts = nil
	return drafts, 0, ctx.Err()
}

func (c *fakeRuns) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// end completes the attempt of an agent.
func (c *fakeRuns) end(agent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, r := range c.runs {
		if r.Name == agent {
			over := exits(0)
			over.Number = r.Attempt.Number
			r.Attempt = *over
			c.drafts = append(c.drafts, id)
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeRuns) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

func exits(code int) *agency.Attempt {
	a := &agency.Attempt{State: agency.Completed, ExitCode: &code, EndedBy: agency.EndedByRunner}
	if code != 0 {
		a.State, a.Error = agency.Failed, fmt.Sprintf("exit %d", code)
	}
	return a
}

// engine is a scheduler with a retry policy for tests.
func (c *fakeRuns) engine(t *testing.T, home string, starts int) *scheduler.Scheduler {
	t.Helper()
	return c.engineOf(t, c, home, starts)
}

func (c *fakeRuns) engineOf(t *testing.T, runs scheduler.Runs, home string, starts int) *scheduler.Scheduler {
	t.Helper()
	return c.engineWith(t, scheduler.Deps{Runs: runs}, home, starts)
}

// engineWith adds the other dependencies to those given.
func (c *fakeRuns) engineWith(t *testing.T, deps scheduler.Deps, home string, starts int) *scheduler.Scheduler {
	t.Helper()
	deps.Store, deps.Log, deps.Now, deps.Elapsed = c, slog.New(slog.DiscardHandler), time.Now, time.Since
	deps.Random = func(b []byte) { _, _ = rand.Read(b) }
	s := scheduler.New(deps, scheduler.Settings{Home: home, Starts: starts, Retry: schedule.RetryPolicy{
		Backoff: []time.Duration{time.Millisecond}, Limited: []time.Duration{time.Millisecond}, Losses: 3,
		Wait: []time.Duration{time.Millisecond}, Waits: 4,
	}})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// create begins a session of agents in the notation "b: a" for b that depends on a, "b@runner" for one
// of another runner, and "b>merge" for one whose work lands so.
func create(t *testing.T, s *scheduler.Scheduler, plan agency.Plan, notation ...string) *agency.Session {
	t.Helper()
	dir := t.TempDir()
	session := &agency.Session{
		ID: agency.NewSessionID(time.Now(), [4]byte([]byte(rand.Text()[:4]))), Source: "orchestrate", Status: agency.SessionRunning,
		MaxParallel: max(plan.MaxParallel, 1), Owner: agency.User, StartedAt: time.Now(), Repo: agency.Repo{Fingerprint: "f", Root: dir, CommonDir: dir},
	}
	agents := []agency.SessionAgent{}
	for i, word := range notation {
		id, after, _ := strings.Cut(word, ": ")
		id, runner, _ := strings.Cut(id, "@")
		id, land, _ := strings.Cut(id, ">")
		plan.Agents = append(plan.Agents, agency.PlanAgent{ID: id, Name: id, Runner: cmp.Or(runner, "shell"), Base: agency.BaseDeps, After: strings.Fields(after), Retries: 1, DoneWhen: agency.DoneWhenReady, Land: agency.LandBy(land)})
		agents = append(agents, agency.SessionAgent{Session: session.ID, Position: i, ID: id, Name: id, Wave: 1, Status: agency.AgentQueued})
	}
	if err := s.Create(t.Context(), session, &plan, agents, []string{"SECRET=x"}); err != nil {
		t.Fatal(err)
	}
	return session
}

// until waits for a condition on a session.
func (c *fakeRuns) until(t *testing.T, id agency.SessionID, what string, met func(s *agency.Session) bool) *agency.Session {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		changed := c.Store.Changed()
		s, err := c.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if met(s) {
			return s
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("waited in vain for %s: %+v", what, s.Counts)
		}
	}
}

func settled(s *agency.Session) bool { return s.Status.Final() }

// Failures of the agent itself spend its retries; a loss and a rate limit do not; a failed start is
// a failure.
func TestAttempts(t *testing.T) {
	t.Parallel()
	lost := &agency.Attempt{State: agency.Failed, ErrorCode: agency.CodeRunnerDisappeared, Error: "the runner disappeared"}
	limited := exits(1)
	limited.AgentState.Failure = &agency.AgentError{Class: agency.ErrorRateLimit, Text: "429", At: time.Now()}
	broken := agency.Errorf(agency.CodeRunnerNotConfigured, "no such runner")
	full, busy := errors.New("no space left on device"), agency.Errorf(agency.CodeRepoBusy, "another run is live")
	for name, test := range map[string]struct {
		attempts []any
		want     agency.AgentStatus
		why      string
	}{
		"one failure":          {[]any{exits(3), exits(0)}, agency.AgentComplete, ""},
		"two failures":         {[]any{exits(3), exits(4)}, agency.AgentFailed, "exit 4"},
		"losses":               {[]any{lost, lost, exits(1), lost, exits(0)}, agency.AgentComplete, ""},
		"too many losses":      {[]any{lost, lost, lost, lost}, agency.AgentFailed, "the runner disappeared"},
		"limits":               {[]any{limited, limited, limited, limited, limited, exits(0)}, agency.AgentComplete, ""},
		"a start that failed":  {[]any{broken, exits(0)}, agency.AgentComplete, ""},
		"starts that failed":   {[]any{broken, broken}, agency.AgentFailed, "no such runner"},
		"a full disk":          {[]any{full, full, full, full, exits(3), full, full, full, full, exits(0)}, agency.AgentComplete, ""},
		"a disk that is full":  {[]any{full, full, full, full, full}, agency.AgentFailed, "no space left on device"},
		"a busy repository":    {[]any{busy, busy, busy, busy, busy, busy, broken, busy, exits(0)}, agency.AgentComplete, ""},
		"a start and its work": {[]any{broken, exits(1)}, agency.AgentFailed, "exit 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			played := 0
			c := newFakeRuns(t, func(string, int) (*agency.Attempt, error) {
				next := test.attempts[played]
				played++
				if err, ok := next.(error); ok {
					return nil, err
				}
				a := *next.(*agency.Attempt)
				return &a, nil
			})
			home := t.TempDir()
			s := c.engine(t, home, 1)
			id := create(t, s, agency.Plan{}, "a").ID
			c.until(t, id, "the end", settled)
			agents, err := c.SessionAgents(t.Context(), id)
			if err != nil || agents[0].Status != test.want || agents[0].Error != test.why || played != len(test.attempts) {
				t.Errorf("got %+v after %d attempts, %v, want %s: %s", agents[0], played, err, test.want, test.why)
			}
			s.Stop()
			if left, _ := os.ReadDir(filepath.Join(home, "sessions")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A session continues with the next scheduler: running agents are not started again, intended ones
// are.
func TestRecovery(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(agent string, n int) (*agency.Attempt, error) {
		if agent == "live" && n == 1 {
			return nil, nil
		}
		return exits(0), nil
	})
	home := t.TempDir()
	s := c.engine(t, home, 4)
	id := create(t, s, agency.Plan{MaxParallel: 2}, "live", "after: live").ID
	c.until(t, id, "the run", func(*agency.Session) bool { return len(c.asked()) == 1 })
	s.Stop()
	// The start of the next agent was recorded, and the daemon died before the run existed.
	if _, err := c.ChangeSession(t.Context(), id, []string{"after"}, func(_ *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		agents[0].Status, agents[0].Run = agency.AgentRunning, "r_lost"
		return []agency.EventDraft{agents[0].EventDraft()}, nil
	}); err != nil {
		t.Fatal(err)
	}
	c.engine(t, home, 4)
	c.until(t, id, "the start", func(s *agency.Session) bool { return s.Counts.Complete == 1 })
	if _, err := s.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := c.asked(); !slices.Equal(got, []string{"start live", "start after"}) || len(c.twice) > 0 {
		t.Errorf("asked for %q, twice %q", got, c.twice)
	}
}

// Sessions take turns: a small one does not wait for a whole large one.
func TestFairness(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil })
	c.gate = make(chan struct{})
	s := c.engine(t, t.TempDir(), 1)
	large := create(t, s, agency.Plan{MaxParallel: 20}, "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10").ID
	c.until(t, large, "the first start", func(s *agency.Session) bool { return s.Counts.Running == 1 })
	small := create(t, s, agency.Plan{MaxParallel: 20}, "s1", "s2").ID
	// Its starts are queued once the scheduler has read it.
	c.until(t, small, "the small session", func(*agency.Session) bool { return s.Waiting() >= 11 })
	close(c.gate)
	c.until(t, small, "the end of the small session", settled)
	c.until(t, large, "the end of the large session", settled)
	got := c.asked()
	if at := slices.Index(got, "start s2"); at > 4 {
		t.Errorf("the small session waited: %v", got)
	}
}

// Cancel ends running and waiting agents; pause only keeps new ones from starting.
func TestSteering(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(agent string, _ int) (*agency.Attempt, error) {
		if agent == "works" {
			return nil, nil
		}
		return exits(0), nil
	})
	s := c.engine(t, t.TempDir(), 4)
	id := create(t, s, agency.Plan{MaxParallel: 1}, "works", "next").ID
	c.until(t, id, "the run", func(s *agency.Session) bool { return s.Counts.Running == 1 })
	if _, err := s.Pause(t.Context(), id, agency.PausedByHand); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetParallel(t.Context(), id, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.until(t, id, "the next one", func(s *agency.Session) bool { return s.Counts.Complete == 1 })
	if _, err := s.Resume(t.Context(), id); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("resuming what is not paused: %v", err)
	}
	if _, err := s.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if end := c.until(t, id, "the end", settled); end.Status != agency.SessionCancelled || end.Counts.Cancelled != 1 {
		t.Errorf("it is %s: %+v", end.Status, end.Counts)
	}
	if _, err := s.Cancel(t.Context(), id); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("cancelling what has settled: %v", err)
	}
}

// An agent that rests at its rate limit holds up the agents of its runner in all sessions. Resuming
// one of these sessions tries its agents at once, and only the own session of the agent ends the
// agent for another attempt.
func TestResumeAtARateLimit(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(agent string, n int) (*agency.Attempt, error) {
		if agent != "limited" || n > 1 {
			return exits(0), nil
		}
		rests := agency.AgentState{Turn: agency.TurnEnded}
		rests.Failure = &agency.AgentError{Class: agency.ErrorRateLimit, Text: "retry after 1 hour", At: time.Now()}
		return &agency.Attempt{State: agency.Running, AgentState: rests}, nil
	})
	s := c.engine(t, t.TempDir(), 4)
	first := create(t, s, agency.Plan{}, "limited").ID
	c.until(t, first, "the limit", func(*agency.Session) bool { return !s.Limited()["shell"].IsZero() })
	second := create(t, s, agency.Plan{}, "works").ID
	resume := func(id agency.SessionID, want ...string) {
		t.Helper()
		if _, err := s.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		c.until(t, id, "the end", settled)
		got := c.asked()
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], ":")
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
	resume(second, "start limited", "start works")
	resume(first, "start limited", "start works", "stop", "again limited")
}

// A rate limit outlives the agent that met it and its session: no agent of that runner starts
// before the time, unless a user resumes it.
func TestRateLimitOutlivesItsSession(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(agent string, _ int) (*agency.Attempt, error) {
		if agent != "limited" {
			return exits(0), nil
		}
		refused := exits(1)
		refused.AgentState.Failure = &agency.AgentError{Class: agency.ErrorRateLimit, Text: "retry after 1 hour", At: time.Now()}
		return refused, nil
	})
	s := c.engine(t, t.TempDir(), 4)
	first := create(t, s, agency.Plan{}, "limited").ID
	c.until(t, first, "the limit", func(*agency.Session) bool { return !s.Limited()["shell"].IsZero() })
	if _, err := s.Cancel(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	c.until(t, first, "the end", settled)
	second := create(t, s, agency.Plan{MaxParallel: 2}, "works", "free@other").ID
	c.until(t, second, "the end of what has another runner", func(s *agency.Session) bool { return s.Counts.Complete > 0 })
	if got := c.asked(); !slices.Equal(got, []string{"start limited", "start free"}) {
		t.Errorf("asked for %q", got)
	}
	if _, err := s.Pause(t.Context(), second, agency.PausedByHand); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resume(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	c.until(t, second, "the end of what was resumed", settled)
}

// A session that is being cancelled can be neither paused nor resumed.
func TestCancelling(t *testing.T) {
	t.Parallel()
	c := newFakeRuns(t, func(string, int) (*agency.Attempt, error) { return exits(0), nil })
	c.gate = make(chan struct{})
	s := c.engine(t, t.TempDir(), 1)
	id := create(t, s, agency.Plan{}, "a").ID
	c.until(t, id, "the start", func(s *agency.Session) bool { return s.Counts.Running == 1 })
	if _, err := s.Pause(t.Context(), id, agency.PausedByHand); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Cancel(t.Context(), id); err != nil || got.Paused != "" {
		t.Errorf("it is paused: %q, %v", got.Paused, err)
	}
	if _, err := s.Resume(t.Context(), id); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("resumed: %v", err)
	}
	if _, err := s.Pause(t.Context(), id, agency.PausedByHand); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("paused: %v", err)
	}
	close(c.gate)
	c.until(t, id, "the end", settled)
}

// A start that needs a decision of the user holds the session until then, and spends no retry.
func TestStartNeedsUser(t *testing.T) {
	t.Parallel()
	trusted := false
	c := newFakeRuns(t, func(string, int) (*agency.Attempt, error) {
		if !trusted {
			trusted = true
			return nil, agency.Errorf(agency.CodeTrustRequired, "that is not trusted yet")
		}
		return exits(0), nil
	})
	s := c.engine(t, t.TempDir(), 1)
	id := create(t, s, agency.Plan{}, "a").ID
	paused := c.until(t, id, "the pause", func(s *agency.Session) bool { return s.Paused != "" })
	if want := "agent a cannot start: that is not trusted yet: agency trust, then agency session resume"; paused.Paused != want {
		t.Errorf("it is paused: %s, want %s", paused.Paused, want)
	}
	if _, err := s.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.until(t, id, "the end", settled)
	if agents, err := c.SessionAgents(t.Context(), id); err != nil || agents[0].Status != agency.AgentComplete || agents[0].Tries+agents[0].Losses > 0 {
		t.Errorf("got %+v, %v", agents, err)
	}
}

// No agent starts when the environment of the session's starter is lost, whatever happened to the
// file. The session tells why, and continues when the user has mended the file.
func TestLostEnvironment(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"lost":       os.Remove,
		"damaged":    func(path string) error { return os.Truncate(path, 3) },
		"unreadable": func(path string) error { return os.Chmod(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "unreadable" && os.Getuid() == 0 {
				return // root can read every file
			}
			c := newFakeRuns(t, func(agent string, _ int) (*agency.Attempt, error) {
				if agent == "works" {
					return nil, nil
				}
				return exits(0), nil
			})
			home := t.TempDir()
			s := c.engine(t, home, 1)
			id := create(t, s, agency.Plan{MaxParallel: 1}, "works", "next").ID
			c.until(t, id, "the run", func(*agency.Session) bool { return len(c.asked()) == 1 })
			s.Stop()
			path := filepath.Join(home, "sessions", string(id), "env.json")
			env, err := os.ReadFile(path)
			if err == nil {
				err = spoil(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			s = c.engine(t, home, 1)
			c.end("works")
			end := c.until(t, id, "the pause", func(s *agency.Session) bool { return s.Paused != "" })
			if !strings.Contains(end.Paused, path+": ") || !strings.Contains(end.Paused, "agency session retry "+string(id)) || len(c.asked()) != 1 {
				t.Errorf("it is paused: %s, asked for %q", end.Paused, c.asked())
			}
			_ = os.Remove(path)
			if err := os.WriteFile(path, env, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Resume(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			c.until(t, id, "the end", settled)
		})
	}
}
