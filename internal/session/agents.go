package session

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
	"agency/internal/plain"
	"agency/internal/resolve"
	"agency/internal/scheduler"
	"agency/internal/supervisor"
)

// outputLines is how many lines of its last output an agent gets when it tries again.
const outputLines = 20

// Agents gives the scheduler the runs of its agents.
type Agents struct{ Deps }

// NeededBy returns the running session that a run works for; empty is none.
func (a Agents) NeededBy(ctx context.Context, id agency.RunID) (agency.SessionID, error) {
	session, _, found, err := a.Store.AgentOfRun(ctx, id)
	if err != nil || !found {
		return "", err
	}
	s, err := a.Store.Session(ctx, session)
	if err != nil || s.Status.Final() {
		return "", err
	}
	return s.ID, nil
}

// MayStart refuses a start that would fail: a base that is missing, or a setup, or an image to be
// built, that the user does not trust.
func (a Agents) MayStart(ctx context.Context, s scheduler.Start) error {
	root, repo := s.Session.Repo.Root, s.Session.Repo
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		repo.Toplevel = root // the record has none, and a bare repository has no files
	}
	project, err := a.Projects.Of(ctx, repo)
	if err != nil {
		return err
	}
	if s.Commit != "" && !needsTrust(&project, repo) {
		return nil
	}
	cfg, err := config.Load(s.Session.Config, s.Env)
	if err != nil {
		return err
	}
	return a.checkSetup(ctx, cfg, &project, s.Agent, root, root, s.Commit, s.Env)
}

// Start makes the run of an agent, unless it exists.
func (a Agents) Start(ctx context.Context, s scheduler.Start) error {
	switch _, err := a.Store.Run(ctx, s.ID); {
	case err == nil:
		return nil // it exists already
	case !agency.IsCode(err, agency.CodeRunNotFound):
		return err
	}
	cfg, err := config.Load(s.Session.Config, s.Env)
	if err != nil {
		return err
	}
	spec := resolve.AgentSpec(s.Agent)
	spec.Repo, spec.Name, spec.Branch = s.Session.Repo.Root, s.Name, a.freeBranch(ctx, s.Session.Repo, s.Branch)
	if s.Commit != "" {
		spec.BaseRef = s.Commit
	}
	at, err := a.Projects.Locate(ctx, spec.Repo, spec.Repo, spec.BaseRef)
	if err != nil {
		return err
	}
	settings, err := resolve.Run(cfg, &spec, &at.Project)
	if err != nil {
		return err
	}
	from, err := a.branchBefore(ctx, s.After)
	if err != nil {
		return err
	}
	_, warnings, err := a.Runs.CreateRun(ctx, supervisor.NewRun{ID: s.ID, Owner: s.Session.Owner, Spec: spec, From: from, Env: s.Env, Place: at, Settings: settings})
	for _, text := range warnings {
		a.Log.Warn("start agent", "session", s.Session.ID, "agent", s.Agent.ID, "note", text)
	}
	return err
}

// branchBefore returns the branch at which a run of the session began, so that what starts from its
// results lands where it does; empty for none, and for HEAD.
func (a Agents) branchBefore(ctx context.Context, id agency.RunID) (string, error) {
	if id == "" {
		return "", nil
	}
	r, err := a.Store.Run(ctx, id)
	if err != nil || r.Base == "HEAD" || isCommit(r.Base) {
		return "", err
	}
	return r.Base, nil
}

// freeBranch returns the branch for the run of an agent, with a number at its end when the name is
// taken: a start that was undone leaves its branch when the agent had committed by then.
func (a Agents) freeBranch(ctx context.Context, repo agency.Repo, branch string) string {
	const most = 100 // the creation refuses the last one
	first := a.Git.OwnBranch(repo, branch)
	free := first
	for n := 2; n <= most && agency.IsCode(a.Git.CheckBranch(ctx, repo, free), agency.CodeBranchExists); n++ {
		free = fmt.Sprintf("%s-%d", first, n)
	}
	return free
}

