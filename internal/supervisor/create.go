package supervisor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"agency"
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
	From  string   // what the run records as its base, if that of Spec is a commit made of results; empty is that of Spec
	Env   []string // the caller's environment, on which the runner's is based
	// Place is where the run begins; Settings is what the caller's configuration sets for it. Both
	// complete the spec.
	Place    *Place
	Settings agency.RunSettings
	AskedBy  *agency.Run // the run in a sandbox whose agent requests this one; nil for all other clients

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
	err := s.planner.planRun(ctx, p)
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

// timeout returns how long the steps of a creation may take.
func (l *launching) timeout() time.Duration {
	const steps = 10 * time.Minute
	if l.setup != nil {
		return steps + l.setup.SetupTimeout
	}
	return steps
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
