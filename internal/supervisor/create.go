package supervisor

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/handle"
	"agency/internal/killpoint"
	"agency/internal/supervisor/standby"
	"agency/internal/trace"
)

// NewRun is a run that a client asks for, and what is found and made for it until its agent runs.
type NewRun struct {
	ID    agency.RunID // chosen by a caller that has recorded it; empty generates one
	Owner string       // the client: the id of a run, or agency.User
	Spec  agency.Spec
	Files []agency.Attachment
	From  string   // what the run records as its base, where Spec has a commit made of results; empty is that
	Env   []string // the caller's environment, on which the runner's is based
	// Place is where the run begins; Settings is what the caller's configuration sets for it. Both
	// complete the spec.
	Place    *Place
	Settings agency.RunSettings
	AskedBy  *agency.Run // the run in a sandbox whose agent asks for it; nil for all others

	launching
	project projectFile
	repo    agency.Repo
	inputs  []agency.Input
	prompt  []byte
	image   *agency.Image // of the level container
	ports   *agency.Ports // likewise
	want    standby.Want
	standby *standby.Taken // the run's worktree; nil makes one
}

// The steps of a creation, in order. Each is recorded when it is done, and can be repeated or
// undone after a crash.
const (
	stepFiles    = "files"
	stepWorktree = "worktree"
	stepScaffold = "scaffold"
	stepSession  = "session"
	stepStarted  = "started"
)

// CreateRun creates a run and starts its agent. It checks everything that can be checked before it
// creates anything, so that bad input leaves nothing behind. A later failure undoes what was made;
// the record then keeps the run as failed and removed. When it returns no error, the runner was
// started and may already have ended. The warnings are problems that do not fail a creation.
func (s *Supervisor) CreateRun(ctx context.Context, asked NewRun) (r *agency.Run, warnings []string, err error) {
	r, err = s.createRun(ctx, &asked)
	return r, orEmpty(asked.warnings), err
}

func (s *Supervisor) createRun(ctx context.Context, p *NewRun) (*agency.Run, error) {
	end := trace.Begin(ctx, "plan")
	err := s.plan(ctx, p)
	end()
	if err != nil {
		return nil, err
	}
	if err := s.insert(ctx, p); err != nil {
		if p.standby != nil {
			s.Standbys.Return(p.standby)
		}
		return nil, err
	}
	s.settler.track(p.run)
	killpoint.At("create.inserted")
	// From here on the work is finished or undone even when the caller goes away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout())
	defer cancel()
	if err := s.launcher.build(ctx, p); err != nil {
		if agency.IsCode(err, agency.CodeSetupFailed) {
			err = s.settler.abort(ctx, p.run, err) // the worktree stays for inspection
			s.views.showRuns(ctx, p.run)
			return nil, err
		}
		// The creation may have failed because its time was over.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout())
		defer cancel()
		undoErr := s.settler.undo(ctx, p.run, err)
		if undoErr != nil {
			// For example the disk is full: settle again until the end can be recorded.
			s.life.Go(func() { s.settler.settleWhenDead(p.run.ID, soon) })
		}
		return nil, leave(p.run, err, undoErr)
	}
	s.views.showRuns(ctx, p.run)
	s.launcher.refill(p)
	return s.Records.Run(ctx, p.run.ID)
}

// plan validates a request without creating anything: first what needs no id, then, with the id,
// what depends on it.
func (s *Supervisor) plan(ctx context.Context, p *NewRun) error {
	commit, err := s.Projects.commitOf(ctx, p.Place, p.Spec.BaseRef)
	if err != nil {
		return err
	}
	baseName, err := s.baseName(ctx, p)
	if err != nil {
		return err
	}
	p.repo, p.project, p.settings = p.Place.Repo, p.Place.project, &p.Settings
	if err := s.checkRequest(ctx, p); err != nil {
		return err
	}
	if err := s.launcher.planEnv(ctx, p); err != nil {
		return err
	}
	if p.Spec.Name != "" {
		if err := s.Records.checkNameFree(ctx, p.Spec.Name); err != nil {
			return err
		}
	}
	if err := s.Repos.admit(ctx, &p.repo, p.Owner); err != nil {
		return err
	}
	if !p.Spec.NoSetup {
		p.setup, err = s.Projects.planSetup(ctx, p.repo, p.project, s.Projects.inCommit(ctx, p.repo, commit), preparing{
			where: fmt.Sprintf("the commit %.12s (%s)", commit, p.Spec.BaseRef), env: p.env, level: p.Spec.Sandbox, fromSandbox: p.AskedBy != nil,
			again: trustCommand(p.Spec.BaseRef, p.project.Base), without: "agency run --no-setup ...",
		})
		if err != nil {
			return err
		}
	}
	if err := s.images.choose(ctx, p, commit); err != nil {
		return err
	}
	s.takeStandby(ctx, p, commit)
	if err := s.materialise(p, commit, baseName); err != nil {
		if p.standby != nil {
			s.Standbys.Return(p.standby)
		}
		return err
	}
	return nil
}

