package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agency"
)

// Work knows what runs changed in their worktrees and on their branches. It shows, saves and
// restores it.
type Work struct {
	store *Records
	repos *Repos
	git   Git
}

// SnapshotRun saves everything in a run's worktree except ignored files, whether or not the agent
// runs. The worktree, its index and its branch stay as they are. It returns nil when there is
// nothing to save.
func (s *Supervisor) SnapshotRun(ctx context.Context, ref string) (*agency.Run, *agency.Saved, error) {
	r, release, err := s.Records.Hold(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if r.RemovedAt != nil {
		return nil, nil, agency.Errorf(agency.CodeInvalidState, "%s is removed and has no worktree", r.Ref()).WithHint("agency snapshot ls %s", r.Ref())
	}
	repo, err := s.Repos.Of(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Repos.checkWorktree(ctx, r, repo); err != nil {
		return nil, nil, err
	}
	saved, err := s.Work.saveDirty(ctx, r, repo, "as asked for")
	return r, saved, err
}

// List returns the snapshots of a run, oldest first. It works for removed runs too.
func (w *Work) List(ctx context.Context, ref string) (*agency.Run, []agency.Snapshot, error) {
	r, repo, err := w.runAndRepo(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	snapshots, err := w.git.Snapshots(ctx, repo, r.ID)
	return r, snapshots, err
}

// Show returns one snapshot and the files that differ from the run's base commit. Number 0 is the
// newest.
func (w *Work) Show(ctx context.Context, ref string, number int) (*agency.Run, *agency.Snapshot, []agency.FileChange, error) {
	r, repo, err := w.runAndRepo(ctx, ref)
	if err != nil {
		return nil, nil, nil, err
	}
	found, err := w.findSnapshot(ctx, r, repo, number)
	if err != nil {
		return nil, nil, nil, err
	}
	changes, err := w.git.Changes(ctx, repo, r.Commit, found.Commit)
	return r, found, changes, err
}

// Restore creates a branch at a snapshot. It changes nothing else: the branch can be shown, merged
// or checked out like any other.
func (w *Work) Restore(ctx context.Context, ref string, number int, branch string) (*agency.Snapshot, string, error) {
	r, repo, err := w.runAndRepo(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	found, err := w.findSnapshot(ctx, r, repo, number)
	if err != nil {
		return nil, "", err
	}
	if branch == "" {
		branch = w.git.OwnBranch(repo, fmt.Sprintf("agency/restored-%s-%d", r.Handle, found.Number))
	}
	unlock, err := w.repos.Lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	if err := w.git.CheckBranch(ctx, repo, branch); err != nil {
		return nil, "", err
	}
	return found, branch, w.git.CreateBranch(ctx, repo, branch, found.Commit)
}

func (w *Work) findSnapshot(ctx context.Context, r *agency.Run, repo agency.Repo, number int) (*agency.Snapshot, error) {
	snapshots, err := w.git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return nil, err
	}
	for i := range snapshots {
		if snapshots[i].Number == number || (number == 0 && i == len(snapshots)-1) {
			return &snapshots[i], nil
		}
	}
	if number == 0 {
		return nil, agency.Errorf(agency.CodeRunNotFound, "%s has no snapshots", r.Ref()).WithHint("agency snapshot %s", r.Ref())
	}
	return nil, agency.Errorf(agency.CodeRunNotFound, "%s has no snapshot %d", r.Ref(), number).WithHint("agency snapshot ls %s", r.Ref())
}

func (w *Work) runAndRepo(ctx context.Context, ref string) (*agency.Run, agency.Repo, error) {
	r, err := w.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Repo{}, err
	}
	repo, err := w.repos.Of(ctx, r)
	return r, repo, err
}

// checkSaved refuses to delete a branch with commits that are in neither another branch nor a
// snapshot. A snapshot of the worktree saves its commits, but the worktree may be gone, or have
// something else checked out.
func (w *Work) checkSaved(ctx context.Context, r *agency.Run, repo agency.Repo) error {
	saved, err := w.savedRefs(ctx, r, repo)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for unmerged work on %s: %w", r.Branch, err)
	}
	known := slices.Collect(maps.Values(saved))
	if len(saved) > 0 {
		if err := w.git.Prove(ctx, repo, r.Worktree, r.Commit, saved); err != nil {
			return err
		}
	}
	switch unmerged, err := w.git.Unmerged(ctx, repo, r.Branch, known...); {
	case err != nil:
		return agency.Errorf(agency.CodeCleanupFailed, "look for unmerged work on %s: %w", r.Branch, err)
	case unmerged:
		return agency.Errorf(agency.CodeCleanupFailed, "the branch %s has commits that are on no other branch, and the worktree of %s is gone or has something else checked out", r.Branch, r.Ref()).
			WithHint("keep the branch: agency rm %s; or give them up: agency rm --discard --delete-branch %s", r.Ref(), r.Ref())
	}
	return nil
}

// snapshot saves everything in a run's worktree under the next free number. It never uses a number
// twice: a removal that was cut off leaves half a worktree, and its snapshot must not replace that
// of the whole.
func (w *Work) snapshot(ctx context.Context, r *agency.Run, repo agency.Repo, why string) (agency.Saved, error) {
	earlier, err := w.git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return agency.Saved{}, err
	}
	number := 1
	if len(earlier) > 0 {
		number = earlier[len(earlier)-1].Number + 1
	}
	ref := fmt.Sprintf("%s%d", agency.SnapshotRefs(r.ID), number)
	saved, err := w.git.Snapshot(ctx, repo, r.Worktree, r.Commit, ref, "work of "+r.Ref()+" "+why)
	if err != nil {
		return agency.Saved{}, agency.Errorf(agency.CodeCleanupFailed, "%w", err)
	}
	return saved, nil
}

