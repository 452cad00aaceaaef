package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/plan"
)

// startSession checks a plan, writes it down as a session, and has its agents begin.
func (d *Daemon) startSession(ctx context.Context, req api.StartSessionRequest) (api.SessionResponse, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.SessionResponse{}, err
	}
	p, repo, warnings, err := d.loadPlan(ctx, req.Plan, req.Dir, req.Env, cfg)
	if err != nil {
		return api.SessionResponse{}, err
	}
	hash, err := sourceHash(p.Path, repo.Toplevel, p)
	if err != nil {
		return api.SessionResponse{}, err
	}
	if err := d.pinPlan(ctx, p, repo, req.Dir, cfg); err != nil {
		return api.SessionResponse{}, err
	}
	s, err := d.newSession(ctx, cfg, req.Dir, req.Config)
	if err != nil {
		return api.SessionResponse{}, err
	}
	s.Name, s.Source, s.PlanPath, s.PlanHash, s.MaxParallel = p.Name, req.Source, p.Path, hash, p.MaxParallel
	if s.Source == "" {
		s.Source = "orchestrate"
	}
	if p.Path != "" {
		s.SourceFile = within(s.Repo.Root, p.Path)
	}
	if err := d.sched.Create(ctx, s, p, newAgents(s, p), req.Env); err != nil {
		return api.SessionResponse{}, err
	}
	d.files.Write(ctx) // whoever made it may look at once
	resp, err := d.sessionResponse(ctx, s)
	resp.Warnings = append(resp.Warnings, warnings...)
	return resp, err
}

