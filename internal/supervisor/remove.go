package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"agency"
	"agency/internal/killpoint"
)

// releaseTimeout bounds the wait for a wrapper that has recorded its runner's end.
const releaseTimeout = 15 * time.Second

// RemoveRequest removes a run.
type RemoveRequest struct {
	Ref          string
	Force        bool // also when nested repositories hold work that cannot be saved
	DeleteBranch bool
}

// Removal says what a removal did.
type Removal struct {
	Run      *agency.Run
	Snapshot *agency.Saved // what was saved before the worktree went; nil when there was nothing to save
	Branch   string        // the branch that stays; empty when it was deleted
	Warnings []string      // what was missing already; never nil
}

// RemoveRun takes away an ended run's session and worktree, and its branch if asked. Uncommitted or unmerged work is saved
// under refs/agency/snapshots first. It can be repeated: a removed run is fine, and what is missing is a warning.
func (s *Supervisor) RemoveRun(ctx context.Context, req RemoveRequest) (*Removal, error) {
	r, release, err := s.hold(ctx, req.Ref)
	if err != nil {
		return nil, err
	}
	defer release()
	removal := &Removal{Run: r, Branch: r.Branch, Warnings: []string{}}
	if r.RemovedAt != nil {
		if _, err := s.Git.ResolveCommit(ctx, r.Repo.Root, "refs/heads/"+r.Branch); err != nil {
			removal.Branch = ""
		}
		return removal, nil
	}
	if !r.Attempt.State.Final() {
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is %s, and only an ended run can be removed", r.Ref(), r.Attempt.State).
			WithHint("agency stop %s", r.Ref())
	}
	if session, err := s.NeededBy(ctx, r.ID); err != nil {
		return nil, err
	} else if session != "" {
		return nil, agency.Errorf(agency.CodeInvalidState, "%s works for session %s, which needs what it came to", r.Ref(), session).
			WithHint("wait for its end: agency session wait %s; or end it: agency session cancel %s", session, session)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
	defer cancel()
	if err := s.awaitRelease(ctx, r); err != nil {
		return nil, err
	}
	if err := s.removeWorktree(ctx, r, req, removal); err != nil {
		return nil, err
	}
	err = s.Tmux.Kill(ctx, r.Session())
	if gone := agency.IsCode(err, agency.CodeTmuxSessionNotFound); err != nil && (!gone || r.Attempt.State != agency.Killed && r.Attempt.EndedBy != agency.EndedBySetupFailed) {
		// The session of a stopped run is gone because the stop took it, and a run without its setup never had one.
		removal.Warnings = append(removal.Warnings, fmt.Sprintf("tmux session %s: %s", r.Session(), agency.AsError(err).Message))
	}
	killpoint.At("remove.session")
	removal.Run, err = s.Store.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.News, error) {
		now := s.Now()
		r.RemovedAt = &now
		return []agency.News{{Type: agency.RunRemoved, Data: map[string]any{
			"snapshot": removal.Snapshot, "branch": removal.Branch, "warnings": removal.Warnings,
		}}}, nil
	})
	if err != nil {
		return nil, err
	}
	killpoint.At("remove.recorded")
	s.writeViews(removal.Run)
	s.showRuns(ctx, removal.Run)
	return removal, nil
}

// awaitRelease waits until the wrapper of an ended attempt is gone: it may still be ending what the runner left behind, and
// that could still write to the worktree.
func (s *Supervisor) awaitRelease(ctx context.Context, r *agency.Run) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	for {
		held, err := s.Attempts.Held(attemptDir(r.Dir, r.Attempt.Number))
		if err != nil {
			return fmt.Errorf("look at the lock of %s: %w", r.Ref(), err)
		}
		if !held {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return agency.Errorf(agency.CodeCleanupFailed, "the wrapper of %s is still ending what the agent left behind", r.Ref()).
				WithHint("try again: agency rm %s", r.Ref())
		}
	}
}

