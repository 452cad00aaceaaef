package session

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/schedule"
	"agency/internal/scheduler"
	"agency/internal/sessionfile"
)

// Create records a session whose agents another program runs.
func (all *Sessions) Create(ctx context.Context, req api.CreateSessionRequest) (api.SessionResponse, error) {
	if _, err := all.Policy.Permission(ctx, &req.Config, &req.Env); err != nil {
		return api.SessionResponse{}, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.SessionResponse{}, err
	}
	owner, err := all.Policy.Caller(ctx)
	if err != nil {
		return api.SessionResponse{}, err
	}
	repo, err := all.Repos.At(ctx, req.Dir)
	if err != nil {
		return api.SessionResponse{}, err
	}
	if req.SourceFile != "" {
		if req.SourceFile = within(repo.Root, req.SourceFile); !filepath.IsLocal(req.SourceFile) {
			return api.SessionResponse{}, agency.Errorf(agency.CodeUsage, "the source file %q does not lie in the repository %s", req.SourceFile, repo.Root).
				WithHint("name it from the root of the repository on")
		}
	}
	s, err := all.Scheduler.CreateExternal(ctx, scheduler.External{
		Repo: repo, StatusDir: cfg.Session.StatusDir, Source: req.Source, SourceFile: req.SourceFile, Name: req.Name,
		Owner: owner, Agents: req.Agents, File: req.File,
	})
	if err != nil {
		return api.SessionResponse{}, err
	}
	all.Files.Write(ctx, s.ID) // the client may read its files at once
	return all.response(ctx, s)
}

// Update applies the reports of a request in order, up to the first that is refused.
func (all *Sessions) Update(ctx context.Context, req api.UpdateSessionRequest) (api.SessionResponse, error) {
	s, err := all.Finder.Find(ctx, req.Session, req.Dir)
	if err != nil {
		return api.SessionResponse{}, err
	}
	if req.MaxParallel == 0 && len(req.Updates) == 0 {
		return api.SessionResponse{}, agency.Errorf(agency.CodeUsage, "there is nothing to update").
			WithHint("agency session update %s --agent 001 start", s.ID)
	}
	if req.MaxParallel != 0 {
		if s, err = all.Scheduler.SetParallel(ctx, s.ID, req.MaxParallel); err != nil {
			return api.SessionResponse{}, err
		}
	}
	for _, u := range req.Updates {
		if err := all.Scheduler.Update(ctx, s.ID, []scheduler.Update{UpdateOf(&u)})[0]; err != nil {
			return api.SessionResponse{}, err
		}
	}
	if s, err = all.Store.Session(ctx, s.ID); err != nil {
		return api.SessionResponse{}, err
	}
	return all.response(ctx, s)
}

// UpdateOf returns a client's report as an update for the scheduler.
func UpdateOf(u *api.SessionUpdate) scheduler.Update {
	return scheduler.Update{Agent: u.Agent, Action: string(u.Action), PID: u.PID, ExitCode: u.ExitCode, Error: u.Error}
}

// List returns the sessions of a repository, or all without one.
func (all *Sessions) List(ctx context.Context, req api.ListSessionsRequest) (api.ListSessionsResponse, error) {
	filter := agency.SessionFilter{Live: req.Live, Limit: req.Limit}
	resp := api.ListSessionsResponse{Sessions: []api.Session{}}
	if req.Dir != "" {
		repo, err := all.Git.Discover(ctx, req.Dir)
		if err != nil || repo.Fingerprint == "" {
			return resp, err // agency was never used here
		}
		filter.Repo = repo.Fingerprint
	}
	sessions, err := all.Store.Sessions(ctx, filter)
	if err != nil {
		return resp, err
	}
	for i := range sessions {
		view, err := all.view(ctx, &sessions[i])
		if err != nil {
			return resp, err
		}
		resp.Sessions = append(resp.Sessions, view)
	}
	return resp, nil
}