// newSession is a session of agency's own in the repository of a folder that begins now, without a plan yet.
func (d *Daemon) newSession(ctx context.Context, cfg *config.Config, dir, configPath string) (*agency.Session, error) {
	owner, err := d.caller(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := d.sup.RepoOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	now := d.clock.Now()
	s := &agency.Session{
		ID: agency.NewSessionID(now, [4]byte(randomBytes(4))), Repo: repo, Status: agency.SessionRunning, Owner: owner,
		Config: configPath, StartedAt: now,
	}
	s.Place(cfg.Session.StatusDir)
	return s, nil
}

// newAgents are the records of agents that have not begun.
func newAgents(s *agency.Session, p *agency.Plan) []agency.SessionAgent {
	agents := make([]agency.SessionAgent, len(p.Agents))
	for i := range p.Agents {
		a := &p.Agents[i]
		agents[i] = agency.SessionAgent{
			Session: s.ID, Position: i, ID: a.ID, Name: a.Name, Wave: a.Wave, Status: agency.AgentQueued, LogFile: s.LogFile(a.ID), Model: a.Model,
		}
		if a.PromptPath != "" {
			agents[i].PromptPath = within(s.Repo.Root, a.PromptPath)
		}
	}
	return agents
}

// within is a path relative to a folder when it lies in there, else the path itself.
func within(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// pinPlan writes into a plan what would otherwise depend on where and when its agents start: the runners that the configuration
// chooses, and the commit of the caller's own worktree.
func (d *Daemon) pinPlan(ctx context.Context, p *agency.Plan, repo agency.Repo, dir string, cfg *config.Config) error {
	project, err := d.sup.ProjectOf(ctx, repo)
	if err != nil {
		return err
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		spec, _, err := agentSpec(cfg, &project, a)
		if err != nil {
			return err
		}
		a.Runner = specRunner(&spec).Name
		if spec.BaseRef == "HEAD" && a.Base != agency.BaseDeps && repo.Toplevel != repo.Root {
			if a.Base, err = d.git.ResolveCommit(ctx, dir, "HEAD"); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceHash is the hash of what the file or folder of a plan says by itself, without what the command line lays over it. A plan
// that has none is its own source. Its prompts lie in root.
func sourceHash(path, root string, p *agency.Plan) (string, error) {
	if path == "" {
		return p.Hash(), nil
	}
	read, _, err := plan.Load(plan.Source{Path: path, Dir: filepath.Dir(path), Root: root})
	if err != nil {
		return "", err
	}
	return read.Hash(), nil
}

// checkPlan refuses to go on with a session whose plan says something else by now, unless changed says that this is fine.
func (d *Daemon) checkPlan(ctx context.Context, s *agency.Session, changed bool) error {
	if s.PlanPath == "" || changed {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return agency.Errorf(agency.CodePlanChanged, format, args...).WithDetail("plan", s.PlanPath).
			WithHint("to go on with the plan as it was at the start: --plan-changed ok; to run the new one: agency session start %s", s.PlanPath)
	}
	root := s.Repo.Root
	if repo, err := d.git.Discover(ctx, filepath.Dir(s.PlanPath)); err == nil {
		root = repo.Toplevel // of another worktree, or the same
	}
	hash, err := sourceHash(s.PlanPath, root, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refuse("the plan %s cannot be compared with what it was at the start: %w", s.PlanPath, err)
	case hash != s.PlanHash:
		return refuse("the plan %s has changed since session %s began", s.PlanPath, s.ID)
	}
	return nil
}

func (d *Daemon) pauseSession(ctx context.Context, req api.SessionRequest) (api.SessionResponse, error) {
	s, err := d.session(ctx, req.Session, req.Dir)
	if err == nil {
		s, err = d.sched.Pause(ctx, s.ID, agency.PausedByHand)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return d.sessionResponse(ctx, s)
}

func (d *Daemon) resumeSession(ctx context.Context, req api.ResumeSessionRequest) (api.SessionResponse, error) {
	s, err := d.session(ctx, req.Session, req.Dir)
	if err == nil && !s.Status.Final() {
		err = d.checkPlan(ctx, s, req.PlanChanged)
	}
	if err == nil {
		s, err = d.sched.Resume(ctx, s.ID)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return d.sessionResponse(ctx, s)
}

func (d *Daemon) cancelSession(ctx context.Context, req api.SessionRequest) (api.SessionResponse, error) {
	s, err := d.session(ctx, req.Session, req.Dir)
	if err == nil {
		s, err = d.sched.Cancel(ctx, s.ID)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return d.sessionResponse(ctx, s)
}

// retrySession begins a session with the plan of a settled one. What was complete there is complete here, with its runs, so that
// what comes after it can start from its results.
func (d *Daemon) retrySession(ctx context.Context, req api.RetrySessionRequest) (api.SessionResponse, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.SessionResponse{}, err
	}
	old, err := d.session(ctx, req.Session, req.Dir)
	if err != nil {
		return api.SessionResponse{}, err
	}
	switch {
	case old.Outside:
		return api.SessionResponse{}, agency.Errorf(agency.CodeInvalidState, "the agents of session %s are run by somebody else", old.ID)
	case !old.Status.Final():
		return api.SessionResponse{}, agency.Errorf(agency.CodeInvalidState, "session %s is running", old.ID).WithHint("agency session wait %s", old.ID)
	}
	if err := d.checkPlan(ctx, old, req.PlanChanged); err != nil {
		return api.SessionResponse{}, err
	}
	p, agents, err := d.sched.Plan(ctx, old.ID)
	if err != nil {
		return api.SessionResponse{}, err
	}
	s, err := d.newSession(ctx, cfg, old.Repo.Root, req.Config)
	if err != nil {
		return api.SessionResponse{}, err
	}
	s.Name, s.Source, s.SourceFile, s.PlanPath, s.PlanHash, s.MaxParallel = old.Name, old.Source, old.SourceFile, old.PlanPath, old.PlanHash, old.MaxParallel
	s.RetryOf = old.ID
	taken, open := takeOver(newAgents(s, p), agents, req.Failed)
	if !open {
		return api.SessionResponse{}, agency.Errorf(agency.CodeInvalidState, "session %s left nothing undone", old.ID).WithHint("agency session show %s", old.ID)
	}
	if err := d.sched.Create(ctx, s, p, taken, req.Env); err != nil {
		return api.SessionResponse{}, err
	}
	return d.sessionResponse(ctx, s)
}

// takeOver fills the agents of a new session with what is over in an old one. With failedOnly that is also what was cancelled
// there for another reason than a failure. It says whether something is left to do.
func takeOver(fresh, old []agency.SessionAgent, failedOnly bool) (agents []agency.SessionAgent, open bool) {
	for i := range fresh {
		a, before := &fresh[i], &old[i]
		kept := before.Status == agency.AgentComplete || failedOnly && before.Status == agency.AgentCancelled && !strings.HasSuffix(before.Error, " failed")
		if !kept {
			open = true
			continue
		}
		taken := *before
		taken.Session, taken.LogFile = a.Session, a.LogFile
		*a = taken
	}
	return fresh, open
}

// waitSession waits until a session has settled, or with attention until somebody is needed. What it returns when the time is up
// is running, and needs nobody.
func (d *Daemon) waitSession(ctx context.Context, req api.WaitSessionRequest) (api.ShowSessionResponse, error) {
	s, err := d.session(ctx, req.Session, req.Dir)
	if err != nil {
		return api.ShowSessionResponse{}, err
	}
	ctx, cancel := d.untilStop(ctx)
	defer cancel()
	late := make(<-chan time.Time)
	if req.TimeoutMS > 0 {
		timer := time.NewTimer(time.Duration(req.TimeoutMS) * time.Millisecond)
		defer timer.Stop()
		late = timer.C
	}
	// Some statuses come with time alone, without an event.
	clock := time.NewTicker(d.active.config().Watchdog.PollInterval)
	defer clock.Stop()
	for timedOut := false; ; {
		changed := d.store.Changed()
		over, err := d.waitedFor(ctx, s.ID, req.Attention)
		if err != nil {
			return api.ShowSessionResponse{}, err
		}
		if over || timedOut {
			return d.showSession(ctx, api.SessionRequest{Session: string(s.ID)})
		}
		select {
		case <-changed:
		case <-clock.C:
		case <-late:
			timedOut = true
		case <-ctx.Done():
			return api.ShowSessionResponse{}, context.Cause(ctx)
		}
	}
}

// waitedFor says whether a session is where its waiters want it.
func (d *Daemon) waitedFor(ctx context.Context, id agency.SessionID, attention bool) (bool, error) {
	s, err := d.store.Session(ctx, id)
	if err != nil || s.Status.Final() {
		return true, err
	}
	return attention && d.needsPerson(ctx, s), nil
}

// needsPerson says whether a session, or one of its agents, goes no further until somebody acts.
func (d *Daemon) needsPerson(ctx context.Context, s *agency.Session) bool {
	if s.Paused != "" {
		return true
	}
	agents, err := d.store.SessionAgents(ctx, s.ID)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(agents, func(a agency.SessionAgent) bool {
		if a.Status != agency.AgentRunning || a.Run == "" {
			return a.Status == agency.AgentQueued && a.Error != ""
		}
		r, err := d.store.Run(ctx, a.Run)
		return err == nil && r.Attempt.Number > a.Attempt && d.sup.Derive(r).Label.NeedsPerson()
	})
}
