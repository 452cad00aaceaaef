package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/config"
	"agency/internal/resolve"
	"agency/internal/schedule"
	"agency/internal/scheduler"
	"agency/internal/supervisor"
)

// startsAtOnce is how many runs the scheduler starts at once: making worktrees is work for all cores and the disk.
const startsAtOnce = 4

// outputLines is how much of its last output an agent is told when it tries again.
const outputLines = 20

func (d *Daemon) newScheduler() *scheduler.Scheduler {
	return scheduler.New(scheduler.Deps{
		Store: d.store, Runs: schedulerRuns{d}, Log: d.Log, Now: d.clock.Now, Elapsed: d.clock.Elapsed,
		Random: func(b []byte) { copy(b, randomBytes(len(b))) },
	}, scheduler.Settings{Home: d.Config.Home, Starts: startsAtOnce, Retry: schedule.DefaultRetryPolicy()})
}

// neededBy is the session that runs and that a run works for; empty is none.
func (d *Daemon) neededBy(ctx context.Context, id agency.RunID) (agency.SessionID, error) {
	session, _, found, err := d.store.AgentOfRun(ctx, id)
	if err != nil || !found {
		return "", err
	}
	s, err := d.store.Session(ctx, session)
	if err != nil || s.Status.Final() {
		return "", err
	}
	return s.ID, nil
}

// schedulerRuns gives the scheduler its runs.
type schedulerRuns struct{ *Daemon }

func (c schedulerRuns) MayStart(ctx context.Context, s scheduler.Start) error {
	root, repo := s.Session.Repo.Root, s.Session.Repo
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		repo.Toplevel = root // the record has none, and a bare repository no files
	}
	project, err := c.sup.Projects.Of(ctx, repo)
	if err != nil || s.Commit != "" && !project.NeedsTrust() {
		return err
	}
	cfg, err := config.Load(s.Session.Config, s.Env)
	if err != nil {
		return err
	}
	if !project.NeedsTrust() {
		spec, _, err := resolve.Agent(cfg, &project, s.Agent)
		if err == nil {
			_, err = c.git.ResolveCommit(ctx, root, spec.BaseRef)
		}
		return err
	}
	return c.checkSetup(ctx, cfg, &project, s.Agent, root, root, s.Commit, s.Env)
}

func (c schedulerRuns) Start(ctx context.Context, s scheduler.Start) error {
	switch _, err := c.store.Run(ctx, s.ID); {
	case err == nil:
		return nil // it is there already
	case !agency.IsCode(err, agency.CodeRunNotFound):
		return err
	}
	cfg, err := config.Load(s.Session.Config, s.Env)
	if err != nil {
		return err
	}
	spec := resolve.AgentSpec(s.Agent)
	spec.Repo, spec.Name, spec.Branch = s.Session.Repo.Root, s.Name, c.git.OwnBranch(s.Session.Repo, s.Branch)
	if s.Commit != "" {
		spec.BaseRef = s.Commit
	}
	at, err := c.sup.Projects.Locate(ctx, spec.Repo, spec.Repo, spec.BaseRef)
	if err != nil {
		return err
	}
	settings, err := resolve.Run(cfg, &spec, &at.Project)
	if err != nil {
		return err
	}
	_, err = c.sup.CreateRun(ctx, supervisor.CreateRequest{
		ID: s.ID, Owner: s.Session.Owner, Spec: spec, Dir: s.Session.Repo.Root, Env: s.Env, Place: at, Settings: settings,
		Warn: func(text string) {
			c.Log.Warn("start agent", "session", s.Session.ID, "agent", s.Agent.ID, "note", text)
		},
	})
	return err
}

