package supervisor

import (
	"context"
	"fmt"

	"agency"
)

// SnapshotRun saves everything in a run's worktree that is not ignored, whether the agent runs or not. The worktree, its
// index and its branch stay as they are. It returns nil when there is nothing to save.
func (s *Supervisor) SnapshotRun(ctx context.Context, ref string) (*agency.Run, *agency.Saved, error) {
	r, release, err := s.hold(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if r.RemovedAt != nil {
		return nil, nil, agency.Errorf(agency.CodeInvalidState, "%s is removed and has no worktree", r.Ref()).WithHint("agency snapshot ls %s", r.Ref())
	}
	repo, err := s.repoOf(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkWorktree(ctx, r, repo); err != nil {
		return nil, nil, err
	}
	saved, err := s.saveDirty(ctx, r, repo, "as asked for")
	return r, saved, err
}

// Snapshots lists what was saved of a run, oldest first. It works for removed runs too.
func (s *Supervisor) Snapshots(ctx context.Context, ref string) (*agency.Run, []agency.Snapshot, error) {
	r, repo, err := s.runAndRepo(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	snapshots, err := s.Git.Snapshots(ctx, repo, r.ID)
	return r, snapshots, err
}

// ShowSnapshot is one snapshot and the files in which it differs from the commit that the run began at. Number 0 is the
// newest.
func (s *Supervisor) ShowSnapshot(ctx context.Context, ref string, number int) (*agency.Run, *agency.Snapshot, []agency.FileChange, error) {
	r, repo, err := s.runAndRepo(ctx, ref)
	if err != nil {
		return nil, nil, nil, err
	}
	found, err := s.findSnapshot(ctx, r, repo, number)
	if err != nil {
		return nil, nil, nil, err
	}
	changes, err := s.Git.Changes(ctx, repo, r.Commit, found.Commit)
	return r, found, changes, err
}

// RestoreSnapshot makes a new branch at a snapshot. Nothing else is touched: what is on the branch can be looked at,
// merged or checked out like any other.
func (s *Supervisor) RestoreSnapshot(ctx context.Context, ref string, number int, branch string) (*agency.Snapshot, string, error) {
	r, repo, err := s.runAndRepo(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	found, err := s.findSnapshot(ctx, r, repo, number)
	if err != nil {
		return nil, "", err
	}
	if branch == "" {
		branch = s.Git.OwnBranch(repo, fmt.Sprintf("agency/restored-%s-%d", r.Handle, found.Number))
	}
	unlock, err := s.lockRepo(ctx, r.Repo.Fingerprint)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	if err := s.Git.CheckBranch(ctx, repo, branch); err != nil {
		return nil, "", err
	}
	return found, branch, s.Git.CreateBranch(ctx, repo, branch, found.Commit)
}

func (s *Supervisor) findSnapshot(ctx context.Context, r *agency.Run, repo agency.Repo, number int) (*agency.Snapshot, error) {
	snapshots, err := s.Git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return nil, err
	}
	for i := range snapshots {
		if snapshots[i].Number == number || (number == 0 && i == len(snapshots)-1) {
			return &snapshots[i], nil
		}
	}
	if number == 0 {
		return nil, agency.Errorf(agency.CodeRunNotFound, "nothing of %s was ever saved", r.Ref()).WithHint("agency snapshot %s", r.Ref())
	}
	return nil, agency.Errorf(agency.CodeRunNotFound, "%s has no snapshot %d", r.Ref(), number).WithHint("agency snapshot ls %s", r.Ref())
}

func (s *Supervisor) runAndRepo(ctx context.Context, ref string) (*agency.Run, agency.Repo, error) {
	r, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Repo{}, err
	}
	repo, err := s.repoOf(ctx, r)
	return r, repo, err
}
