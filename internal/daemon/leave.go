package daemon

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

// leave is what an agent may ask of runs that it starts. The person's is nil, and allows everything.
type leave struct {
	d   *Daemon
	by  *agency.Run // nil for tools that do not belong to a run: they act as the person, within [mcp] allow
	cfg *config.Config
}

// leaveOf is what the sender of a request may ask. For a run it replaces the configuration and the environment of the request by those
// that the run was started with: what a run says of them is its own word, and they decide which programs are started.
func (d *Daemon) leaveOf(ctx context.Context, path *string, env *agency.Environ) (*leave, error) {
	by, asks, err := d.agent(ctx)
	if err != nil || !asks {
		return nil, err
	}
	if by == nil {
		cfg, err := config.Load(*path, *env)
		return &leave{d: d, cfg: cfg}, err
	}
	own, err := d.sup.Environ(ctx, by)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load("", own)
	if err != nil {
		return nil, err
	}
	l := &leave{d: d, by: by, cfg: cfg}
	if l.cfg.MCP.Allows(config.AllowEnv) {
		*env = append(slices.Clone(*env), config.Places(own)...)
	} else {
		*env = own
	}
	if *path = ""; cfg.Exists {
		*path = cfg.Path
	}
	return l, nil
}

// asked checks what an agent itself says about a run. Names are those of the keys.
func (l *leave) asked(spec *agency.Spec) error {
	switch {
	case l == nil:
		return nil
	case len(spec.Env) > 0 && !l.cfg.MCP.Allows(config.AllowEnv):
		return l.refused("variables", config.AllowEnv)
	case len(spec.Runner.Args) > 0 && !l.cfg.MCP.Allows(config.AllowArgs):
		return l.refused("arguments for the runner", config.AllowArgs)
	}
	return nil
}

// chosen checks a run that an agent asks for after presets and defaults have filled it in.
func (l *leave) chosen(ctx context.Context, spec *agency.Spec) error {
	if l == nil {
		return nil
	}
	if err := l.runner(spec); err != nil {
		return err
	}
	if err := l.d.limitTags(l.by, spec.Tags); err != nil {
		return err
	}
	if spec.Runner.Kind == agency.Shell || l.cfg.MCP.Allows(config.AllowSkipPermissions) || !spec.Runner.SkipPermissions && !harness.SkipsPermissions(spec.Runner.Kind, spec.Runner.Args) {
		return nil
	}
	free, err := l.free(ctx)
	if err == nil && !free {
		err = l.refused("an agent that asks for leave for nothing", config.AllowSkipPermissions)
	}
	return err
}

// runner checks the program: a coding agent, the person's own default, or what the caller is itself.
func (l *leave) runner(spec *agency.Spec) error {
	kind, name := spec.Runner.Kind, spec.Runner.Name
	same := l.by != nil && l.by.Runner.Kind == kind && (kind != agency.Custom || l.by.Runner.Name == name)
	switch {
	case same:
	case kind == agency.Shell && !l.cfg.MCP.Allows(config.AllowShell):
		return l.refused("a script", config.AllowShell)
	case kind == agency.Custom && name != l.cfg.Defaults.Runner && !l.cfg.MCP.Allows(config.AllowCustom):
		return l.refused(fmt.Sprintf("the custom runner %q", name), config.AllowCustom)
	}
	return nil
}

// free reports whether the run that asks is one that asks for leave for nothing itself.
func (l *leave) free(ctx context.Context) (bool, error) {
	if l.by == nil {
		return false, nil
	}
	data, err := l.d.store.Spec(ctx, l.by.ID)
	if err != nil {
		return false, err
	}
	var spec agency.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return false, fmt.Errorf("read the spec of %s: %w", l.by.ID, err)
	}
	args := slices.Concat(l.cfg.Runners[l.by.Runner.Kind].DefaultArgs, l.by.Runner.Args)
	return spec.Runner.SkipPermissions || harness.SkipsPermissions(l.by.Runner.Kind, args), nil
}

