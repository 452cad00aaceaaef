// Package onboard decides what agency init writes into a repository, and whether the user trusts
// what it wrote.
package onboard

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

// Git is the part of git that onboarding uses.
type Git interface {
	Discover(ctx context.Context, dir string) (agency.Repo, error)
	ResolveCommit(ctx context.Context, dir, ref string) (string, error)
}

// Trust is what the user trusts in repositories.
type Trust interface {
	Trust(ctx context.Context, of supervisor.TrustRequest) (agency.Repo, agency.SetupTrust, error)
	Grant(ctx context.Context, of supervisor.TrustRequest, hash string) (agency.Repo, agency.SetupTrust, error)
	// SetupProblem returns why a setup would fail in a new worktree of base; empty when no problem
	// is known.
	SetupProblem(ctx context.Context, repo agency.Repo, base string, setup []string) string
}

// Sandbox is what this machine can enforce.
type Sandbox interface {
	// Check returns E_SANDBOX_UNAVAILABLE unless this host can enforce a level.
	Check(ctx context.Context, level agency.SandboxLevel) error
}

// Init sets repositories up for agency.
type Init struct {
	Git     Git
	Trust   Trust
	Sandbox Sandbox
}

// Repo writes what agency needs in a repository into the client's worktree. With DryRun it writes
// nothing, and returns what it would write.
func (i Init) Repo(ctx context.Context, req api.InitRepoRequest) (api.InitRepoResponse, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	repo, err := i.Git.Discover(ctx, req.Dir)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	root := repo.Toplevel
	if root == "" {
		return api.InitRepoResponse{}, agency.Errorf(agency.CodeInvalidPath, "%s has no files to add to: it is a bare repository, or a git directory", req.Dir).
			WithHint("go to a checkout of it, commit what agency init writes there, and push")
	}
	p, err := planInit(root, &req)
	if err != nil {
		return api.InitRepoResponse{}, err
	}
	if req.Answers.Runner != nil {
		kind, name := resolve.Named(cfg, p.project.Runner)
		if _, err := resolve.Settings(cfg, agency.Runner{Kind: kind, Name: name}); err != nil {
			return api.InitRepoResponse{}, err
		}
	}
	base := cmp.Or(p.project.Base, cfg.Defaults.Base)
	if answer := req.Answers.Base; answer != nil && *answer != "" {
		if _, err := i.Git.ResolveCommit(ctx, root, *answer); err != nil && !i.isUnborn(ctx, root) {
			return api.InitRepoResponse{}, err
		}
	}
	resp := p.response(root, cfg, &req)
	if err := i.Sandbox.Check(ctx, agency.SandboxProcess); err != nil {
		e := agency.AsError(err)
		resp.SandboxProblem = e.Message + "; " + e.Hint
	}
	if len(p.project.Setup) > 0 {
		resp.SetupNote = i.Trust.SetupProblem(ctx, repo, base, p.project.Setup)
	}
	of := supervisor.TrustRequest{Dir: root, Default: cfg.Defaults.Base}
	_, before, beforeErr := i.Trust.Trust(ctx, of)
	if !req.DryRun {
		if err := scaffold.ApplyProject(root, p.changes); err != nil {
			return resp, err
		}
	}
	if !p.project.NeedsTrust() {
		return resp, nil
	}
	// A setup that came with the repository stays untrusted, whatever else init wrote into the same
	// file.
	mine := req.Trust && beforeErr == nil && (before.Hash == "" || before.Trusted)
	resp.Trusted, resp.TrustNote = i.trust(ctx, of, mine, req.DryRun)
	return resp, nil
}

// isUnborn reports whether the repository has no commits, so that there can be no base yet.
func (i Init) isUnborn(ctx context.Context, root string) bool {
	_, err := i.Git.ResolveCommit(ctx, root, "HEAD")
	return agency.IsCode(err, agency.CodeEmptyRepo)
}

