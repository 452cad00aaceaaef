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

// job is one action that takes long, with all that it needs: the state belongs to the loop.
type job struct {
	action  schedule.Action
	session agency.Session
	agent   agency.SessionAgent
	plan    *agency.PlanAgent
	env     []string
	life    context.Context // ends when the session is cancelled
	bases   *bases
	after   []agency.RunID // of those that it comes after, in the order of the plan
}

// dispatch has an action carried out beside the loop. Until the note that it is over, nothing else is decided for its agent.
func (l *loop) dispatch(d *liveSession, x *schedule.Action) {
	j := &job{
		action: *x, session: d.Session, agent: *d.Agent(x.Agent), plan: &d.Plan.Agents[x.Agent], env: d.env, life: d.life, bases: d.bases,
	}
	if x.Kind == schedule.ActStart && j.plan.Base == agency.BaseDeps {
		j.after = runsBefore(d, j.plan)
	}
	d.SetBusy(x.Agent, true)
	switch x.Kind {
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

// runsBefore are the runs of the agents that one comes after.
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

// over tells the loop that a job has been done.
func (s *Scheduler) over(j *job, failure error) {
	s.enqueue(note{session: j.session.ID, agent: j.agent.Position, over: true, failure: failure})
}

// pause waits before something is tried again.
func (s *Scheduler) pause() {
	select {
	case <-time.After(tryAgain):
	case <-s.ctx.Done():
	}
}

// start begins an agent: first its base, then the intent with the id of a new run, then the run. After a crash the intent is
// found without its run, and a new id is drawn: nothing has the old one, and nobody will make it any more.
func (s *Scheduler) start(j *job) {
	commit, err := s.base(j.life, j)
	want := Start{Session: &j.session, Agent: j.plan, Branch: agency.AgentBranch(j.session.ID, j.agent.ID), Commit: commit, Env: j.env}
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

// runNames are what the run of an agent may be called, best first: after its name and its session; the last is to have none.
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

// begin writes the intent of a job into the record. When it is false there is nothing to do, and the loop knows.
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

// failBeforeCreate is what follows from a start that failed before its run was made. Where a person has to decide, the agent stays queued
// until the session is resumed; anything else is as if the run could not be made.
func (s *Scheduler) failBeforeCreate(j *job, failure error) {
	if s.ctx.Err() != nil {
		return
	}
	e := agency.AsError(failure)
	switch {
	case j.life.Err() != nil: // it is cancelled, and so will this agent be
		s.over(j, nil)
		return
	case j.agent.Status != agency.AgentQueued:
		s.over(j, failure)
		return
	case !schedule.WaitsForPerson(e.Code):
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

// wayOut is why a start failed, with what to do about it where the words for it are always the same.
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
		reason = "" // not of the attempt before, whose own record tells
	}
	err := s.Runs.Resume(s.ctx, ResumeRequest{ID: j.agent.Run, Session: &j.session, Agent: j.plan, Reason: reason, Env: j.env})
	killpoint.At("scheduler.again.made")
	s.over(j, err)
}

// stop ends an agent's attempt. Why is in the record first, since afterwards it could not be told from a stop by hand. Of a
// session that was cancelled it ends whichever lives.
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

// measure finds out whether a silent agent works.
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