func (c schedulerRuns) Resume(ctx context.Context, a scheduler.ResumeRequest) error {
	r, err := c.store.Run(ctx, a.ID)
	if err != nil {
		return err
	}
	reason := cmp.Or(a.Reason, r.Attempt.Error, "it was cut off")
	_, err = c.sup.ResumeRun(ctx, supervisor.ResumeRequest{
		Ref: string(a.ID), Prompt: againPrompt(a.Agent.Prompt, r.Attempt.Number, reason, c.sup.Preview(ctx, r, outputLines)), Env: a.Env,
		Warn: func(text string) {
			c.Log.Warn("start agent again", "session", a.Session.ID, "agent", a.Agent.ID, "note", text)
		},
		Settings: laterSettings(a.Session.Config, a.Env),
	})
	return err
}

// againPrompt is a task with how the attempt before ended. What is added begins with #, so that a task that is a script stays one.
func againPrompt(prompt string, attempt int, reason string, output []string) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(prompt, "\n"))
	fmt.Fprintf(&b, "\n\n# Attempt %d of this task has ended: %s. What it did is in this worktree; go on from there.\n", attempt, agency.OneLine(reason))
	if len(output) > 0 {
		b.WriteString("# Its last output:\n")
	}
	for _, line := range output {
		b.WriteString("#   " + line + "\n")
	}
	if b.Len() > agency.PromptLimit {
		return prompt
	}
	return b.String()
}

func (c schedulerRuns) Stop(ctx context.Context, id agency.RunID, attempt int) error {
	err := c.sup.StopAttempt(ctx, id, attempt)
	if agency.IsCode(err, agency.CodeInvalidState) {
		return nil
	}
	return err
}

func (c schedulerRuns) Outcome(ctx context.Context, id agency.RunID) (*scheduler.Outcome, error) {
	r, status, news, err := c.sup.Worker(ctx, id)
	if err != nil {
		return nil, err
	}
	a := &r.Attempt
	sign := a.CreatedAt
	for _, at := range []time.Time{news, a.Situation.HeardAt, a.Word.At, orZero(a.StartedAt), orZero(a.InputAt)} {
		if at.After(sign) {
			sign = at
		}
	}
	return &scheduler.Outcome{Run: r, Status: status, SignAt: sign}, nil
}

func (c schedulerRuns) Activity(ctx context.Context, id agency.RunID) (agency.Activity, error) {
	r, err := c.store.Run(ctx, id)
	if err != nil {
		return agency.Activity{}, err
	}
	return c.sup.Activity(r), nil
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

func (c schedulerRuns) Result(ctx context.Context, id agency.RunID) (string, error) {
	r, err := c.store.Run(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(r.Worktree); r.RemovedAt == nil && !errors.Is(err, os.ErrNotExist) {
		return c.git.Result(ctx, r.Repo, r.Worktree, "what "+r.Ref()+" did not commit")
	}
	branch, branchErr := c.git.ResolveCommit(ctx, r.Repo.Root, "refs/heads/"+r.Branch)
	if branchErr != nil && !agency.IsCode(branchErr, agency.CodeBadRef) {
		return "", branchErr
	}
	saved, err := c.git.Snapshots(ctx, r.Repo, id)
	if err != nil {
		return "", err
	}
	switch newest := len(saved) - 1; {
	case branchErr == nil && newest < 0:
		return branch, nil
	case branchErr == nil:
		// What the branch got after the worktree was removed is newer than what was saved then.
		if onTop, err := c.git.Descends(ctx, r.Repo, saved[newest].Commit, branch); err != nil || !onTop {
			return branch, err
		}
	case newest < 0:
		return "", agency.Errorf(agency.CodeResultGone,
			"%s was removed with its branch, and nothing of it was saved; point the branch %s at its work, or at %.12s where it began, then resume the session",
			r.Ref(), r.Branch, r.Commit)
	}
	return saved[len(saved)-1].Commit, nil // what was in its worktree when that was removed
}

func (c schedulerRuns) Merge(ctx context.Context, s *agency.Session, commits []string) (string, error) {
	return c.git.Merge(ctx, s.Repo, commits, "results of session "+string(s.ID))
}
