package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/resolve"
	"agency/internal/scaffold"
	"agency/internal/supervisor"
)

// initRepo writes what a repository needs for agency into the worktree that the caller stands in.
func (d *Daemon) initRepo(ctx context.Context, req api.InitRepoRequest) (api.InitRepoResponse, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	repo, err := d.git.Discover(ctx, req.Dir)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	root := repo.Toplevel
	if root == "" {
		return api.InitRepoResponse{}, agency.Errorf(agency.CodeInvalidPath, "%s has no files to add to: it is a bare repository, or a git directory", req.Dir).
			WithHint("go to a checkout of it, commit what agency init writes there, and push")
	}
	init, err := planInit(root, &req)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	if req.Answers.Runner != nil {
		kind, name := resolve.Named(cfg, init.project.Runner)
		if _, err := resolve.Settings(cfg, agency.Runner{Kind: kind, Name: name}); err != nil {
			return api.InitRepoResponse{}, err
		}
	}
	base := cmp.Or(init.project.Base, cfg.Defaults.Base)
	if answer := req.Answers.Base; answer != nil && *answer != "" {
		if _, err := d.git.ResolveCommit(ctx, root, *answer); err != nil && !d.isUnborn(ctx, root) {
			return api.InitRepoResponse{}, err
		}
	}
	resp := init.response(root, cfg, &req)
	if len(init.project.Setup) > 0 {
		resp.SetupNote = d.sup.Projects.SetupProblem(ctx, repo, base, init.project.Setup)
	}
	of := supervisor.TrustRequest{Dir: root, Default: cfg.Defaults.Base}
	_, before, beforeErr := d.sup.Projects.Trust(ctx, of)
	if !req.DryRun {
		if err := scaffold.ApplyProject(root, init.changes); err != nil {
			return resp, err
		}
	}
	if !init.project.NeedsTrust() {
		return resp, nil
	}
	// What came with the repository stays untrusted, whatever else was written into the same file.
	mine := req.Trust && beforeErr == nil && (before.Hash == "" || before.Trusted)
	resp.Trusted, resp.TrustNote = d.trustInit(ctx, of, mine, req.DryRun)
	return resp, nil
}

// isUnborn says that the repository has no commit at all, so that no base can be there yet.
func (d *Daemon) isUnborn(ctx context.Context, root string) bool {
	_, err := d.git.ResolveCommit(ctx, root, "HEAD")
	return agency.IsCode(err, agency.CodeEmptyRepo)
}

// trustInit trusts what init has just written, if it may, and says why it is not trusted otherwise.
func (d *Daemon) trustInit(ctx context.Context, of supervisor.TrustRequest, mine, dryRun bool) (trusted bool, note string) {
	if dryRun {
		return mine, ""
	}
	_, t, err := d.sup.Projects.Trust(ctx, of)
	if err == nil && mine {
		_, t, err = d.sup.Projects.Grant(ctx, of, t.Hash)
	}
	switch {
	case err != nil:
		return false, agency.AsError(err).Message
	case !t.Trusted:
		return false, "it was here before, and nobody has trusted it"
	default:
		return true, ""
	}
}

// initialisation is what init will do.
type initialisation struct {
	project agency.Project // as it will be
	written agency.Project // as the file says before; the defaults without one
	exists  bool           // the file
	keys    []string
	changes []scaffold.Change
	scouts  []string
}

func planInit(root string, req *api.InitRepoRequest) (*initialisation, error) {
	path := filepath.Join(root, agency.ProjectFile)
	old, err := file.ReadBeneath(root, agency.ProjectFile, agency.ProjectLimit)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, agency.Errorf(agency.CodePermissionDenied, "%s cannot be read: %w", path, fs.ErrPermission)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, agency.Errorf(agency.CodeInvalidPath, "%s cannot be used: %w", path, err).WithHint("it must be a regular file; move it away and try again")
	}
	init := &initialisation{exists: err == nil}
	base := old
	if !init.exists || req.Force {
		if base, _, err = config.EditProject(path, scaffold.ProjectTemplate(), []config.Setting{{Key: "project.type", Value: scaffold.ProjectType(root)}}); err != nil {
			return nil, err
		}
	}
	if init.written, err = config.ParseProject(path, base); err != nil {
		e := agency.AsError(err)
		return nil, e.WithHint("%s", strings.TrimPrefix(e.Hint+"; or write it anew, the old one is kept: agency init --force", "; "))
	}
	settings := initSettings(&req.Answers)
	for _, s := range settings {
		if err := config.CheckSetting(s); err != nil {
			return nil, err
		}
	}
	fresh, keys, err := config.EditProject(path, base, settings)
	if err != nil {
		return nil, err
	}
	if init.project, err = config.ParseProject(path, fresh); err != nil {
		return nil, err
	}
	if init.exists && !req.Force {
		init.keys = keys
	}
	if init.scouts, err = scaffold.Scouts(root); err != nil {
		return nil, err
	}
	standard := init.project.Layout == agency.LayoutStandard
	init.changes, err = scaffold.PlanProject(root, scaffold.ProjectFiles{
		Config: fresh, Window: init.project.Window, Standard: standard, Archive: standard && req.Archive,
		Force: req.Force, Backup: req.Force && init.exists,
	})
	return init, err
}