// saveDirty takes a snapshot of a worktree with changes; it returns nil when there are none.
func (w *Work) saveDirty(ctx context.Context, r *agency.Run, repo agency.Repo, why string) (*agency.Saved, error) {
	facts, err := w.git.Inspect(ctx, repo, r.Worktree, r.Commit)
	if err != nil {
		return nil, agency.Errorf(agency.CodeCleanupFailed, "look for unsaved work: %w", err)
	}
	if !facts.Dirty {
		return nil, nil //nolint:nilnil // nothing to save is not an error
	}
	saved, err := w.snapshot(ctx, r, repo, why)
	return &saved, err
}

// savedRefs returns the commits of a run that are kept under refs of agency's own, by these refs:
// its snapshots, and the sources of its landings.
func (w *Work) savedRefs(ctx context.Context, r *agency.Run, repo agency.Repo) (map[string]string, error) {
	snapshots, err := w.git.Snapshots(ctx, repo, r.ID)
	if err != nil {
		return nil, err
	}
	saved := map[string]string{}
	for i := range snapshots {
		saved[snapshots[i].Ref] = snapshots[i].Commit
	}
	landings, err := w.store.Landings(ctx, r.ID)
	for i := range landings {
		if landings[i].State == agency.LandingLanded {
			saved[agency.LandingRef(landings[i].ID, "source")] = landings[i].Source
		}
	}
	return saved, err
}

// savedCommits returns the commits of savedRefs, if the repository is proven to have them.
func (w *Work) savedCommits(ctx context.Context, r *agency.Run, repo agency.Repo) ([]string, error) {
	saved, err := w.savedRefs(ctx, r, repo)
	if err != nil || len(saved) == 0 {
		return nil, err
	}
	commits := slices.Collect(maps.Values(saved))
	if err := w.git.Prove(ctx, repo, r.Worktree, r.Commit, saved); err != nil {
		return nil, nil //nolint:nilerr // what is not proven is saved again
	}
	return commits, nil
}

