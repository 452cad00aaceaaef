package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/schedule"
)

// stage simulates a session: it holds the record, the runs and the clock, and the decisions come
// from schedule.Decide.
type stage struct {
	t       *rapid.T
	plan    agency.Plan
	session agency.Session
	agents  []agency.SessionAgent
	runs    map[agency.RunID]*schedule.RunFacts
	state   *schedule.State
	now     time.Time
	drawn   int
	starts  int          // attempts
	stopped map[int]bool // agents that the user stopped
	works   map[int]bool // agents without output: only a measurement finds their work
}

var retry = schedule.RetryPolicy{
	Backoff: []time.Duration{10 * time.Second, 30 * time.Second}, Limited: []time.Duration{time.Minute, 2 * time.Minute}, Losses: 3,
	Wait: []time.Duration{5 * time.Second, time.Minute}, Waits: 5, Restart: 30 * time.Second, ReadyQuiet: time.Second, ReadyGrace: 30 * time.Second,
}

func newStage(t *rapid.T) *stage {
	s := &stage{t: t, runs: map[agency.RunID]*schedule.RunFacts{}, stopped: map[int]bool{}, works: map[int]bool{}, now: time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)}
	n := rapid.IntRange(1, 12).Draw(t, "agents")
	s.plan = agency.Plan{
		MaxParallel: rapid.IntRange(1, 4).Draw(t, "parallel"), Limits: map[string]int{},
		OnFailure: rapid.SampledFrom([]agency.OnFailure{agency.StopOnFailure, agency.ContinueOnFailure, agency.AskOnFailure}).Draw(t, "on failure"),
	}
	if rapid.Bool().Draw(t, "limited") {
		s.plan.Limits["a"] = rapid.IntRange(1, 2).Draw(t, "limit")
	}
	for i := range n {
		p := agency.PlanAgent{
			ID: fmt.Sprint("n", i), Runner: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "runner"), Wave: 1,
			Retries: rapid.IntRange(0, 2).Draw(t, "retries"), DoneWhen: rapid.SampledFrom([]agency.DoneWhen{agency.DoneWhenReady, agency.DoneWhenExit}).Draw(t, "done when"),
			Timeout:     rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "timeout"),
			IdleTimeout: rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "idle timeout"),
		}
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				p.After = append(p.After, fmt.Sprint("n", j))
			}
		}
		s.plan.Agents = append(s.plan.Agents, p)
		s.agents = append(s.agents, agency.SessionAgent{Position: i, ID: p.ID, Status: agency.AgentQueued})
	}
	s.session = agency.Session{Status: agency.SessionRunning, MaxParallel: s.plan.MaxParallel}
	s.restart()
	return s
}

// restart starts a new daemon, which knows only the record.
func (s *stage) restart() {
	s.count()
	s.state = schedule.NewState(s.session, &s.plan, s.agents, retry)
}

func (s *stage) count() {
	s.session.Counts = agency.Counts{}
	for i := range s.agents {
		s.session.Counts.Add(s.agents[i].Status, 1)
	}
}

func (s *stage) clock() schedule.Clock {
	return schedule.Clock{Now: s.now, Elapsed: func(since time.Time) time.Duration { return s.now.Sub(since) }}
}

// apply records an action as an engine does. It checks that the action is an allowed transition,
// and that repeating it changes nothing.
func (s *stage) apply(x *schedule.Action) bool {
	if x.Kind == schedule.ActSettle {
		s.count()
		return x.Apply(&s.session, nil, "", s.now)
	}
	a := &s.agents[x.Agent]
	before := a.Status
	s.drawn++
	done := x.Apply(&s.session, a, agency.RunID(fmt.Sprint("r", s.drawn)), s.now)
	if before != a.Status {
		if err := agency.NextAgent(before, a.Status); err != nil {
			s.t.Fatalf("%s: %v", a.ID, err)
		}
	}
	if once := *a; done {
		x.Apply(&s.session, a, "r-twice", s.now.Add(time.Second))
		if diff := cmp.Diff(once, *a); diff != "" {
			s.t.Fatalf("doing %s of %s twice: %s", x.Kind, a.ID, diff)
		}
	}
	s.count()
	s.state.Session = s.session
	s.state.Put(a)
	return done
}

