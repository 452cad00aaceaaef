package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/harness"
)

// Permission is what an agent may request for the runs that it starts. The user's is nil and allows
// everything.
type Permission struct {
	policy *Policy
	by     *agency.Run // nil for tools that do not belong to a run: they act as the user, within [mcp] allow
	cfg    *config.Config
}

// ConfigFor returns the configuration for a request, whose path and environment it may replace as
// Permission does.
func (p *Policy) ConfigFor(ctx context.Context, path *string, env *agency.Environ) (*config.Config, error) {
	if _, err := p.Permission(ctx, path, env); err != nil {
		return nil, err
	}
	return config.Load(*path, *env)
}

// Permission returns what the sender of a request may request. For a run, it replaces the
// configuration and the environment of the request by those that the run was started with: they
// decide which programs are started, and what a run claims about them proves nothing.
func (p *Policy) Permission(ctx context.Context, path *string, env *agency.Environ) (*Permission, error) {
	by, asks, err := p.Agent(ctx)
	if err != nil || !asks {
		return nil, err
	}
	if by == nil {
		cfg, err := config.Load(*path, *env)
		return &Permission{policy: p, cfg: cfg}, err
	}
	own, err := p.Runs.Environ(ctx, by)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load("", own)
	if err != nil {
		return nil, err
	}
	may := &Permission{policy: p, by: by, cfg: cfg}
	if cfg.MCP.Allows(config.AllowEnv) && !by.Sandbox.Level.Confines() {
		*env = append(slices.Clone(*env), config.Places(own)...)
	} else {
		*env = own
	}
	if *path = ""; cfg.Exists {
		*path = cfg.Path
	}
	return may, nil
}

// Sandboxed returns the run in a sandbox that requests; nil for all others.
func (p *Permission) Sandboxed() *agency.Run {
	if p == nil || p.by == nil || !p.by.Sandbox.Level.Confines() {
		return nil
	}
	return p.by
}

// CheckLanding checks how the work of a session's agents is to land. In a queue the user approves
// it.
func (p *Permission) CheckLanding(by agency.LandBy) error {
	if p == nil || by != agency.LandByMerge {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "only the user may start what lands by merge").
		WithHint("land: queue, where the user approves it; or leave it out")
}

// CheckAsked checks what the agent itself sets for a run.
func (p *Permission) CheckAsked(spec *agency.Spec) error {
	switch {
	case p == nil:
		return nil
	case len(spec.Env) > 0 && !p.cfg.MCP.Allows(config.AllowEnv):
		return p.refused("variables", config.AllowEnv)
	case p.by != nil && less(agency.Sandbox{Level: spec.Sandbox, Network: spec.Network}, p.by.Sandbox):
		return agency.Errorf(agency.CodePermissionDenied, "%s is in the sandbox %s and may not start a run with less", p.by.Ref(), p.by.Sandbox).
			WithHint("leave out the sandbox, or ask for a stricter one")
	case p.by != nil && more(spec.Resources, p.by.Resources):
		return agency.Errorf(agency.CodePermissionDenied, "%s has the limits %s and may not start a run with more", p.by.Ref(), p.by.Resources).
			WithHint("leave out the limits, or ask for tighter ones")
	case len(spec.Runner.Args) > 0 && !p.cfg.MCP.Allows(config.AllowArgs):
		return p.refused("arguments for the runner", config.AllowArgs)
	case p.Sandboxed() != nil:
		return p.runner(spec) // now: later, the error for a mistyped name would name the user's custom runners
	}
	return nil
}

// less reports whether a sandbox asks for less than own. An empty field asks for nothing.
func less(asked, own agency.Sandbox) bool { return asked.Or(own).Stricter(own) != asked.Or(own) }

// more reports whether limits ask for more than own. A limit that is left open asks for nothing.
func more(asked, own agency.Resources) bool { return asked.Or(own).Tighter(own) != asked.Or(own) }

