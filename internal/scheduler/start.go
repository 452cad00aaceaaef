package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/schedule"
)

// job is one long action with all that it needs, since the state belongs to the loop.
type job struct {
	action  schedule.Action
	session agency.Session
	agent   agency.SessionAgent
	plan    *agency.PlanAgent
	env     []string
	life    context.Context // ends when the session is cancelled
	bases   *bases
	after   []agency.RunID // the runs of its dependencies, in the order of the plan
	landing []AgentRun     // see LandRequest.Runs
}

// dispatch executes an action outside the loop. Until the note of its end, nothing else is decided
// for its agent.
func (l *loop) dispatch(d *liveSession, x *schedule.Action) {
	j := &job{
		action: *x, session: d.Session, agent: *d.Agent(x.Agent), plan: &d.Plan.Agents[x.Agent], env: d.env, life: d.life, bases: d.bases,
	}
	if x.Kind == schedule.ActStart && j.plan.Base == agency.BaseDeps {
		j.after = runsBefore(d, j.plan)
	}
	if x.Kind == schedule.ActLand {
		j.landing = landingRuns(d, x.Agent)
	}
	d.SetBusy(x.Agent, true)
	switch x.Kind {
	case schedule.ActLand:
		l.lands.add(d.Session.ID, func() { l.land(j) })
	case schedule.ActStop:
		l.stops.add(d.Session.ID, func() { l.stop(j) })
	case schedule.ActMeasure:
		l.stops.add(d.Session.ID, func() { l.measure(j) })
	case schedule.ActAgain:
		l.starts.add(d.Session.ID, func() { l.again(j) })
	default:
		l.starts.add(d.Session.ID, func() { l.start(j) })
	}
}

// runsBefore returns the runs of an agent's dependencies.
func runsBefore(d *liveSession, p *agency.PlanAgent) []agency.RunID {
	positions := []int{}
	for _, id := range p.After {
		positions = append(positions, d.Position(id))
	}
	slices.Sort(positions)
	runs := []agency.RunID{}
	for _, i := range positions {
		runs = append(runs, d.Agent(i).Run)
	}
	return runs
}

// over reports the end of a job to the loop.
func (s *Scheduler) over(j *job, failure error) {
	s.enqueue(note{session: j.session.ID, agent: j.agent.Position, over: true, failure: failure})
}

// pause waits before a retry.
func (s *Scheduler) pause() {
	select {
	case <-time.After(tryAgain):
	case <-s.ctx.Done():
	}
}

// start begins an agent: first its base, then the intent with the id of a new run, then the run. If
// a crash leaves the intent without its run, a new id is drawn: nothing has the old one, and it is
// never used again.
func (s *Scheduler) start(j *job) {
	commit, err := s.base(j.life, j)
	want := Start{Session: &j.session, Agent: j.plan, Branch: agency.AgentBranch(j.session.ID, j.agent.ID), Commit: commit, Env: j.env}
	if commit != "" {
		want.After = j.after[0]
	}
	if err == nil {
		err = s.Runs.MayStart(s.ctx, want)
	}
	if err != nil {
		s.failBeforeCreate(j, err)
		return
	}
	killpoint.At("scheduler.start.based")
	want.ID = agency.NewRunID(s.Now(), s.random10())
	if !s.begin(j, want.ID) {
		return
	}
	killpoint.At("scheduler.start.recorded")
	err = s.startRun(j, want)
	killpoint.At("scheduler.start.made")
	s.over(j, err)
}

// startRun starts a run by the first of its names that is free.
func (s *Scheduler) startRun(j *job, start Start) error {
	var err error
	for _, name := range runNames(&j.agent) {
		start.Name = name
		if err = s.Runs.Start(s.ctx, start); !agency.IsCode(err, agency.CodeNameExists) {
			return err
		}
	}
	return err
}

// runNames returns the possible names of an agent's run, best first: its own name, then one with
// its session; the last is no name.
func runNames(a *agency.SessionAgent) []string {
	const most = 40
	hash := string(a.Session)[len(a.Session)-8:]
	names := []string{}
	for _, word := range []string{a.Name, a.ID} {
		slug := strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			case r >= 'A' && r <= 'Z':
				return r - 'A' + 'a'
			default:
				return '-'
			}
		}, word), "-")
		for strings.Contains(slug, "--") {
			slug = strings.ReplaceAll(slug, "--", "-")
		}
		if slug == "" {
			continue
		}
		if slug[0] <= '9' {
			slug = "a" + slug
		}
		for _, n := range []int{4, 6, 8} {
			name := strings.TrimRight(slug[:min(len(slug), most-1-n)], "-") + "-" + hash[:n]
			if agency.CheckName(name) == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return append(names, "")
}