// decide lets the session continue until nothing is left to do. It returns when to look again.
func (s *stage) decide() time.Time {
	for round := 0; ; round++ {
		if round > 50+10*len(s.agents) {
			s.t.Fatalf("it never comes to rest")
		}
		for _, i := range s.state.MissingFacts() {
			if f := s.runs[s.agents[i].Run]; f != nil {
				s.state.SetFacts(i, *f)
			} else {
				s.state.SetFacts(i, schedule.RunFacts{})
			}
		}
		holds := map[string]time.Time{}
		s.state.AddRateLimits(s.clock(), holds)
		actions, next := schedule.Decide(s.state, s.clock(), holds)
		again, nextAgain := schedule.Decide(s.state, s.clock(), holds)
		if diff := cmp.Diff(actions, again, cmpopts.IgnoreUnexported(schedule.Action{})); diff != "" || !next.Equal(nextAgain) {
			s.t.Fatalf("the same state decides otherwise: %s", diff)
		}
		if len(actions) == 0 || s.session.Status.Final() {
			return next
		}
		for i := range actions {
			s.carryOut(&actions[i], holds)
		}
	}
}

// within checks the limits when an attempt begins; the simulation never lowers one. Only the user
// exceeds them.
func (s *stage) within(begins int) {
	running, ofA := 0, 0
	for i := range s.agents {
		f := s.runs[s.agents[i].Run]
		if i == begins || s.agents[i].Status == agency.AgentRunning && f != nil && f.Attempt > s.agents[i].Attempt {
			running++
			if s.plan.Agents[i].Runner == "a" {
				ofA++
			}
		}
	}
	limit, limited := s.plan.Limits["a"]
	if limited = limited && s.plan.Agents[begins].Runner == "a"; running > s.plan.MaxParallel || limited && ofA > limit {
		s.t.Fatalf("%d agents run, %d of a, and the limits are %d and %v", running, ofA, s.plan.MaxParallel, s.plan.Limits)
	}
}

func (s *stage) carryOut(x *schedule.Action, holds map[string]time.Time) {
	switch x.Kind {
	case schedule.ActStart, schedule.ActAgain:
		i := x.Agent
		a, p := &s.agents[i], &s.plan.Agents[i]
		if f := s.runs[a.Run]; f != nil && f.Made && (!f.State.Final() || x.Kind == schedule.ActStart) {
			s.t.Fatalf("%s is started and has a run", a.ID)
		}
		before, failed := *a, s.session.Counts.Failed
		if !s.apply(x) {
			return
		}
		if s.session.Paused != "" || s.session.CancelAt != nil || holds[p.Runner].After(s.now) ||
			before.Status == agency.AgentQueued && failed > 0 && s.plan.OnFailure == agency.StopOnFailure {
			s.t.Fatalf("%s is started and must not be", a.ID)
		}
		for _, id := range p.After {
			if before := s.agents[s.state.Position(id)].Status; before != agency.AgentComplete {
				s.t.Fatalf("%s is started and %s is %s", a.ID, id, before)
			}
		}
		s.within(i)
		s.begin(i, x.Kind)
	case schedule.ActMeasure:
		activity := agency.Activity{}
		if s.works[x.Agent] {
			activity.FilesAt = s.now
		}
		s.state.Measured(x.Agent, x.Attempt, activity, s.now, s.clock())
	case schedule.ActStop:
		if strings.HasPrefix(x.Reason, "no sign of life") && s.works[x.Agent] && s.runs[s.agents[x.Agent].Run].State == agency.Running {
			s.t.Fatalf("%s works, and is stopped: %s", s.agents[x.Agent].ID, x.Reason)
		}
		if x.Attempt != 0 {
			s.apply(x)
		}
		if s.fault("stop") {
			return
		}
		if f := s.runs[s.agents[x.Agent].Run]; !f.State.Final() {
			f.State, f.PID, f.EndedAt = agency.Killed, 0, s.now
			if f.ReadyAt.IsZero() {
				f.Asks = false
			}
		}
		s.state.DropFacts(x.Agent)
	default:
		s.apply(x)
	}
}

// fault sometimes ends the daemon in the middle of an operation.
func (s *stage) fault(where string) bool {
	if rapid.IntRange(0, 9).Draw(s.t, "fault at "+where) > 0 {
		return false
	}
	s.restart()
	return true
}