// CheckChosen checks the run that the agent requests, after presets and defaults have filled it in.
// The sandbox becomes at least as strict as that of the agent, and the limits as tight.
func (p *Permission) CheckChosen(ctx context.Context, spec *agency.Spec) error {
	if p == nil {
		return nil
	}
	if p.by != nil {
		own := agency.Sandbox{Level: spec.Sandbox, Network: spec.Network}.Stricter(p.by.Sandbox)
		spec.Sandbox, spec.Network = own.Level, own.Network
		spec.Resources = spec.Resources.Tighter(p.by.Resources)
	}
	if by := p.Sandboxed(); by != nil {
		if left, own := p.policy.minutesLeft(by), spec.Limits.MaxMinutes; left > 0 && (own == 0 || own > left) {
			spec.Limits.MaxMinutes = left
		}
	}
	if err := p.narrowHosts(ctx, spec); err != nil {
		return err
	}
	if err := p.runner(spec); err != nil {
		return err
	}
	if err := p.policy.limitTags(p.by, spec.Tags); err != nil {
		return err
	}
	if spec.Runner.Kind == agency.Shell || p.cfg.MCP.Allows(config.AllowSkipPermissions) || !spec.Runner.SkipPermissions && !harness.SkipsPermissions(spec.Runner.Kind, spec.Runner.Args) {
		return nil
	}
	free, err := p.free(ctx)
	if err == nil && !free {
		err = p.refused("an agent that asks for no permissions", config.AllowSkipPermissions)
	}
	return err
}

// runner checks the program: it must be a coding agent, the user's own default, or what the caller
// is itself.
func (p *Permission) runner(spec *agency.Spec) error {
	kind, name := spec.Runner.Kind, spec.Runner.Name
	same := p.by != nil && p.by.Runner.Kind == kind && (kind != agency.Custom || p.by.Runner.Name == name)
	switch {
	case same:
	case kind == agency.Shell && !p.cfg.MCP.Allows(config.AllowShell):
		return p.refused("a script", config.AllowShell)
	case kind == agency.Custom && name != p.cfg.Defaults.Runner && !p.cfg.MCP.Allows(config.AllowCustom):
		return p.refused(fmt.Sprintf("the custom runner %q", name), config.AllowCustom)
	}
	return nil
}

// narrowHosts leaves an agent of a run in a sandbox no host that the run does not reach: a repository
// can name hosts, and the agent may have written its file.
func (p *Permission) narrowHosts(ctx context.Context, spec *agency.Spec) error {
	if p.Sandboxed() == nil || len(spec.Hosts) == 0 {
		return nil
	}
	own, err := p.ownSpec(ctx)
	spec.Hosts = slices.DeleteFunc(slices.Clone(spec.Hosts), func(h string) bool { return !slices.Contains(own.Hosts, h) })
	return err
}

// ownSpec returns the spec of the run that requests.
func (p *Permission) ownSpec(ctx context.Context) (spec agency.Spec, err error) {
	data, err := p.policy.Store.Spec(ctx, p.by.ID)
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil {
		return spec, fmt.Errorf("read the spec of %s: %w", p.by.ID, err)
	}
	return spec, nil
}

// free reports whether the run that sent the request itself skips permissions.
func (p *Permission) free(ctx context.Context) (bool, error) {
	if p.by == nil {
		return false, nil
	}
	spec, err := p.ownSpec(ctx)
	if err != nil {
		return false, err
	}
	args := slices.Concat(p.cfg.Runners[p.by.Runner.Kind].DefaultArgs, p.by.Runner.Args)
	return spec.Runner.SkipPermissions || harness.SkipsPermissions(p.by.Runner.Kind, args), nil
}

