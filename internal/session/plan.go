package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/harness"
	"agency/internal/plain"
	"agency/internal/plan"
	"agency/internal/policy"
	"agency/internal/resolve"
)

// loadPlan reads a plan for a client with the working directory dir, and checks all that it can
// before anything starts: the plan itself, the runners and their programs, the presets, and the
// base references. It creates nothing.
func (all *Sessions) loadPlan(ctx context.Context, src api.PlanSource, dir string, env []string, cfg *config.Config, may *policy.Permission) (*agency.Plan, agency.Repo, []string, error) {
	repo, err := all.Git.Discover(ctx, dir)
	if err != nil {
		return nil, agency.Repo{}, nil, err
	}
	project, err := all.Projects.Of(ctx, repo)
	if err != nil {
		return nil, agency.Repo{}, nil, err
	}
	check := &planCheck{git: all.Git, cfg: cfg, may: may, project: &project, dir: dir, env: env, used: map[string]bool{}, bases: map[string]bool{}}
	p, warnings, err := plan.Load(plan.Source{
		Path: src.Path, Text: src.Text, Agents: src.Agents, Prompt: src.Prompt, PromptPath: src.PromptPath,
		Dir: dir, Root: repo.Toplevel,
		Name: src.Name, Base: src.Base, MaxParallel: src.MaxParallel, OnFailure: agency.OnFailure(src.OnFailure), Land: agency.LandBy(src.Land),
		Check: func(p *agency.Plan) error { return check.plan(ctx, p) },
	})
	if err != nil {
		return nil, agency.Repo{}, nil, err
	}
	for _, runner := range slices.Sorted(maps.Keys(p.Limits)) {
		if !check.used[runner] {
			warnings = append(warnings, fmt.Sprintf("the limit of %s applies to no agent of the plan", runner))
		}
	}
	if idle := depsOfOthers(p); len(idle) > 0 {
		warnings = append(warnings, fmt.Sprintf("base is deps, but no agent comes before %s: there are no results to start from, so the usual base is used", strings.Join(idle, ", ")))
	}
	if !project.Parallel && p.MaxParallel > 1 {
		p.MaxParallel = 1
		if len(p.Agents) > 1 {
			warnings = append(warnings, fmt.Sprintf("%s allows one live run at a time, so max_parallel is 1", repo.Root))
		}
	}
	return p, repo, append([]string{}, warnings...), nil
}