// Remove removes a session, or those that ended long enough ago. Without Apply it removes none of
// the latter, and returns which it would remove.
func (all *Sessions) Remove(ctx context.Context, req api.RemoveSessionsRequest) (api.RemoveSessionsResponse, error) {
	age, err := api.Milliseconds("older_than_ms", req.OlderThanMS)
	if err != nil {
		return api.RemoveSessionsResponse{}, err
	}
	resp := api.RemoveSessionsResponse{Sessions: []api.Session{}, Warnings: []string{}, Applied: req.Apply || req.Session != ""}
	var sessions []agency.Session
	if req.Session != "" {
		s, err := all.Finder.Find(ctx, req.Session, req.Dir)
		if err != nil {
			return resp, err
		}
		sessions = append(sessions, *s)
	} else {
		ended, err := all.Store.Sessions(ctx, agency.SessionFilter{})
		if err != nil {
			return resp, err
		}
		for i := range ended {
			if s := &ended[i]; s.CompletedAt != nil && all.Now().Sub(*s.CompletedAt) >= age {
				sessions = append(sessions, *s)
			}
		}
	}
	for i := range sessions {
		s := &sessions[i]
		view, err := all.view(ctx, s)
		if err != nil {
			return resp, err
		}
		if resp.Applied {
			warning, err := all.Files.Remove(ctx, s)
			if err != nil {
				return resp, err
			}
			if warning != "" {
				resp.Warnings = append(resp.Warnings, warning)
			}
		}
		resp.Sessions = append(resp.Sessions, view)
	}
	return resp, nil
}

func (all *Sessions) response(ctx context.Context, s *agency.Session) (api.SessionResponse, error) {
	view, err := all.view(ctx, s)
	return api.SessionResponse{Session: view, Warnings: []string{}}, err
}

// view returns the client's view of a session.
func (all *Sessions) view(ctx context.Context, s *agency.Session) (api.Session, error) {
	view := headView(s)
	if s.Status.Final() || s.External || s.Counts.Settled() {
		return view, nil
	}
	agents, err := all.Store.SessionAgents(ctx, s.ID)
	if err == nil {
		view.Waiting, err = all.waiting(ctx, s, agents)
	}
	return view, err
}

// headView returns the client's view of a session without its agents.
func headView(s *agency.Session) api.Session {
	view := api.Session{
		ID: s.ID, Name: s.Name, Status: s.Status, Paused: s.Paused, Cancelling: s.CancelAt != nil && !s.Status.Final(), Source: s.Source, SourceFile: s.SourceFile, External: s.External,
		Repo: s.Repo.Root, MaxParallel: s.MaxParallel, RetryOf: s.RetryOf, Dir: s.Dir, PlanPath: s.PlanPath,
		StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Summary: s.Counts,
	}
	if report := s.ReportPath(); s.Status.Final() && !s.External && file.IsRegular(report) {
		view.ReportPath = report
	}
	return view
}

// waiting counts the agents of a session that need the user.
func (all *Sessions) waiting(ctx context.Context, s *agency.Session, agents []agency.SessionAgent) (n int, err error) {
	if s.Status.Final() || s.External || s.Counts.Settled() {
		return 0, nil
	}
	runs, err := all.Store.SessionRuns(ctx, s.ID, true)
	if err != nil {
		return 0, err
	}
	for i := range agents {
		attempt, label := 0, agency.Label("")
		if r := runs[agents[i].Run]; r != nil {
			attempt, label = r.Attempt.Number, all.Observer.Derive(r).Label
		}
		if agents[i].NeedsUser(attempt, label) {
			n++
		}
	}
	return n, nil
}

// Show returns everything about a session.
func (all *Sessions) Show(ctx context.Context, req api.SessionRequest) (api.ShowSessionResponse, error) {
	found, err := all.Finder.LookUp(ctx, req.Session, req.Dir)
	if err != nil {
		return api.ShowSessionResponse{}, err
	}
	return all.show(ctx, found.ID)
}

