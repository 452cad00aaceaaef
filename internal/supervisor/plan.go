package supervisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/supervisor/observe"
	"agency/internal/supervisor/standby"
)

// planner decides what can be decided about an attempt before the attempt is recorded: it checks the
// request, and completes it up to the command line of the agent.
type planner struct {
	store    *Records
	repos    *Repos
	projects *Projects
	images   *images
	standbys *standby.Pool
	launcher *launcher
	git      Git
	harness  Harness
	sandbox  Sandbox
	random   Random
	room     func() error // as in Deps
	home     string       // data root
	hook     []string     // as in Settings
	now      func() time.Time
}

// planRun validates a request without creating anything: first what needs no id, then, with the id,
// what depends on it.
func (pl *planner) planRun(ctx context.Context, p *NewRun) error {
	commit, err := pl.projects.commitOf(ctx, p.Place, p.Spec.BaseRef)
	if err != nil {
		return err
	}
	baseName, err := pl.baseName(ctx, p)
	if err != nil {
		return err
	}
	p.repo, p.project, p.settings = p.Place.Repo, p.Place.project, &p.Settings
	if err := pl.checkRequest(ctx, p); err != nil {
		return err
	}
	if err := pl.planEnv(ctx, p); err != nil {
		return err
	}
	if p.Spec.Name != "" {
		if err := pl.store.checkNameFree(ctx, p.Spec.Name); err != nil {
			return err
		}
	}
	if err := pl.repos.admit(ctx, &p.repo, p.Owner); err != nil {
		return err
	}
	if !p.Spec.NoSetup {
		p.setup, err = pl.projects.planSetup(ctx, p.repo, p.project, pl.projects.inCommit(ctx, p.repo, commit), preparing{
			where: fmt.Sprintf("the commit %.12s (%s)", commit, p.Spec.BaseRef), env: p.env, level: p.Spec.Sandbox, fromSandbox: p.AskedBy != nil,
			again: trustCommand(p.Spec.BaseRef, p.project.Base), without: "agency run --no-setup ...",
		})
		if err != nil {
			return err
		}
	}
	if err := pl.images.choose(ctx, p, commit); err != nil {
		return err
	}
	pl.takeStandby(ctx, p, commit)
	if err := pl.materialise(p, commit, baseName); err != nil {
		if p.standby != nil {
			pl.standbys.Return(p.standby)
		}
		return err
	}
	return nil
}