func (p *Permission) refused(what, allowance string) error {
	who := "the tools of an agent"
	if p.by != nil {
		who = p.by.Ref()
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s may not start a run with %s", who, what).WithDetail("allow", allowance).
		WithHint("the user can allow it in %s: [mcp] allow = [%q]", p.cfg.Path, allowance)
}

// children are the runs being created for agents, by the agent's run. The store may not have them
// yet.
type children struct {
	mu     sync.Mutex
	making map[agency.RunID][]agency.RunID
}

// Reserve reserves places for children of the sender until the caller calls free. got is the number
// of places, at most wanted. It returns E_PERMISSION_DENIED when there is no place, and when the
// children would be too many generations below the user's runs. The user gets all. ids are the
// children, as far as they are known.
func (p *Permission) Reserve(ctx context.Context, wanted int, ids ...agency.RunID) (got int, free func(), err error) {
	if p == nil || p.by == nil {
		return wanted, func() {}, nil
	}
	above, err := p.policy.Callers.Owners(ctx, p.by.Owner)
	if err != nil {
		return 0, nil, err
	}
	if depth, most := len(above)+1, p.cfg.MCP.MaxDepth; depth > most {
		return 0, nil, agency.Errorf(agency.CodePermissionDenied, "%s would start runs %d generations below those of the user, and the most is %d", p.by.Ref(), depth, most).
			WithHint("the user can change it in %s: [mcp] max_depth", p.cfg.Path)
	}
	c := &p.policy.children
	c.mu.Lock()
	defer c.mu.Unlock()
	taken, err := p.policy.countChildren(ctx, p.by.ID, c.making[p.by.ID], ids)
	if err != nil {
		return 0, nil, err
	}
	most := p.cfg.MCP.MaxChildren
	if taken >= most {
		return 0, nil, agency.Errorf(agency.CodePermissionDenied, "%s has started %d runs that are live or may begin, and the most is %d", p.by.Ref(), taken, most).
			WithHint("agency stop those that are done; the user can change it in %s: [mcp] max_children", p.cfg.Path)
	}
	if c.making == nil {
		c.making = map[agency.RunID][]agency.RunID{}
	}
	if len(ids) > 0 {
		c.making[p.by.ID] = append(c.making[p.by.ID], ids...)
	}
	return min(wanted, most-taken), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.making[p.by.ID] = slices.DeleteFunc(c.making[p.by.ID], func(id agency.RunID) bool { return slices.Contains(ids, id) })
		if len(c.making[p.by.ID]) == 0 {
			delete(c.making, p.by.ID)
		}
	}, nil
}

// countChildren counts the live runs that a run started, except those in but, plus the runs that
// are being created for it, plus as many as its sessions may run at once.
func (p *Policy) countChildren(ctx context.Context, of agency.RunID, making, but []agency.RunID) (int, error) {
	sessions, err := p.Store.Sessions(ctx, agency.SessionFilter{Live: true})
	if err != nil {
		return 0, err
	}
	n, counted := len(making), slices.Concat(making, but)
	for i := range sessions {
		s := &sessions[i]
		if s.Owner != string(of) || s.External {
			continue
		}
		runs, err := p.Store.SessionRuns(ctx, s.ID, true)
		if err != nil {
			return 0, err
		}
		for id := range runs {
			counted = append(counted, id)
		}
		n += max(s.MaxParallel, len(runs))
	}
	live, err := p.Store.Runs(ctx, agency.Filter{Live: true})
	for i := range live {
		if r := &live[i]; r.Owner == string(of) && !slices.Contains(counted, r.ID) {
			n++
		}
	}
	return n, err
}

// ReserveParallel is Reserve for the agents of a session that run at once. It lowers parallel to
// the number of places; warning explains that to the user.
func (p *Permission) ReserveParallel(ctx context.Context, parallel *int) (warning string, free func(), err error) {
	got, free, err := p.Reserve(ctx, *parallel)
	if err == nil && got < *parallel {
		warning = fmt.Sprintf("%s may have %d more runs at once, so max_parallel is %d", p.by.Ref(), got, got)
		*parallel = got
	}
	return warning, free, err
}

// CheckResume checks what the agent sets for another attempt.
func (p *Permission) CheckResume(req *api.ResumeRunRequest) error {
	if p != nil && len(req.Set) > 0 && !p.cfg.MCP.Allows(config.AllowEnv) {
		return p.refused("variables", config.AllowEnv)
	}
	return nil
}