// checkRequest checks what a request says against the repository and the machine, and reads the
// prompt and the inputs.
func (s *Supervisor) checkRequest(ctx context.Context, p *NewRun) error {
	if err := p.Spec.Validate(); err != nil {
		return err
	}
	if err := s.Repos.refuseOwnTree(p.repo); err != nil {
		return err
	}
	if err := s.Room(); err != nil && (s.Standbys.Clear(ctx) == 0 || s.Room() != nil) {
		return err
	}
	var err error
	if p.prompt, err = readPrompt(p.Spec.Prompt, cmp.Or(p.repo.Toplevel, p.repo.Root)); err != nil {
		return err
	}
	if err := agency.CheckAttachments(p.Files); err != nil {
		return err
	}
	if p.files = uniqueNames(p.Files); p.Spec.Runner.Kind != agency.Shell {
		p.prompt = []byte(attached(string(p.prompt), p.files))
	}
	if p.Spec.Branch != "" {
		if err := s.Git.CheckBranch(ctx, p.repo, p.Spec.Branch); err != nil {
			return err
		}
		hides, err := s.hidesRemote(ctx, p)
		if err != nil {
			return err
		}
		if hides {
			return agency.Errorf(agency.CodePermissionDenied, "the branch %q of a remote would be hidden by a branch of that name", p.Spec.Branch).WithHint("give another name with --branch")
		}
	}
	if p.inputs, err = fingerprint(p.repo, p.Spec.Inputs); err != nil {
		return err
	}
	if _, err := s.Sandbox.Limits(p.Spec.Sandbox, p.Spec.Resources); err != nil {
		return err
	}
	return s.Sandbox.Check(ctx, p.Spec.Sandbox)
}

// planEnv sets the environment of the runner, finds its program there, and checks tmux.
func (la *launcher) planEnv(ctx context.Context, p *NewRun) error {
	p.env, p.set = runnerEnv(p.Env, p.Spec.Env, p.Settings.EnvDeny), names(p.Spec.Env)
	var err error
	r := agency.Runner{Kind: p.Spec.Runner.Kind, Name: p.Spec.Runner.Name}
	if p.Spec.Sandbox == agency.SandboxContainer {
		return la.checkTmux(ctx) // its program is in the image
	}
	if p.Settings.Exec, err = la.harness.FindExec(r, p.Settings.Exec, p.Place.dir, p.env); err != nil {
		return err
	}
	return la.checkTmux(ctx)
}

// trustCommand returns the command that trusts the setup of a run that starts from base.
func trustCommand(base, usual string) string {
	if base == usual || usual == "" && base == "HEAD" {
		return "agency trust"
	}
	return "agency trust --base " + base
}

// baseName returns what a run records as its base. HEAD is that of the main worktree to everybody who
// reads it later, so a run that a user starts in another worktree of theirs records the branch there:
// it is what the run's work lands in.
func (s *Supervisor) baseName(ctx context.Context, p *NewRun) (string, error) {
	base := cmp.Or(p.From, p.Spec.BaseRef)
	if base != "HEAD" {
		return base, nil
	}
	branch, err := s.LinkedBranch(ctx, p.Place.Repo)
	return cmp.Or(branch, base), err
}

// LinkedBranch returns the branch of the linked worktree in which a user stands; empty in the main
// worktree, in that of a run, and on no branch.
func (s *Supervisor) LinkedBranch(ctx context.Context, at agency.Repo) (string, error) {
	if at.Toplevel == "" || at.Toplevel == at.Root || s.ownWorktree(at) {
		return "", nil
	}
	return s.Projects.git.BranchAt(ctx, at.Toplevel)
}

// ownWorktree reports whether a client stands in the worktree of a run.
func (s *Supervisor) ownWorktree(at agency.Repo) bool {
	rel, err := filepath.Rel(s.worktreeDir("", ""), at.Toplevel)
	return err == nil && filepath.IsLocal(rel)
}

// timeout returns how long the steps of a creation may take.
func (l *launching) timeout() time.Duration {
	const steps = 10 * time.Minute
	if l.setup != nil {
		return steps + l.setup.SetupTimeout
	}
	return steps
}

// readPrompt reads the task. A path is relative to the caller's worktree.
func readPrompt(prompt agency.SpecPrompt, base string) ([]byte, error) {
	text := []byte(prompt.Text)
	if prompt.Path != "" {
		path := prompt.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		var err error
		if text, err = file.ReadRegular(path, agency.PromptLimit); err != nil {
			return nil, agency.Errorf(agency.CodeInvalidPath, "read the prompt %s: %w", path, err)
		}
	}
	return text, agency.CheckPrompt(string(text))
}