// checkRequest checks a request against the repository and the machine, and reads the prompt and the
// inputs.
func (pl *planner) checkRequest(ctx context.Context, p *NewRun) error {
	if err := p.Spec.Validate(); err != nil {
		return err
	}
	if err := pl.repos.refuseOwnTree(p.repo); err != nil {
		return err
	}
	if err := pl.room(); err != nil && (pl.standbys.Clear(ctx) == 0 || pl.room() != nil) {
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
		if err := pl.git.CheckBranch(ctx, p.repo, p.Spec.Branch); err != nil {
			return err
		}
		hides, err := pl.hidesRemote(ctx, p)
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
	if _, err := pl.sandbox.Limits(p.Spec.Sandbox, p.Spec.Resources); err != nil {
		return err
	}
	return pl.sandbox.Check(ctx, p.Spec.Sandbox)
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

// planEnv sets the environment of the runner, finds its program there, and checks tmux.
func (pl *planner) planEnv(ctx context.Context, p *NewRun) error {
	p.env, p.set = runnerEnv(p.Env, p.Spec.Env, p.Settings.EnvDeny), names(p.Spec.Env)
	var err error
	r := agency.Runner{Kind: p.Spec.Runner.Kind, Name: p.Spec.Runner.Name}
	if p.Spec.Sandbox == agency.SandboxContainer {
		return pl.launcher.checkTmux(ctx) // its program is in the image
	}
	if p.Settings.Exec, err = pl.harness.FindExec(r, p.Settings.Exec, p.Place.dir, p.env); err != nil {
		return err
	}
	return pl.launcher.checkTmux(ctx)
}

// trustCommand returns the command that trusts the setup of a run that starts from base.
func trustCommand(base, usual string) string {
	if base == usual || usual == "" && base == "HEAD" {
		return "agency trust"
	}
	return "agency trust --base " + base
}

// baseName returns what a run records as its base. A recorded HEAD means that of the main worktree.
// So a run that a user starts in a linked worktree records the branch of that worktree: there its
// work lands.
func (pl *planner) baseName(ctx context.Context, p *NewRun) (string, error) {
	base := cmp.Or(p.From, p.Spec.BaseRef)
	if base != "HEAD" {
		return base, nil
	}
	branch, err := pl.repos.LinkedBranch(ctx, p.Place.Repo)
	return cmp.Or(branch, base), err
}

// materialise allocates the id and completes everything that depends on it.
func (pl *planner) materialise(p *NewRun, commit, baseName string) error {
	spec, now := &p.Spec, pl.now()
	id := p.ID
	if id == "" {
		id = agency.NewRunID(now, [10]byte(pl.random.bytes(10)))
	}
	p.token = pl.random.token()
	r := &agency.Run{
		ID: id, Name: spec.Name, Type: spec.Type, Repo: p.repo,
		Base: baseName, Commit: commit, Branch: spec.Branch,
		Worktree: filepath.Join(pl.home, "worktrees", p.repo.Fingerprint, string(id)), Dir: filepath.Join(pl.home, "runs", string(id)),
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
	if err := pl.planCommand(&p.launching, spec, pl.random.uuid(), false); err != nil {
		return err
	}
	p.name(pl.random, pl.git, false)
	if spec.Branch == "" && !strings.HasPrefix(r.Branch, "agency/") {
		p.warn(fmt.Sprintf("a branch called agency is in the way of agency/%s, so the run's branch is %s", r.Handle, r.Branch))
	}
	return nil
}

// planCommand builds the command line of a queued attempt and sets the conversation and the
// fingerprint of its run.
func (pl *planner) planCommand(l *launching, spec *agency.Spec, conversation string, resume bool) error {
	r := l.run
	req := agency.CommandRequest{
		Runner: r.Runner, Exec: l.settings.Exec, DefaultArgs: l.settings.DefaultArgs, Protocol: l.settings.Protocol, Model: r.Model, Headless: r.Attempt.Headless, Mode: r.Attempt.Mode,
		PromptFile: filepath.Join(r.Worktree, agency.PromptFile), Worktree: r.Worktree,
		RunID: r.ID, Attempt: r.Attempt.Number, ConversationID: conversation, Resume: resume, Silent: l.silent, Env: l.env,
		AttemptDir: observe.AttemptDir(r.Dir, r.Attempt.Number), Hook: pl.hook,
		SystemPrompt: spec.SystemPrompt, SkipPermissions: spec.Runner.SkipPermissions, Sandbox: r.Sandbox.Level,
	}
	if resume && r.Attempt.Mode == agency.ModeProtocol {
		l.resumes = conversation
	}
	command, err := pl.harness.Build(req)
	if err != nil {
		return err
	}
	l.hosts = spec.Hosts
	l.command, r.Attempt.ConversationID, r.ConfigHash = command, command.ConversationID, configHash(&req, &command)
	return nil
}

// configHash returns a fingerprint of what must not change silently between attempts: the runner,
// its program, its model, and its arguments, both the run's and those of the configuration, which
// set the sandbox and the tools.
func configHash(req *agency.CommandRequest, c *agency.Command) string {
	sum := sha256.New()
	own := []string{string(req.Runner.Kind), req.Runner.Name, req.Model, c.Argv[0], strconv.FormatBool(req.SkipPermissions)}
	for _, list := range [][]string{own, req.DefaultArgs, req.Runner.Args} {
		_, _ = fmt.Fprintf(sum, "%d;", len(list)) // so that moving an argument between lists changes the hash
		for _, part := range list {
			_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// placesOfGit are the variables that point git to a repository other than that of its working
// directory. A process that a git hook starts has them, and with them an agent would commit to its
// caller's worktree.
var placesOfGit = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY",
	"GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

// runnerEnv returns the environment of a runner: the caller's, without tmux, agency's names, git's
// places and what the configuration denies, plus what the run sets.
func runnerEnv(caller, set, deny []string) []string {
	env := agency.Environ(caller).WithoutFunc(func(name string) bool {
		return strings.HasPrefix(name, "TMUX") || strings.HasPrefix(name, "AGENCY_") || slices.Contains(placesOfGit, name) || denied(name, deny)
	})
	return append(env, set...)
}

func denied(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok { // the configuration refuses bad patterns
			return true
		}
	}
	return false
}