// show returns everything about a session, from the same moment.
func (all *Sessions) show(ctx context.Context, id agency.SessionID) (api.ShowSessionResponse, error) {
	var none api.ShowSessionResponse
	s, agents, err := all.Store.SessionSince(ctx, id, time.Time{})
	if err != nil {
		return none, err
	}
	resp := api.ShowSessionResponse{Session: headView(s), Agents: make([]api.SessionAgent, len(agents)), Waves: []api.Wave{}}
	plan, err := all.planOf(ctx, s)
	if err != nil {
		return none, err
	}
	results, err := all.Store.SessionResults(ctx, id)
	if err != nil {
		return none, err
	}
	runs, err := all.Store.SessionRuns(ctx, id, false)
	if err != nil {
		return none, err
	}
	file := sessionfile.File{Agents: make([]sessionfile.Object, len(agents))}
	for i := range agents {
		a := &agents[i]
		file.Agents[i] = sessionfile.AgentObject(a)
		var planned *agency.PlanAgent
		if plan != nil {
			planned = &plan.Agents[i]
		}
		resp.Agents[i] = all.agentView(s, a, planned, runs[a.Run])
		if resp.Agents[i].NeedsUser {
			resp.Session.Waiting++
		}
		if result, ok := results[a.ID]; ok {
			result.Nested = append([]string{}, result.Nested...) // a list, never null
			result.Usage = result.Usage.Listed()
			resp.Agents[i].Result = &result
		}
	}
	if plan != nil {
		all.addWaits(resp.Agents, s, plan, agents, runs)
	}
	if err := all.addLanded(ctx, resp.Agents, s, plan, agents); err != nil {
		return none, err
	}
	waves := sessionfile.Waves(agents)
	for _, w := range waves {
		resp.Waves = append(resp.Waves, api.Wave(w))
	}
	file.Head = sessionfile.Head(s, waves)
	resp.StatusFile = file.Encode()
	return resp, nil
}

// planOf returns the plan of a session; nil when another program runs its agents.
func (all *Sessions) planOf(ctx context.Context, s *agency.Session) (*agency.Plan, error) {
	data, err := all.Store.SessionPlan(ctx, s.ID)
	if err != nil || data == nil {
		return nil, err
	}
	var plan agency.Plan
	if err := json.Unmarshal(data, &plan); err != nil || len(plan.Agents) != s.Counts.Total {
		return nil, agency.Errorf(agency.CodeDBError, "the plan of session %s cannot be read", s.ID).WithHint("agency doctor")
	}
	return &plan, nil
}

// addWaits adds to the views of agents why they have no attempt.
func (all *Sessions) addWaits(views []api.SessionAgent, s *agency.Session, plan *agency.Plan, agents []agency.SessionAgent, runs map[agency.RunID]*agency.Run) {
	state := schedule.NewState(*s, plan, agents, schedule.DefaultRetryPolicy())
	for i := range agents {
		if r := runs[agents[i].Run]; r != nil {
			state.SetFacts(i, schedule.RunFacts{Made: true, Attempt: r.Attempt.Number})
		}
	}
	for i, wait := range state.Waits(schedule.Clock{Now: all.Now(), Elapsed: all.Elapsed}, all.Scheduler.Limited()) {
		if views[i].WaitReason = wait.Reason; !wait.Until.IsZero() {
			views[i].NotBefore = &wait.Until
		}
	}
}

// agentView returns the client's view of an agent, with the status of its run; r is nil before the
// run is made.
func (all *Sessions) agentView(s *agency.Session, a *agency.SessionAgent, planned *agency.PlanAgent, r *agency.Run) api.SessionAgent {
	view := api.SessionAgent{
		ID: a.ID, Name: a.Name, PromptPath: a.PromptPath, Wave: a.Wave, Status: a.Status, StartedAt: a.StartedAt, CompletedAt: a.CompletedAt,
		ExitCode: a.ExitCode, PID: a.PID, LogFile: a.LogFile, Model: a.Model, Error: a.Error, After: []string{},
		RunID: a.Run, NotBefore: a.NotBefore,
	}
	if planned != nil {
		view.After, view.Runner = append(view.After, planned.After...), planned.Runner
	}
	if s.External {
		return view
	}
	if a.Run != "" {
		view.Branch = agency.AgentBranch(s.ID, a.ID)
	}
	if r != nil {
		status := all.Observer.Derive(r)
		view.Run, view.Label, view.Note, view.Branch = r.Ref(), status.Label, status.Summary, r.Branch
		view.Runner, view.Attempts = r.Runner.Name, r.Attempt.Number
	}
	if a.Status == agency.AgentRunning && a.Stopping == view.Attempts && a.StopReason != "" {
		view.Note = a.StopReason + "; it is being ended"
	}
	if a.Stopping > a.Attempt { // its time is that of the attempt after the one that is being ended
		view.NotBefore = nil
	}
	view.NeedsUser = a.NeedsUser(view.Attempts, view.Label)
	return view
}