// begin creates a run, or another attempt of it, unless that fails.
func (s *stage) begin(i int, kind schedule.ActionKind) {
	a := &s.agents[i]
	if s.fault(string(kind)) {
		return // before it was created
	}
	s.starts++
	if rapid.IntRange(0, 9).Draw(s.t, "start fails") == 0 {
		code := rapid.SampledFrom([]agency.Code{
			agency.CodeRunnerStartFailed, agency.CodeStartCutOff, agency.CodeDBError, agency.CodeRepoBusy, agency.CodeTrustRequired,
		}).Draw(s.t, "code")
		s.state.DropFacts(i)
		x := s.state.Unstarted(i, code, "it did not start", s.clock())
		s.apply(&x)
		return
	}
	f := s.runs[a.Run]
	if f == nil {
		f = &schedule.RunFacts{Made: true}
		s.runs[a.Run] = f
	}
	s.live(i)
	s.fault("started")
}

// live begins the next attempt of a run, whether the scheduler or the user started it.
func (s *stage) live(i int) {
	f := s.runs[s.agents[i].Run]
	*f = schedule.RunFacts{Made: true, Attempt: f.Attempt + 1, State: agency.Running, Ran: true, PID: 77, SignalAt: s.now}
	s.state.DropFacts(i)
}

// restartByHand is a user's agency resume --restart: the agent keeps its place for the next
// attempt, which follows unless the daemon dies in between.
func (s *stage) restartByHand(i int) {
	f := s.runs[s.agents[i].Run]
	f.State, f.PID, f.Restarting, f.EndedAt = agency.Killed, 0, true, s.now
	s.state.DropFacts(i)
	s.decide()
	if s.agents[i].Status != agency.AgentRunning || f.State != agency.Killed {
		s.t.Fatalf("%s is restarted by hand, and is %s: %s", s.agents[i].ID, s.agents[i].Status, s.agents[i].Error)
	}
	if !s.fault("restart") {
		s.live(i)
	}
}

// resumeByHand is a user's agency resume of an agent that waits for its next attempt: that attempt
// begins, and no retry is spent.
func (s *stage) resumeByHand() {
	for i := range s.agents {
		a, before := &s.agents[i], s.agents[i]
		f := s.runs[a.Run]
		if a.Status != agency.AgentRunning || f == nil || !f.State.Final() || f.Attempt != a.Attempt || rapid.Bool().Draw(s.t, "not this one") {
			continue
		}
		s.live(i)
		s.decide()
		over := s.plan.Agents[i].Timeout > 0 && s.now.Sub(*a.StartedAt) >= s.plan.Agents[i].Timeout
		if s.session.CancelAt == nil && !over && (f.State != agency.Running || f.Attempt != before.Attempt+1 || a.Tries != before.Tries || a.Losses != before.Losses || a.Error != "" || a.NotBefore != nil) {
			s.t.Fatalf("%s was resumed by hand: %+v, and its run is %+v", a.ID, a, f)
		}
		return
	}
}

// happen lets something happen to a running agent. With calm it ends well.
func (s *stage) happen(calm bool) {
	live := []int{}
	for i := range s.agents {
		if f := s.runs[s.agents[i].Run]; s.agents[i].Status == agency.AgentRunning && f != nil && (!f.State.Final() || f.Asks) {
			live = append(live, i)
		}
	}
	if len(live) == 0 {
		return
	}
	i := rapid.SampledFrom(live).Draw(s.t, "which")
	f := s.runs[s.agents[i].Run]
	what := "exit 0"
	if !calm {
		what = rapid.SampledFrom([]string{"exit 0", "exit 1", "lost", "ready", "asks", "asked and left", "by hand", "restart", "limited", "sign", "works in silence"}).Draw(s.t, "what")
	}
	if f.State.Final() { // it asked and ended: the user resumes it
		s.live(i)
	}
	f.Asks, f.EndedAt = false, s.now
	switch what {
	case "exit 0":
		zero := 0
		f.State, f.ExitCode = agency.Completed, &zero
	case "exit 1":
		one := 1
		f.State, f.ExitCode, f.Reason = agency.Failed, &one, "exit 1"
	case "lost":
		f.State, f.Code, f.Reason = agency.Failed, agency.CodeRunnerDisappeared, "the runner disappeared"
	case "ready":
		f.ReadyAt, f.Turn = s.now, agency.TurnEnded
	case "asks":
		f.Asks, f.ReadyAt = true, time.Time{}
	case "asked and left":
		f.State, f.Asks, f.ReadyAt = agency.Completed, true, time.Time{}
	case "by hand":
		f.State, s.stopped[i] = agency.Killed, true
	case "restart":
		s.restartByHand(i)
	case "limited":
		f.State, f.Reason, f.LimitedAt = agency.Failed, "429", s.now
	case "sign":
		f.SignalAt, s.works[i] = s.now, false
	case "works in silence":
		s.works[i] = true
	}
	s.state.DropFacts(i)
}