// begin writes the intent of a job into the record. When it returns false there is nothing to do,
// and the loop knows.
func (s *Scheduler) begin(j *job, id agency.RunID) bool {
	applied := false
	var changed *agency.SessionAgent
	state, err := s.Store.ChangeSession(s.ctx, j.session.ID, []string{j.agent.ID}, func(session *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		changed = agents[0]
		if applied = j.action.Apply(session, changed, id, s.Now()); !applied {
			return nil, nil
		}
		return []agency.EventDraft{changed.EventDraft()}, nil
	})
	if err != nil {
		s.complain("record the start of an agent", err, "session", j.session.ID, "agent", j.agent.ID)
		s.pause()
		s.over(j, nil)
		return false
	}
	s.enqueue(note{session: j.session.ID, agent: j.agent.Position, state: state, record: changed, over: !applied})
	return applied
}

// failBeforeCreate handles a start that failed before its run was made. If the user must decide,
// the agent stays queued until the session is resumed; any other failure counts as a failed
// creation of the run.
func (s *Scheduler) failBeforeCreate(j *job, failure error) {
	if s.ctx.Err() != nil {
		return
	}
	e := agency.AsError(failure)
	switch {
	case j.life.Err() != nil: // the session is cancelled, and so will this agent be
		s.over(j, nil)
		return
	case j.agent.Status != agency.AgentQueued:
		s.over(j, failure)
		return
	case !schedule.WaitsForUser(e.Code):
		if s.begin(j, agency.NewRunID(s.Now(), s.random10())) {
			s.over(j, failure)
		}
		return
	}
	var changed *agency.SessionAgent
	state, err := s.Store.ChangeSession(s.ctx, j.session.ID, []string{j.agent.ID}, func(_ *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		changed = agents[0]
		if changed.Status != agency.AgentQueued {
			return nil, nil
		}
		changed.Error = agency.WaitingWord + wayOut(e)
		return []agency.EventDraft{changed.EventDraft()}, nil
	})
	if err != nil {
		s.complain("record that an agent waits", err, "session", j.session.ID, "agent", j.agent.ID)
		s.pause()
		s.over(j, nil)
		return
	}
	s.enqueue(note{session: j.session.ID, agent: j.agent.Position, state: state, record: changed, over: true})
}

// wayOut returns why a start failed, with a hint for codes whose hint is always the same.
func wayOut(e *agency.Error) string {
	switch e.Code {
	case agency.CodeTrustRequired:
		return e.Message + ": agency trust, then agency session resume"
	case agency.CodeMergeConflict:
		return e.Message + ": fix it in the worktree of one of them, then agency session resume"
	case agency.CodeBadRef:
		return e.Message + ": make it one, then agency session resume"
	default:
		return e.Message
	}
}

// again begins another attempt of an agent's run.
func (s *Scheduler) again(j *job) {
	if !s.begin(j, "") {
		return
	}
	killpoint.At("scheduler.again.recorded")
	reason := j.agent.Error
	if strings.HasPrefix(reason, agency.WaitingWord) {
		reason = "" // not the end of the previous attempt, which has a record of its own
	}
	err := s.Runs.Resume(s.ctx, ResumeRequest{ID: j.agent.Run, Session: &j.session, Agent: j.plan, Reason: reason, Env: j.env})
	killpoint.At("scheduler.again.made")
	s.over(j, err)
}

// stop ends an agent's attempt. The reason is recorded first, since afterwards the stop would look
// like one by hand. In a cancelled session it ends whichever attempt is alive.
func (s *Scheduler) stop(j *job) {
	attempt := j.action.Attempt
	switch {
	case attempt != 0 && !s.begin(j, ""):
		return
	case attempt == 0 && j.session.CancelAt == nil:
		attempt = j.agent.Stopping
	}
	killpoint.At("scheduler.stop.recorded")
	err := s.Runs.Stop(s.ctx, j.agent.Run, attempt)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.complain("stop agent", err, "session", j.session.ID, "agent", j.agent.ID)
		s.pause()
	}
	killpoint.At("scheduler.stop.made")
	s.over(j, nil)
}

// measure measures whether an inactive agent works.
func (s *Scheduler) measure(j *job) {
	activity, err := s.Runs.Activity(s.ctx, j.agent.Run)
	if err != nil {
		s.complain("measure agent", err, "session", j.session.ID, "agent", j.agent.ID)
		s.pause()
		s.over(j, nil)
		return
	}
	s.enqueue(note{
		session: j.session.ID, agent: j.agent.Position, over: true,
		measurement: &measurement{run: j.agent.Run, attempt: j.action.Attempt, activity: activity, at: s.Now()},
	})
}

func (s *Scheduler) random10() [10]byte {
	var b [10]byte
	s.Random(b[:])
	return b
}