func (l *leave) refused(what, allowance string) error {
	who := "the tools of an agent"
	if l.by != nil {
		who = l.by.Ref()
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s may not start a run with %s", who, what).WithDetail("allow", allowance).
		WithHint("the person can allow it in %s: [mcp] allow = [%q]", l.cfg.Path, allowance)
}

// making are the runs that agents are having made, which the record may not have yet, by who asked.
type making struct {
	mu  sync.Mutex
	ids map[agency.RunID][]agency.RunID
}

// room takes places for children of the run that asks, until free is called, and says how many of those that are wanted it got. None
// is E_PERMISSION_DENIED, and so is a child too deep below the person's runs. The person gets all.
func (l *leave) room(ctx context.Context, wanted int, ids ...agency.RunID) (got int, free func(), err error) {
	if l == nil || l.by == nil {
		return wanted, func() {}, nil
	}
	above, err := l.d.sup.Callers.Owners(ctx, l.by.Owner)
	if err != nil {
		return 0, nil, err
	}
	if depth, most := len(above)+1, l.cfg.MCP.MaxDepth; depth > most {
		return 0, nil, agency.Errorf(agency.CodePermissionDenied, "%s would start runs %d generations below those of the person, and %d is the most", l.by.Ref(), depth, most).
			WithHint("the person can change it in %s: [mcp] max_depth", l.cfg.Path)
	}
	m := &l.d.making
	m.mu.Lock()
	defer m.mu.Unlock()
	taken, err := l.d.children(ctx, l.by.ID, m.ids[l.by.ID], ids)
	if err != nil {
		return 0, nil, err
	}
	most := l.cfg.MCP.MaxChildren
	if taken >= most {
		return 0, nil, agency.Errorf(agency.CodePermissionDenied, "%s has started %d runs that live or may begin, and %d is the most", l.by.Ref(), taken, most).
			WithHint("agency stop those that are done; the person can change it in %s: [mcp] max_children", l.cfg.Path)
	}
	if m.ids == nil {
		m.ids = map[agency.RunID][]agency.RunID{}
	}
	if len(ids) > 0 {
		m.ids[l.by.ID] = append(m.ids[l.by.ID], ids...)
	}
	return min(wanted, most-taken), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ids[l.by.ID] = slices.DeleteFunc(m.ids[l.by.ID], func(id agency.RunID) bool { return slices.Contains(ids, id) })
		if len(m.ids[l.by.ID]) == 0 {
			delete(m.ids, l.by.ID)
		}
	}, nil
}

// children counts the live runs that a run started but for some, those that are being made, and as many as its sessions may have at once.
func (d *Daemon) children(ctx context.Context, of agency.RunID, making, but []agency.RunID) (int, error) {
	sessions, err := d.store.Sessions(ctx, agency.SessionFilter{Live: true})
	if err != nil {
		return 0, err
	}
	n, counted := len(making), slices.Concat(making, but)
	for i := range sessions {
		s := &sessions[i]
		if s.Owner != string(of) || s.Outside {
			continue
		}
		runs, err := d.store.SessionRuns(ctx, s.ID, true)
		if err != nil {
			return 0, err
		}
		for id := range runs {
			counted = append(counted, id)
		}
		n += max(s.MaxParallel, len(runs))
	}
	live, err := d.store.Runs(ctx, agency.Filter{Live: true})
	for i := range live {
		if r := &live[i]; r.Owner == string(of) && !slices.Contains(counted, r.ID) {
			n++
		}
	}
	return n, err
}

// bound keeps the sessions of a run within the children that it may have.
func (l *leave) bound(ctx context.Context, parallel *int) (warning string, free func(), err error) {
	got, free, err := l.room(ctx, *parallel)
	if err == nil && got < *parallel {
		warning = fmt.Sprintf("%s may have %d more runs at once, so max_parallel is %d", l.by.Ref(), got, got)
		*parallel = got
	}
	return warning, free, err
}

// resumed checks what an agent asks of another attempt.
func (l *leave) resumed(req *api.ResumeRunRequest) error {
	if l != nil && len(req.Set) > 0 && !l.cfg.MCP.Allows(config.AllowEnv) {
		return l.refused("variables", config.AllowEnv)
	}
	return nil
}