// trust trusts what init has just written, if it may; otherwise it returns the reason as note.
func (i Init) trust(ctx context.Context, of supervisor.TrustRequest, mine, dryRun bool) (trusted bool, note string) {
	if dryRun {
		return mine, ""
	}
	_, t, err := i.Trust.Trust(ctx, of)
	if err == nil && mine {
		_, t, err = i.Trust.Grant(ctx, of, t.Hash)
	}
	switch {
	case err != nil:
		return false, agency.AsError(err).Message
	case !t.Trusted:
		return false, "it was here before and is not trusted"
	default:
		return true, ""
	}
}

// plan is what init will do.
type plan struct {
	project agency.Project // after init
	exists  bool           // the file exists
	keys    []string
	changes []scaffold.Change
	scouts  []string
}

func planInit(root string, req *api.InitRepoRequest) (*plan, error) {
	path := filepath.Join(root, agency.ProjectFile)
	old, err := file.ReadBeneath(root, agency.ProjectFile, agency.ProjectLimit)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, agency.Errorf(agency.CodePermissionDenied, "%s cannot be read: %w", path, fs.ErrPermission)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, agency.Errorf(agency.CodeInvalidPath, "%s cannot be used: %w", path, err).WithHint("it must be a regular file; move it away and try again")
	}
	p := &plan{exists: err == nil}
	base := old
	if !p.exists || req.Force {
		if base, _, err = config.EditProject(path, scaffold.ProjectTemplate(), []config.Setting{{Key: "project.type", Value: scaffold.ProjectType(root)}}); err != nil {
			return nil, err
		}
	}
	if _, err := config.ParseProject(path, base); err != nil {
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
	if p.project, err = config.ParseProject(path, fresh); err != nil {
		return nil, err
	}
	if p.exists && !req.Force {
		p.keys = keys
	}
	if p.scouts, err = scaffold.Scouts(root); err != nil {
		return nil, err
	}
	standard := p.project.Layout == agency.LayoutStandard
	p.changes, err = scaffold.PlanProject(root, scaffold.ProjectFiles{
		Config: fresh, Window: p.project.Window, Standard: standard, Archive: standard && req.Archive,
		Force: req.Force, Backup: req.Force && p.exists,
	})
	return p, err
}

// initSettings returns the answers as keys of agency.toml.
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
		all = append(all, config.Setting{Key: config.SetupKey}) // it is removed
	} else {
		text("scripts.setup", a.Setup)
	}
	return all
}

// response returns what init will do, with the settings that apply then.
func (p *plan) response(root string, cfg *config.Config, req *api.InitRepoRequest) api.InitRepoResponse {
	resp := api.InitRepoResponse{
		Root: root, DryRun: req.DryRun, Settings: []api.InitSetting{}, Changes: []api.InitChange{}, Keys: append([]string{}, p.keys...),
		Scouts: append([]string{}, p.scouts...), Wants: p.project.Wants(),
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
		case p.exists && !req.Force && changed:
			from = agency.ProjectFile
		case value == "":
			value, from = fallback, "your configuration"
		}
		resp.Settings = append(resp.Settings, api.InitSetting{Key: key, Value: value, From: from})
	}
	project, defaults := &p.project, agency.DefaultProject()
	add("project.type", project.Type, "other", project.Type != "")
	add("project.sandbox", string(project.Sandbox.Level), "", project.Sandbox.Level != defaults.Sandbox.Level)
	add("ids.format", project.HandleFormat, usersFormat(cfg), project.HandleFormat != "")
	add("defaults.base", project.Base, cfg.Defaults.Base, project.Base != "")
	add("defaults.runner", project.Runner, cfg.Defaults.Runner, project.Runner != "")
	add("project.parallel", strconv.FormatBool(project.Parallel), "", project.Parallel != defaults.Parallel)
	add("project.layout", project.Layout, "", project.Layout != defaults.Layout)
	add("project.agent_runs", strconv.FormatBool(project.Window), "", project.Window != defaults.Window)
	add("scripts.setup", strings.Join(project.Setup, " "), "", len(project.Setup) > 0)
	for i := range p.changes {
		c := &p.changes[i]
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

// usersFormat returns the format of handles that the user's configuration sets; empty when it sets
// none.
func usersFormat(cfg *config.Config) string {
	for _, o := range cfg.Origins() {
		if o.Key == "ids.format" {
			return strings.Trim(o.Value, `"`)
		}
	}
	return ""
}