// initSettings are the answers as keys of agency.toml.
func initSettings(a *api.InitAnswers) []config.Setting {
	var all []config.Setting
	text := func(key string, v *string) {
		if v != nil {
			all = append(all, config.Setting{Key: key, Value: *v})
		}
	}
	flag := func(key string, v *bool) {
		if v != nil {
			all = append(all, config.Setting{Key: key, Value: *v})
		}
	}
	text("project.type", a.Type)
	text("project.sandbox", a.Sandbox)
	text("project.layout", a.Layout)
	flag("project.parallel", a.Parallel)
	flag("project.agent_runs", a.AgentRuns)
	text("defaults.runner", a.Runner)
	text("defaults.base", a.Base)
	text("ids.format", a.IDFormat)
	if a.Setup != nil && *a.Setup == "" {
		all = append(all, config.Setting{Key: config.SetupKey}) // to be taken away
	} else {
		text("scripts.setup", a.Setup)
	}
	return all
}

// response tells what init will do, with the settings that hold then.
func (init *initialisation) response(root string, cfg *config.Config, req *api.InitRepoRequest) api.InitRepoResponse {
	resp := api.InitRepoResponse{
		Root: root, DryRun: req.DryRun, Settings: []api.InitSetting{}, Changes: []api.InitChange{}, Keys: append([]string{}, init.keys...),
		Scouts: append([]string{}, init.scouts...), Wants: init.project.Wants(),
	}
	answered := map[string]bool{}
	for _, s := range initSettings(&req.Answers) {
		answered[s.Key] = true
	}
	add := func(key, value, fallback string, changed bool) {
		from := "default"
		switch {
		case answered[key]:
			from = "answer"
		case init.exists && !req.Force && changed:
			from = agency.ProjectFile
		case value == "":
			value, from = fallback, "your configuration"
		}
		resp.Settings = append(resp.Settings, api.InitSetting{Key: key, Value: value, From: from})
	}
	p, d := &init.project, agency.DefaultProject()
	add("project.type", p.Type, "other", p.Type != "")
	add("project.sandbox", p.Sandbox, "", p.Sandbox != d.Sandbox)
	add("ids.format", p.HandleFormat, usersFormat(cfg), p.HandleFormat != "")
	add("defaults.base", p.Base, cfg.Defaults.Base, p.Base != "")
	add("defaults.runner", p.Runner, cfg.Defaults.Runner, p.Runner != "")
	add("project.parallel", strconv.FormatBool(p.Parallel), "", p.Parallel != d.Parallel)
	add("project.layout", p.Layout, "", p.Layout != d.Layout)
	add("project.agent_runs", strconv.FormatBool(p.Window), "", p.Window != d.Window)
	add("scripts.setup", strings.Join(p.Setup, " "), "", len(p.Setup) > 0)
	for i := range init.changes {
		c := &init.changes[i]
		if c.Path == scaffold.ClaudeMD {
			resp.ClaudeMD = string(c.Action)
		}
		change := api.InitChange{Path: c.Path, Action: string(c.Action), From: c.From, Backup: c.Backup}
		if req.DryRun {
			change.Diff = c.Diff()
		}
		resp.Changes = append(resp.Changes, change)
	}
	return resp
}

// usersFormat is the format of handles that the user's configuration says.
func usersFormat(cfg *config.Config) string {
	for _, o := range cfg.Origins() {
		if o.Key == "ids.format" {
			return strings.Trim(o.Value, `"`)
		}
	}
	return ""
}

func (d *Daemon) trustRequest(req api.TrustRequest) (supervisor.TrustRequest, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return supervisor.TrustRequest{}, err
	}
	return supervisor.TrustRequest{Dir: req.Dir, Base: req.Base, Run: req.Run, Default: cfg.Defaults.Base}, nil
}

func (d *Daemon) showTrust(ctx context.Context, req api.TrustRequest) (api.TrustResponse, error) {
	of, err := d.trustRequest(req)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := d.sup.Projects.Trust(ctx, of)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (d *Daemon) grantTrust(ctx context.Context, req api.GrantTrustRequest) (api.TrustResponse, error) {
	of, err := d.trustRequest(req.Of)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := d.sup.Projects.Grant(ctx, of, req.Hash)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (d *Daemon) revokeTrust(ctx context.Context, req api.RevokeTrustRequest) (api.RevokeTrustResponse, error) {
	repo, revoked, err := d.sup.Projects.Revoke(ctx, req.Dir)
	return api.RevokeTrustResponse{Root: repo.Root, Revoked: revoked}, err
}