// depsOfOthers returns the first agents whose base is the results of others but that come after
// none. If the whole plan sets that base, its first agents may have it, unless there are no others.
func depsOfOthers(p *agency.Plan) []string {
	if p.Base == agency.BaseDeps && slices.ContainsFunc(p.Agents, func(a agency.PlanAgent) bool { return len(a.After) > 0 }) {
		return nil
	}
	const most = 5
	var ids []string
	for i := range p.Agents {
		if a := &p.Agents[i]; a.Base == agency.BaseDeps && len(a.After) == 0 && len(ids) < most {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// planCheck checks what a plan needs from the configuration, the machine and the repository.
type planCheck struct {
	git     Git
	cfg     *config.Config
	may     *policy.Permission
	project *agency.Project
	dir     string
	env     []string
	used    map[string]bool // runners whose programs exist
	bases   map[string]bool // references that name commits
}

func (c *planCheck) plan(ctx context.Context, p *agency.Plan) error {
	var faults plan.Faults
	for _, runner := range slices.Sorted(maps.Keys(p.Limits)) {
		if _, err := resolve.Settings(c.cfg, resolve.RunnerOf(c.cfg, runner)); err != nil {
			faults.Add(c.fault("limits", runner, err).WithDetail("key", "limits"))
		}
	}
	seen := map[string]bool{} // a fault in the defaults affects many agents
	for i := range p.Agents {
		a := &p.Agents[i]
		key, err := c.agent(ctx, a)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil || seen[err.Error()]:
			continue
		}
		seen[err.Error()] = true
		fault := c.fault(fmt.Sprintf("agent %q", a.ID), a.Runner, err)
		if !faults.Add(fault.WithDetail("agent", a.ID).WithDetail("position", i).WithDetail("key", key)) {
			break
		}
	}
	return faults.Err()
}

// agent checks one agent. key is the key of the fault.
func (c *planCheck) agent(ctx context.Context, a *agency.PlanAgent) (key string, err error) {
	if a.Preset != "" {
		if _, err := c.cfg.Preset(a.Preset); err != nil {
			return "preset", err
		}
	}
	if err := c.may.CheckLanding(a.Land); err != nil {
		return "land", err
	}
	asked := resolve.AgentSpec(a)
	if err := c.may.CheckAsked(&asked); err != nil {
		return "args", err
	}
	spec, chosen, err := resolve.Agent(c.cfg, c.project, a)
	if err == nil {
		err = c.may.CheckChosen(ctx, &spec)
	}
	if err != nil {
		return "runner", err
	}
	if r := resolve.Runner(&spec); spec.Sandbox != agency.SandboxContainer && !c.used[r.Name] { // there, it is in the image
		if _, err := harness.FindExec(r, chosen.Exec, c.dir, slices.Concat(c.env, spec.Env)); err != nil {
			return "runner", harness.WithInstalled(err, c.env)
		}
		c.used[r.Name] = true
	}
	if !c.bases[spec.BaseRef] {
		if _, err := c.git.ResolveCommit(ctx, c.dir, spec.BaseRef); err != nil {
			return "base", err
		}
		c.bases[spec.BaseRef] = true
	}
	return "", nil
}

// checkSetup refuses an agent whose run would fail because of the repository's setup, or of the image
// that is built for it: the user does not trust it, or a file of it is missing. It resolves the
// agent's base in dir, unless commit is given; root is the repository.
func (d Deps) checkSetup(ctx context.Context, cfg *config.Config, project *agency.Project, a *agency.PlanAgent, dir, root, commit string, env []string) error {
	spec, _, err := resolve.Agent(cfg, project, a)
	if err != nil {
		return err
	}
	spec.BaseRef = cmp.Or(commit, spec.BaseRef)
	commit, err = d.Git.ResolveCommit(ctx, dir, spec.BaseRef)
	if err != nil || !project.NeedsTrust() && !project.BuildsImage(&spec) {
		return err
	}
	return d.Projects.CheckSetup(ctx, root, &spec, commit, env)
}

// needsTrust reports whether some run of a repository may need what the user must allow first.
func needsTrust(project *agency.Project, repo agency.Repo) bool {
	if project.NeedsTrust() || repo.Toplevel == "" { // a bare repository has its files in commits
		return true
	}
	_, err := os.Lstat(filepath.Join(repo.Toplevel, agency.DevcontainerFile))
	return err == nil && project.Image == ""
}

// checkSetups is checkSetup for the agents of a plan whose base is known.
func (all *Sessions) checkSetups(ctx context.Context, cfg *config.Config, p *agency.Plan, repo agency.Repo, dir string, env []string) error {
	project, err := all.Projects.Of(ctx, repo)
	if err != nil || !needsTrust(&project, repo) {
		return err
	}
	type kind struct {
		base, preset string
		level        agency.SandboxLevel
	}
	checked := map[kind]bool{}
	for i := range p.Agents {
		a := &p.Agents[i]
		k := kind{a.Base, a.Preset, a.Sandbox}
		if a.Base == agency.BaseDeps && len(a.After) > 0 || checked[k] {
			continue
		}
		if err := all.checkSetup(ctx, cfg, &project, a, dir, repo.Root, "", env); err != nil {
			return err
		}
		checked[k] = true
	}
	return nil
}

// fault returns an error of a plan with its place. For an unknown runner it suggests a similar one.
func (c *planCheck) fault(where, runner string, err error) *agency.Error {
	e := agency.AsError(err)
	fault := &agency.Error{Code: e.Code, Message: where + ": " + e.Message, Hint: e.Hint, Details: maps.Clone(e.Details), Err: err}
	switch e.Code {
	case agency.CodeRunnerNotConfigured:
		if near := plain.Nearest(runner, resolve.KnownRunners(c.cfg)); near != "" && near != runner {
			fault.Hint = "did you mean " + near + "?"
		}
		fault.Code = agency.CodePlanInvalid
	case agency.CodeSpecInvalid, agency.CodeBadRef, agency.CodeUsage:
		fault.Code = agency.CodePlanInvalid
	default: // the error is sufficient
	}
	return fault
}

// Plan returns what a plan would do. It starts nothing.
func (all *Sessions) Plan(ctx context.Context, req api.PlanSessionRequest) (api.PlanSessionResponse, error) {
	may, err := all.Policy.Permission(ctx, &req.Config, &req.Env)
	if err != nil {
		return api.PlanSessionResponse{}, err
	}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.PlanSessionResponse{}, err
	}
	p, repo, warnings, err := all.loadPlan(ctx, req.Plan, req.Dir, req.Env, cfg, may)
	if err != nil {
		return api.PlanSessionResponse{}, err
	}
	project, err := all.Projects.Of(ctx, repo)
	if err != nil {
		return api.PlanSessionResponse{}, err
	}
	resp := api.PlanSessionResponse{
		Plan: *p, Waves: p.WaveList(), Agents: make([]api.PlannedAgent, 0, len(p.Agents)), Hash: p.Hash(), Warnings: warnings,
	}
	if err := all.checkSetups(ctx, cfg, p, repo, req.Dir, req.Env); err != nil {
		resp.Refused = api.Failure(err).Error
	}
	for i := range p.Agents {
		planned, err := plannedAgent(cfg, &project, &p.Agents[i], req)
		if err != nil {
			return api.PlanSessionResponse{}, fmt.Errorf("agent %q: %w", p.Agents[i].ID, err)
		}
		resp.Agents = append(resp.Agents, planned)
	}
	return resp, nil
}

// plannedAgent returns how an agent would be started. Words in capitals stand for values that are
// unknown before the start.
func plannedAgent(cfg *config.Config, project *agency.Project, a *agency.PlanAgent, req api.PlanSessionRequest) (api.PlannedAgent, error) {
	spec, chosen, err := resolve.Agent(cfg, project, a)
	if err != nil {
		return api.PlannedAgent{}, err
	}
	r, env := resolve.Runner(&spec), slices.Concat(req.Env, spec.Env)
	program := chosen.Exec
	if spec.Sandbox != agency.SandboxContainer { // there, it is in the image
		if program, err = harness.FindExec(r, program, req.Dir, env); err != nil {
			return api.PlannedAgent{}, err
		}
	}
	command, err := harness.Build(agency.CommandRequest{
		Runner: r, Exec: program, DefaultArgs: chosen.DefaultArgs, Model: spec.Runner.Model, Headless: *spec.Headless, Mode: spec.Mode,
		PromptFile: "WORKTREE/" + agency.PromptFile, Worktree: "WORKTREE", RunID: "RUN", Attempt: 1, ConversationID: "CONVERSATION", Env: env,
		AttemptDir: "ATTEMPT", Hook: []string{"agency", "hook"},
		SystemPrompt: spec.SystemPrompt, SkipPermissions: spec.Runner.SkipPermissions, Sandbox: spec.Sandbox,
	})
	if err != nil {
		return api.PlannedAgent{}, err
	}
	return api.PlannedAgent{ID: a.ID, Runner: r.Name, Branch: "agency/SESSION/" + a.ID, Command: command.Argv}, nil
}