func (s *Supervisor) removeWorktree(ctx context.Context, r *agency.Run, req RemoveRequest, removal *Removal) error {
	unlock, err := s.lockRepo(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	repo, err := s.Git.Discover(ctx, r.Repo.Root)
	if err != nil {
		// Without the repository the worktree cannot be saved, so it stays.
		if _, statErr := os.Lstat(r.Worktree); errors.Is(statErr, os.ErrNotExist) {
			removal.Warnings = append(removal.Warnings, "repository: "+agency.AsError(err).Message)
			return nil
		}
		if !req.Force {
			return agency.Errorf(agency.CodeCleanupFailed, "the repository of %s is not at %s any more, so the work in %s cannot be saved", r.Ref(), r.Repo.Root, r.Worktree).
				WithHint("if it was moved, start a run in its new place first; to give the work up: agency rm --force %s", r.Ref())
		}
		removal.Warnings, removal.Branch = append(removal.Warnings, "repository: "+agency.AsError(err).Message), ""
		return os.RemoveAll(r.Worktree)
	}
	if _, err := os.Lstat(r.Worktree); errors.Is(err, os.ErrNotExist) {
		removal.Warnings = append(removal.Warnings, "worktree "+r.Worktree+" was gone already")
	} else if err := s.saveWork(ctx, r, repo, req.Force, removal); err != nil {
		return err
	}
	killpoint.At("remove.saved")
	if err := s.Git.RemoveWorktree(ctx, repo, r.Worktree); err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "remove the worktree of %s: %w", r.Ref(), err)
	}
	killpoint.At("remove.worktree")
	if req.DeleteBranch {
		if err := s.Git.DeleteBranch(ctx, repo, r.Branch); err != nil {
			return agency.Errorf(agency.CodeCleanupFailed, "delete the branch %s: %w", r.Branch, err)
		}
		killpoint.At("remove.branch")
		removal.Branch = ""
	}
	return nil
}

// snapshot saves everything in a run's worktree under the next free number. A number is never used twice: a removal that
// was cut off in the middle leaves half a worktree, and its snapshot must not replace that of the whole.
func (s *Supervisor) snapshot(ctx context.Context, r *agency.Run, repo agency.Repo, why string) (agency.Saved, error) {
	earlier, err := s.Git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return agency.Saved{}, err
	}
	number := 1
	if len(earlier) > 0 {
		number = earlier[len(earlier)-1].Number + 1
	}
	ref := fmt.Sprintf("%s%d", agency.SnapshotRefs(r.ID), number)
	saved, err := s.Git.Snapshot(ctx, r.Worktree, ref, "work of "+r.Ref()+" "+why)
	if err != nil {
		return agency.Saved{}, agency.Errorf(agency.CodeCleanupFailed, "save the work in %s: %w", r.Worktree, err)
	}
	return saved, nil
}

// saveDirty snapshots a worktree that holds changes; it returns nil when there are none.
func (s *Supervisor) saveDirty(ctx context.Context, r *agency.Run, repo agency.Repo, why string) (*agency.Saved, error) {
	facts, err := s.Git.Inspect(ctx, r.Worktree, r.Commit)
	if err != nil {
		return nil, agency.Errorf(agency.CodeCleanupFailed, "look for unsaved work in %s: %w", r.Worktree, err)
	}
	if !facts.Dirty {
		return nil, nil //nolint:nilnil // nothing to save is no error
	}
	saved, err := s.snapshot(ctx, r, repo, why)
	return &saved, err
}

// saveWork snapshots a worktree that holds changes, or commits that no other branch has.
func (s *Supervisor) saveWork(ctx context.Context, r *agency.Run, repo agency.Repo, force bool, removal *Removal) error {
	facts, err := s.Git.Inspect(ctx, r.Worktree, r.Commit)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for unsaved work in %s: %w", r.Worktree, err)
	}
	unmerged, err := s.Git.Unmerged(ctx, repo, r.Branch, r.Commit)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for unmerged work on %s: %w", r.Branch, err)
	}
	// Commits on a detached HEAD, or on a branch that the agent made, are on no branch of the run.
	elsewhere := facts.Branch != r.Branch && facts.Ahead > 0
	if !facts.Dirty && !unmerged && !elsewhere {
		return nil
	}
	saved, err := s.snapshot(ctx, r, repo, "before its worktree was removed")
	if err != nil {
		return err
	}
	if len(saved.Nested) > 0 && !force {
		return agency.Errorf(agency.CodeCleanupFailed, "the worktree of %s holds repositories of their own whose work cannot be saved: %s", r.Ref(), strings.Join(saved.Nested, ", ")).
			WithDetail("nested", saved.Nested).
			WithHint("save or push them first, or give them up: agency rm --force %s", r.Ref())
	}
	removal.Snapshot = &saved
	return nil
}