// user does what users sometimes do to a session.
func (s *stage) user() {
	switch rapid.IntRange(0, 19).Draw(s.t, "user") {
	case 0:
		s.session.Paused = "by hand"
	case 1, 2, 3:
		s.session.Paused = ""
	case 4:
		if rapid.IntRange(0, 4).Draw(s.t, "cancel") == 0 {
			s.session.CancelAt = &s.now
		}
	case 5, 6, 7:
		s.resumeByHand()
	}
	s.state.Session = s.session
}

// For any plan, and any actions of agents, users and crashes: each agent runs at most once at a
// time, after its dependencies, within the limits; the session settles; and each agent that never
// ran has a reason.
func TestScheduleSettles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(t)
		steps := rapid.IntRange(0, 40).Draw(t, "steps")
		for step := 0; !s.session.Status.Final(); step++ {
			if step > 2000 {
				t.Fatalf("it does not settle: %+v", s.agents)
			}
			calm := step >= steps
			if calm {
				s.session.Paused = ""
				s.state.Session = s.session
			}
			next := s.decide()
			if s.session.Status.Final() {
				break
			}
			s.happen(calm)
			if !calm {
				s.user()
			}
			if wait := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "wait"); !calm {
				s.now = s.now.Add(wait)
			} else if next.After(s.now) {
				s.now = next
			}
			s.state.DropAllFacts()
		}
		s.settled()
	})
}

func (s *stage) settled() {
	failed := false
	for i := range s.agents {
		a := &s.agents[i]
		failed = failed || a.Status == agency.AgentFailed
		switch {
		case !a.Status.Final():
			s.t.Fatalf("%s is %s", a.ID, a.Status)
		case a.Status != agency.AgentComplete && a.Error == "":
			s.t.Fatalf("%s is %s without a reason", a.ID, a.Status)
		case a.Status == agency.AgentComplete && a.Error != "":
			s.t.Fatalf("%s is complete: %s", a.ID, a.Error)
		case a.Error == schedule.StoppedByHand && !s.stopped[i]:
			s.t.Fatalf("%s was not stopped by hand", a.ID)
		case a.CompletedAt == nil:
			s.t.Fatalf("%s ended at no time", a.ID)
		case a.StartedAt == nil && a.Status != agency.AgentCancelled:
			s.t.Fatalf("%s is %s and never began", a.ID, a.Status)
		case a.Tries > s.plan.Agents[i].Retries+1, a.Losses > retry.Losses+1:
			s.t.Fatalf("%s had %d tries and %d losses", a.ID, a.Tries, a.Losses)
		}
		if f := s.runs[a.Run]; f != nil && f.Made && !f.State.Final() {
			s.t.Fatalf("%s is %s and its run lives", a.ID, a.Status)
		}
		if a.StartedAt == nil && s.session.CancelAt == nil && s.plan.OnFailure != agency.StopOnFailure && !strings.HasPrefix(a.Error, "dependency ") {
			s.t.Fatalf("%s never began: %s", a.ID, a.Error)
		}
	}
	want := agency.SessionComplete
	switch {
	case s.session.CancelAt != nil:
		want = agency.SessionCancelled
	case failed:
		want = agency.SessionFailed
	}
	if s.session.Status != want {
		s.t.Fatalf("the session is %s, want %s", s.session.Status, want)
	}
}

