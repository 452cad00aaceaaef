package lander

import (
	"context"
	"time"

	"agency"
)

// settleAll settles the landings that an earlier daemon left open. It tries again later when a
// landing cannot be settled now, for example because the user works in the checkout.
func (l *Lander) settleAll(ctx context.Context) {
	told := map[agency.LandingID]string{}
	left := l.settleOpen(ctx, told)
	l.cleanUpAll(ctx)
	for wait := firstPause; left; wait = min(2*wait, lastPause) {
		select {
		case <-time.After(wait):
			left = l.settleOpen(ctx, told)
		case <-ctx.Done():
			return
		}
	}
}

// The pauses between two attempts to settle landings.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// settleOpen tries to settle each open landing, and reports whether one is left. It logs an error
// only once; told holds those that it has logged.
func (l *Lander) settleOpen(ctx context.Context, told map[agency.LandingID]string) (left bool) {
	open, err := l.Store.OpenLandings(ctx)
	if err != nil {
		l.Log.Error("read open landings", "err", err)
		return true
	}
	for i := range open {
		id := open[i].ID
		if err := l.settleHeld(ctx, &open[i]); err != nil && ctx.Err() == nil {
			left = true
			if told[id] != err.Error() {
				told[id] = err.Error()
				l.Log.Error("settle a landing", "landing", id, "err", err)
			}
		}
	}
	return left
}

// cleanUpAll removes the runs that an earlier daemon was about to remove because they had landed.
// What fails here, the next daemon tries again.
func (l *Lander) cleanUpAll(ctx context.Context) {
	left, err := l.Store.LandingsToCleanUp(ctx)
	if err != nil {
		l.Log.Error("read the landings to clean up after", "err", err)
		return
	}
	for i := range left {
		if ctx.Err() != nil {
			return
		}
		result := &Result{Landing: left[i]}
		err := l.after(ctx, result)
		for _, warning := range result.Warnings {
			l.Log.Warn("after a landing", "landing", left[i].ID, "warning", warning)
		}
		if err != nil {
			l.Log.Error("clean up after a landing", "landing", left[i].ID, "err", err)
		}
	}
}

func (l *Lander) settleHeld(ctx context.Context, landing *agency.Landing) error {
	r, release, err := l.Runs.Hold(ctx, string(landing.RunID))
	if err != nil {
		return err
	}
	defer release()
	repo, err := l.Repos.Of(ctx, r)
	if err != nil {
		return err
	}
	unlock, _, err := l.lockSettled(ctx, r, repo)
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// lockSettled locks the repository of a run that the caller holds, once no landing of the run is
// open. landed is the landing that it found to have landed, empty for none.
func (l *Lander) lockSettled(ctx context.Context, r *agency.Run, repo agency.Repo) (unlock func(), landed agency.LandingID, err error) {
	if unlock, err = l.Repos.Lock(ctx, r.Repo.Fingerprint); err != nil {
		return nil, "", err
	}
	if landed, err = l.settleRun(ctx, r, repo); err != nil {
		unlock()
		return nil, "", err
	}
	return unlock, landed, nil
}

// settleRun settles the open landings of a run, and returns the last one that has landed, empty for
// none. The caller holds the run and the repository.
func (l *Lander) settleRun(ctx context.Context, r *agency.Run, repo agency.Repo) (landed agency.LandingID, err error) {
	all, err := l.Store.Landings(ctx, r.ID)
	if err != nil {
		return "", err
	}
	for i := range all {
		open := &all[i]
		if open.State != agency.LandingMoving && open.State != agency.LandingUndoing {
			continue
		}
		moved, err := l.moved(ctx, r, repo, open)
		if err != nil {
			return "", err
		}
		if err := l.settle(ctx, repo, open, moved); err != nil {
			return "", err
		}
		if moved && open.State == agency.LandingLanded {
			landed = open.ID
		}
	}
	return landed, nil
}

// moved finishes or takes back what git left of an open landing, and reports whether its target has
// moved: to the landing, or back from it. E_LANDING_OPEN: that is unknown, and the landing stays
// open.
func (l *Lander) moved(ctx context.Context, r *agency.Run, repo agency.Repo, open *agency.Landing) (bool, error) {
	moved, err := l.settleMove(ctx, repo, open)
	if agency.IsCode(err, agency.CodeBadRef) {
		return open.State == agency.LandingUndoing, nil // the target was deleted, with the landing
	}
	if err == nil {
		return moved, nil
	}
	again, what := "agency merge "+r.Ref(), "moved"
	if open.State == agency.LandingUndoing {
		again, what = "agency merge --undo "+string(open.ID), "was taken back"
	}
	cause := agency.AsError(err)
	unknown := agency.Errorf(agency.CodeLandingOpen, "agency does not know whether %q %s, so the landing %s stays open: %s", open.Target, what, open.ID, cause.Message)
	unknown.Details, unknown.Err = cause.Details, err
	if cause.Hint == "" {
		return false, unknown.WithHint("try again: %s", again)
	}
	return false, unknown.WithHint("%s; then: %s", cause.Hint, again)
}

func (l *Lander) settleMove(ctx context.Context, repo agency.Repo, open *agency.Landing) (bool, error) {
	if open.State == agency.LandingMoving {
		return l.Git.SettleMove(ctx, repo, open.Worktree, open.Target, open.MoveFrom, open.MoveTo, open.CreatedAt)
	}
	at, err := l.Git.Checkout(ctx, repo, open.Target)
	if err != nil {
		return false, err
	}
	return l.Git.SettleMove(ctx, repo, at, open.Target, open.Candidate, open.TargetOld, *open.EndedAt)
}

// settle records how an open landing ended. One that did not move its target is given up: the
// client that asked for it does not know how it ended, and can ask again.
func (l *Lander) settle(ctx context.Context, repo agency.Repo, open *agency.Landing, moved bool) error {
	switch undoing := open.State == agency.LandingUndoing; {
	case undoing && moved:
		_, err := l.finishUndo(ctx, repo, open)
		return err
	case undoing:
		return l.giveUpUndo(ctx, open)
	case moved:
		return l.finish(ctx, open)
	default:
		l.giveUp(ctx, repo, open, agency.Errorf(agency.CodeTargetMoved, "the landing was cut off before %q moved", open.Target))
		return nil
	}
}
