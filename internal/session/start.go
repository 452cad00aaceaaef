package session

import (
	"context"
	"fmt"
	"path/filepath"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/plan"
	"agency/internal/resolve"
	"agency/internal/scheduler"
)

// Start checks a plan, records it as a session, and starts it.
func (all *Sessions) Start(ctx context.Context, req api.StartSessionRequest) (api.SessionResponse, error) {
	may, err := all.Policy.Permission(ctx, &req.Config, &req.Env)
	if err != nil {
		return api.SessionResponse{}, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.SessionResponse{}, err
	}
	p, repo, warnings, err := all.loadPlan(ctx, req.Plan, req.Dir, req.Env, cfg, may)
	if err != nil {
		return api.SessionResponse{}, err
	}
	fewer, free, err := may.ReserveParallel(ctx, &p.MaxParallel)
	if err != nil {
		return api.SessionResponse{}, err
	}
	defer free()
	if fewer != "" {
		warnings = append(warnings, fewer)
	}
	hash, err := sourceHash(p.Path, repo.Toplevel, p)
	if err != nil {
		return api.SessionResponse{}, err
	}
	if err := all.pinPlan(ctx, p, repo, req.Dir, cfg); err != nil {
		return api.SessionResponse{}, err
	}
	if err := all.checkSetups(ctx, cfg, p, repo, req.Dir, req.Env); err != nil {
		return api.SessionResponse{}, err
	}
	s, err := all.begin(ctx, cfg, req.Dir, req.Config)
	if err != nil {
		return api.SessionResponse{}, err
	}
	s.Name, s.Source, s.PlanPath, s.PlanHash, s.MaxParallel = p.Name, req.Source, p.Path, hash, p.MaxParallel
	if s.Source == "" {
		s.Source = scheduler.DefaultSource
	}
	if err := scheduler.CheckSource(s.Source); err != nil {
		return api.SessionResponse{}, err
	}
	if p.Path != "" {
		s.SourceFile = within(s.Repo.Root, p.Path)
	}
	if err := all.Scheduler.Create(ctx, s, p, newAgents(s, p), req.Env); err != nil {
		return api.SessionResponse{}, err
	}
	all.Files.Write(ctx, s.ID) // the client may read its files at once
	resp, err := all.response(ctx, s)
	resp.Warnings = append(resp.Warnings, warnings...)
	return resp, err
}

// begin returns a new session of agency's own in the repository of a folder, without a plan yet.
func (all *Sessions) begin(ctx context.Context, cfg *config.Config, dir, configPath string) (*agency.Session, error) {
	owner, err := all.Policy.Caller(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := all.Repos.At(ctx, dir)
	if err != nil {
		return nil, err
	}
	now := all.Now()
	s := &agency.Session{
		ID: agency.NewSessionID(now, [4]byte(all.random(4))), Repo: repo, Status: agency.SessionRunning, Owner: owner,
		Config: configPath, StartedAt: now,
	}
	s.SetStatusDir(cfg.Session.StatusDir)
	return s, nil
}

// newAgents returns the records of agents that have not begun.
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

// within returns a path relative to a folder when it is inside it, else the path itself.
func within(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// pinPlan fixes in a plan what would otherwise depend on where and when its agents start: the
// runners that the configuration chooses, and the branch of the user's linked worktree. Without a
// branch, and in the worktree of a run, that is the commit there.
func (all *Sessions) pinPlan(ctx context.Context, p *agency.Plan, repo agency.Repo, dir string, cfg *config.Config) error {
	project, err := all.Projects.Of(ctx, repo)
	if err != nil {
		return err
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		spec, _, err := resolve.Agent(cfg, &project, a)
		if err != nil {
			return err
		}
		a.Runner = resolve.Runner(&spec).Name
		if spec.BaseRef == "HEAD" && a.Base != agency.BaseDeps && repo.Toplevel != repo.Root {
			if a.Base, err = all.baseAt(ctx, repo, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// branchRefs is the beginning of the full name of a branch, which no tag can have.
const branchRefs = "refs/heads/"

// baseAt returns the full name of the branch, or else the commit, of a worktree that is not the
// main one.
func (all *Sessions) baseAt(ctx context.Context, repo agency.Repo, dir string) (string, error) {
	branch, err := all.Repos.LinkedBranch(ctx, repo)
	if err != nil {
		return "", err
	}
	if branch != "" {
		return branchRefs + branch, nil
	}
	return all.Git.ResolveCommit(ctx, dir, "HEAD")
}

// sourceHash returns the hash of the content of a plan's file or folder alone, without the
// overrides of the command line. A plan without a file is its own source. Its prompts must be in
// root.
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

// checkPlan refuses to continue a session whose plan has changed, unless the client accepts that.
// newer is the hint for a client that wants the new plan.
func (all *Sessions) checkPlan(ctx context.Context, s *agency.Session, changed bool, newer string) error {
	if s.PlanPath == "" || changed {
		return nil
	}
	refuse := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodePlanChanged, format, args...).WithDetail("plan", s.PlanPath)
	}
	root := s.Repo.Root
	if repo, err := all.Git.Discover(ctx, filepath.Dir(s.PlanPath)); err == nil {
		root = repo.Toplevel // its caller's worktree, possibly another one
	}
	const asItWas = "to continue with the plan as it was at the start: --plan-changed ok"
	hash, err := sourceHash(s.PlanPath, root, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refuse("the plan %s cannot be compared with what it was at the start: %w", s.PlanPath, err).WithHint(asItWas)
	case hash != s.PlanHash:
		return refuse("the plan %s has changed since session %s began", s.PlanPath, s.ID).WithHint("%s; with the new plan: %s", asItWas, newer)
	}
	return nil
}

// Pause stops a session from starting more agents.
func (all *Sessions) Pause(ctx context.Context, req api.SessionRequest) (api.SessionResponse, error) {
	s, err := all.Finder.Find(ctx, req.Session, req.Dir)
	if err == nil {
		s, err = all.Scheduler.Pause(ctx, s.ID, agency.PausedByHand)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return all.response(ctx, s)
}

// Resume continues a paused session. It refuses a session whose plan has changed, unless the client
// accepts that.
func (all *Sessions) Resume(ctx context.Context, req api.ResumeSessionRequest) (api.SessionResponse, error) {
	s, err := all.Finder.Find(ctx, req.Session, req.Dir)
	if err == nil && !s.Status.Final() {
		err = all.checkPlan(ctx, s, req.PlanChanged, fmt.Sprintf("agency session cancel %s, then agency session retry %s --plan-changed new", s.ID, s.ID))
	}
	if err == nil {
		s, err = all.Scheduler.Resume(ctx, s.ID)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return all.response(ctx, s)
}

// Cancel ends a session and its agents.
func (all *Sessions) Cancel(ctx context.Context, req api.SessionRequest) (api.SessionResponse, error) {
	s, err := all.Finder.Find(ctx, req.Session, req.Dir)
	if err == nil {
		s, err = all.Scheduler.Cancel(ctx, s.ID)
	}
	if err != nil {
		return api.SessionResponse{}, err
	}
	return all.response(ctx, s)
}