// Agents that never start because of a failure name it, however many dependencies lie between; the
// others continue.
func TestSchedulePolicies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy agency.OnFailure
		want   []string
		paused string
	}{
		"stop":     {agency.StopOnFailure, []string{"running", "failed exit 1", "cancelled agent b failed", "cancelled agent b failed", "cancelled agent b failed"}, ""},
		"continue": {agency.ContinueOnFailure, []string{"running", "failed exit 1", "cancelled dependency b failed", "cancelled dependency b failed", "queued"}, ""},
		"ask":      {agency.AskOnFailure, []string{"running", "failed exit 1", "queued", "queued", "queued"}, "agent b failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := agency.Plan{OnFailure: test.policy, Agents: []agency.PlanAgent{
				{ID: "a"}, {ID: "b"}, {ID: "c", After: []string{"b"}}, {ID: "d", After: []string{"c", "a"}}, {ID: "e", After: []string{"a"}},
			}}
			now := time.Now()
			agents := make([]agency.SessionAgent, len(plan.Agents))
			for i := range agents {
				agents[i] = agency.SessionAgent{Position: i, ID: plan.Agents[i].ID, Status: agency.AgentQueued}
			}
			agents[0].Status, agents[0].Run, agents[0].StartedAt = agency.AgentRunning, "r1", &now
			agents[1].Status, agents[1].Run, agents[1].StartedAt = agency.AgentRunning, "r2", &now
			session := agency.Session{Status: agency.SessionRunning, MaxParallel: 2}
			d := schedule.NewState(session, &plan, agents, retry)
			d.SetFacts(0, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Running})
			d.SetFacts(1, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Failed, Reason: "exit 1"})
			clock := schedule.Clock{Now: now, Elapsed: func(time.Time) time.Duration { return 0 }}
			for {
				actions, _ := schedule.Decide(d, clock, nil)
				if len(actions) == 0 {
					break
				}
				for i := range actions {
					a := &agents[actions[i].Agent]
					if !actions[i].Apply(&session, a, "", now) {
						t.Fatalf("%+v is not applied", actions[i])
					}
					d.Session = session
					d.Put(a)
				}
			}
			got := []string{}
			for i := range agents {
				got = append(got, strings.TrimSpace(string(agents[i].Status)+" "+agents[i].Error))
			}
			if !slices.Equal(got, test.want) || session.Paused != test.paused {
				t.Errorf("got %q, paused %q, want %q, paused %q", got, session.Paused, test.want, test.paused)
			}
		})
	}
}

// An agent that waits for a next attempt occupies no place, of the session or of its runner, and
// comes before queued agents when it may start.
func TestScheduleWaitingNeedsNoPlace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 14, 30, 22, 0, time.UTC)
	soon := now.Add(time.Minute)
	plan := agency.Plan{
		Limits: map[string]int{"a": 2},
		Agents: []agency.PlanAgent{{ID: "one", Runner: "a"}, {ID: "two", Runner: "a"}, {ID: "three", Runner: "b"}, {ID: "four", Runner: "a"}},
	}
	for name, test := range map[string]struct {
		parallel int
		after    time.Duration
		limited  map[string]time.Time
		want     []string
	}{
		"back-off":              {2, 0, nil, []string{"start three", "start four"}},
		"one place":             {1, 0, nil, []string{"start three"}},
		"a runner that is held": {2, 0, map[string]time.Time{"a": soon}, []string{"start three"}},
		"a hold of both":        {4, time.Hour, map[string]time.Time{"a": now.Add(2 * time.Hour)}, []string{"start three"}},
		"their time":            {4, time.Hour, nil, []string{"again one", "again two", "start three"}},
		"their time, one place": {1, time.Hour, nil, []string{"again one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents := []agency.SessionAgent{
				{ID: "one", Status: agency.AgentRunning, Run: "r1", Attempt: 1, NotBefore: &soon, StartedAt: &now},
				{ID: "two", Position: 1, Status: agency.AgentRunning, Run: "r2", Attempt: 1, NotBefore: &soon, StartedAt: &now},
				{ID: "three", Position: 2, Status: agency.AgentQueued},
				{ID: "four", Position: 3, Status: agency.AgentQueued},
			}
			d := schedule.NewState(agency.Session{Status: agency.SessionRunning, MaxParallel: test.parallel}, &plan, agents, retry)
			for i := range 2 {
				d.SetFacts(i, schedule.RunFacts{Made: true, Attempt: 1, State: agency.Failed})
			}
			actions, _ := schedule.Decide(d, schedule.Clock{Now: now.Add(test.after), Elapsed: now.Add(test.after).Sub}, test.limited)
			got := []string{}
			for i := range actions {
				got = append(got, string(actions[i].Kind)+" "+agents[actions[i].Agent].ID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it decides %q, want %q", got, test.want)
			}
		})
	}
}