// Resume begins another attempt of an agent, whose task begins with how the attempt before ended.
func (a Agents) Resume(ctx context.Context, again scheduler.ResumeRequest) error {
	r, err := a.Store.Run(ctx, again.ID)
	if err != nil {
		return err
	}
	cfg, err := config.Load(again.Session.Config, again.Env)
	if err != nil {
		return err
	}
	settings, err := resolve.Later(cfg, r)
	if err != nil {
		return err
	}
	reason := cmp.Or(again.Reason, r.Attempt.Error, "it was cut off")
	resumed, err := a.Runs.ResumeRun(ctx, supervisor.ResumeRequest{
		Ref: string(again.ID), Prompt: againPrompt(again.Agent.Prompt, r.Attempt.Number, reason, a.Terminals.Preview(ctx, r, outputLines)),
		Env: again.Env, Settings: settings,
	})
	if resumed != nil {
		for _, text := range resumed.Warnings {
			a.Log.Warn("start agent again", "session", again.Session.ID, "agent", again.Agent.ID, "note", text)
		}
	}
	return err
}

// againPrompt returns a task with a note on how the attempt before ended. Each added line begins
// with #, so that a script stays valid.
func againPrompt(prompt string, attempt int, reason string, output []string) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(prompt, "\n"))
	fmt.Fprintf(&b, "\n\n# Attempt %d of this task has ended: %s. Its work is in this worktree; continue from there.\n", attempt, plain.OneLine(reason))
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

// Stop ends an attempt, unless it has ended.
func (a Agents) Stop(ctx context.Context, id agency.RunID, attempt int) error {
	err := a.Runs.StopAttempt(ctx, id, attempt)
	if agency.IsCode(err, agency.CodeInvalidState) {
		return nil
	}
	return err
}

// Outcome returns the state of an agent's run, and the agent's last sign of life.
func (a Agents) Outcome(ctx context.Context, id agency.RunID) (*scheduler.Outcome, error) {
	r, status, drafts, err := a.Query.Worker(ctx, id)
	if err == nil && r.RemovedAt != nil {
		err = agency.Errorf(agency.CodeRunNotFound, "%s was removed", r.Ref())
	}
	if err != nil {
		return nil, err
	}
	if r.MergedAt != nil && !r.Attempt.State.Final() {
		open := *r // it may work on after a landing, and what it says then counts
		open.MergedAt = nil
		status = a.Observer.Derive(&open)
	}
	last := &r.Attempt
	signal := last.CreatedAt
	for _, at := range []time.Time{drafts, last.AgentState.HeardAt, last.Reported.At, orZero(last.StartedAt), orZero(last.InputAt)} {
		if at.After(signal) {
			signal = at
		}
	}
	return &scheduler.Outcome{Run: r, Status: status, SignalAt: signal}, nil
}

// Activity returns what an agent's run is doing.
func (a Agents) Activity(ctx context.Context, id agency.RunID) (agency.Activity, error) {
	r, err := a.Store.Run(ctx, id)
	if err != nil {
		return agency.Activity{}, err
	}
	return a.Terminals.Activity(r), nil
}

func orZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// Result returns the commit from which other agents start: the content of the agent's worktree or,
// when that was removed, its snapshot or the newer content of its branch.
func (a Agents) Result(ctx context.Context, id agency.RunID) (string, error) {
	r, err := a.Store.Run(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(r.Worktree); r.RemovedAt == nil && !errors.Is(err, os.ErrNotExist) {
		return a.Git.Result(ctx, r.Repo, r.Worktree, "what "+r.Ref()+" did not commit")
	}
	branch, branchErr := a.Git.ResolveCommit(ctx, r.Repo.Root, "refs/heads/"+r.Branch)
	if branchErr != nil && !agency.IsCode(branchErr, agency.CodeBadRef) {
		return "", branchErr
	}
	saved, err := a.Git.Snapshots(ctx, r.Repo, id)
	if err != nil {
		return "", err
	}
	switch newest := len(saved) - 1; {
	case branchErr == nil && newest < 0:
		return branch, nil
	case branchErr == nil:
		// Commits on the branch from after the removal of the worktree are newer than the snapshot.
		if onTop, err := a.Git.Descends(ctx, r.Repo, saved[newest].Commit, branch); err != nil || !onTop {
			return branch, err
		}
	case newest < 0:
		return "", agency.Errorf(agency.CodeResultGone,
			"%s was removed with its branch, and without a snapshot; point the branch %s at its work, or at %.12s where it began, then resume the session",
			r.Ref(), r.Branch, r.Commit)
	}
	return saved[len(saved)-1].Commit, nil // the content of its worktree at the removal
}

// Merge merges the results of agents into one commit.
func (a Agents) Merge(ctx context.Context, s *agency.Session, commits []string) (string, error) {
	return a.Git.Merge(ctx, s.Repo, commits, "results of session "+string(s.ID))
}