// saveWork takes a snapshot of a worktree with changes that the newest one does not have, or with
// commits that would be lost: they are in no snapshot, and on no branch that stays. stays is
// whether the run's own does.
func (w *Work) saveWork(ctx context.Context, r *agency.Run, repo agency.Repo, stays bool, removal *Removal) error {
	facts, err := w.git.Inspect(ctx, repo, r.Worktree, r.Commit)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for unsaved work: %w", err)
	}
	known, err := w.savedCommits(ctx, r, repo)
	if err != nil {
		return err
	}
	unmerged, err := w.git.Unmerged(ctx, repo, r.Branch, known...)
	if err != nil {
		return agency.Errorf(agency.CodeCleanupFailed, "look for unmerged work on %s: %w", r.Branch, err)
	}
	// Commits on a detached HEAD, or on a branch that the agent made, are not on the run's branch.
	elsewhere := facts.Branch != r.Branch && facts.Ahead > 0
	kept := !unmerged || facts.Branch != r.Branch || stays && w.onBranch(ctx, r, repo, facts.Head)
	if !elsewhere && kept {
		if !facts.Dirty || w.landedWhole(ctx, r, repo) {
			return nil
		}
		if removal.Snapshot = w.savedWhole(ctx, r, repo, facts.Head); removal.Snapshot != nil {
			return nil
		}
	}
	saved, err := w.snapshot(ctx, r, repo, "before its worktree was removed")
	if err != nil {
		return err
	}
	if len(saved.Nested) > 0 {
		return agency.Errorf(agency.CodeCleanupFailed, "the worktree of %s holds other repositories, whose work agency cannot save: %s", r.Ref(), strings.Join(saved.Nested, ", ")).
			WithDetail("nested", saved.Nested).
			WithHint("save or push them first, or give them up: agency rm --discard %s", r.Ref())
	}
	removal.Snapshot = &saved
	return nil
}

// savedWhole returns the newest snapshot of a run, if it has all that is in the files and in the
// index of the worktree, whose HEAD is head, and the repository is proven to have it; otherwise
// nil. What cannot be read is not proven.
func (w *Work) savedWhole(ctx context.Context, r *agency.Run, repo agency.Repo, head string) *agency.Saved {
	snapshots, err := w.git.Snapshots(ctx, repo, r.ID)
	if err != nil || len(snapshots) == 0 {
		return nil
	}
	newest := snapshots[len(snapshots)-1]
	if holds, err := w.git.Holds(ctx, repo, r.Worktree, newest.Commit); err != nil || !holds {
		return nil
	}
	if w.git.Prove(ctx, repo, r.Worktree, r.Commit, map[string]string{newest.Ref: newest.Commit}) != nil {
		return nil
	}
	changes, err := w.git.Changes(ctx, repo, head, newest.Commit)
	if err != nil {
		return nil
	}
	return &agency.Saved{Ref: newest.Ref, Commit: newest.Commit, Files: len(changes), Nested: []string{}}
}

// landedWhole reports whether a landing of the run brought in all that is in the files and in the
// index of its worktree, and the repository is proven to have the source of it. What cannot be read
// is not proven.
func (w *Work) landedWhole(ctx context.Context, r *agency.Run, repo agency.Repo) bool {
	l, err := w.lastLanded(ctx, r.ID)
	if err != nil || l == nil {
		return false
	}
	holds, err := w.git.Holds(ctx, repo, r.Worktree, l.Source)
	return err == nil && holds && w.git.Prove(ctx, repo, r.Worktree, r.Commit, map[string]string{agency.LandingRef(l.ID, "source"): l.Source}) == nil
}

// lastLanded returns the newest landing of a run that landed; nil when there is none.
func (w *Work) lastLanded(ctx context.Context, id agency.RunID) (*agency.Landing, error) {
	landings, err := w.store.Landings(ctx, id)
	for i := range slices.Backward(landings) {
		if landings[i].State == agency.LandingLanded {
			return &landings[i], err
		}
	}
	return nil, err
}

// onBranch reports whether the repository is proven to have a commit as the tip of the run's
// branch, outside of the worktree.
func (w *Work) onBranch(ctx context.Context, r *agency.Run, repo agency.Repo, commit string) bool {
	return w.git.Prove(ctx, repo, r.Worktree, r.Commit, map[string]string{"refs/heads/" + r.Branch: commit}) == nil
}