// materialise allocates the id and completes everything that depends on it.
func (s *Supervisor) materialise(p *NewRun, commit, baseName string) error {
	spec, now := &p.Spec, s.Now()
	id := p.ID
	if id == "" {
		id = agency.NewRunID(now, [10]byte(s.Random.bytes(10)))
	}
	p.token = s.Random.token()
	r := &agency.Run{
		ID: id, Name: spec.Name, Type: spec.Type, Repo: p.repo,
		Base: baseName, Commit: commit, Branch: spec.Branch,
		Worktree: s.worktreeDir(p.repo.Fingerprint, id), Dir: s.runDir(id),
		Runner:     agency.Runner{Kind: spec.Runner.Kind, Name: spec.Runner.Name, Args: orEmpty(spec.Runner.Args)},
		Model:      spec.Runner.Model,
		Tags:       orEmpty(spec.Tags),
		Owner:      p.Owner,
		MaxMinutes: spec.Limits.MaxMinutes, StallAfterMS: spec.Limits.StallAfterMS, StuckIntervals: spec.Limits.StuckIntervals,
		Preset: spec.Preset, Sandbox: agency.Sandbox{Level: spec.Sandbox, Network: spec.Network},
		Resources: spec.Resources,
	}
	if p.standby != nil {
		r.Worktree = p.standby.Worktree
	}
	if len(r.Tags) == 0 {
		r.Tags = []string{"worker"}
	}
	if r.Runner.Name == "" {
		r.Runner.Name = string(r.Runner.Kind)
	}
	if host, err := os.Hostname(); err == nil {
		r.Host = host
	}
	first := agency.NewContract(now)
	r.Attempt = agency.Attempt{
		Number: 1, State: agency.Queued, CreatedAt: now, Image: p.image, Ports: p.ports,
		Reported: agency.Observed{Contract: &first, At: now},
	}
	mode, err := agency.ChooseMode(spec.Mode, spec.Headless)
	if err != nil {
		return err
	}
	r.Attempt.SetMode(cmp.Or(mode, agency.ModeTerminal))
	p.run = r
	if err := s.launcher.planCommand(&p.launching, spec, s.Random.uuid(), false); err != nil {
		return err
	}
	p.name(s.Random, s.Git, false)
	if spec.Branch == "" && !strings.HasPrefix(r.Branch, "agency/") {
		p.warn(fmt.Sprintf("a branch called agency is in the way of agency/%s, so the run's branch is %s", r.Handle, r.Branch))
	}
	return nil
}

// name gives the run a handle and, unless the user chose a branch, a branch named after it.
func (p *NewRun) name(random Random, git Git, again bool) {
	spec, r := &p.Spec, p.run
	hash := hex.EncodeToString(random.bytes(2))
	r.Handle = p.settings.Handle.Handle(r.Attempt.CreatedAt.Local(), handle.Slug(r.Type, r.Name, string(p.prompt[:min(len(p.prompt), 200)])), r.Type, hash, again)
	if spec.Branch == "" {
		r.Branch = git.OwnBranch(p.repo, "agency/"+r.Handle)
	}
}

// insert records the intent: after a crash from here on, the next start finishes or undoes the
// creation.
func (s *Supervisor) insert(ctx context.Context, p *NewRun) error {
	unlock, err := s.Projects.lockSolo(ctx, &p.project.Project, p.repo, "")
	if err != nil {
		return err
	}
	defer unlock()
	c := agency.Creation{
		TokenHash: agency.TokenHash(p.token),
		Steps:     []string{stepFiles, stepWorktree, stepScaffold, stepSession, stepStarted},
	}
	if p.setup != nil {
		c.Steps = slices.Insert(c.Steps, 3, stepSetup)
	}
	for range 20 {
		if c.Spec, err = materialisedSpec(p); err != nil {
			return err
		}
		err = s.Records.CreateRun(ctx, p.run, c, agency.EventDraft{Type: agency.RunCreated, Data: map[string]any{
			"handle": p.run.Handle, "name": p.run.Name, "branch": p.run.Branch, "runner": p.run.Runner.Name, "repo": p.run.Repo.Root,
		}})
		// The branch is named after the handle, so a clash can be reported for either of them.
		clash := errors.Is(err, agency.ErrHandleTaken) || p.Spec.Branch == "" && agency.IsCode(err, agency.CodeBranchExists)
		if !clash {
			return err
		}
		p.name(s.Random, s.Git, true)
	}
	return err
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func asFileError(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return agency.Errorf(agency.CodePermissionDenied, "%w", err).WithHint("check who owns the folder, or set AGENCY_HOME to one of your own")
	default:
		return fmt.Errorf("write files: %w", err)
	}
}
