package lander

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/landing"
	"agency/internal/plain"
)

// moves is how often a landing starts anew when its target moves meanwhile.
const moves = 3

// Land brings the work of a run into a branch. It moves the branch, and the user's checkout of it,
// completely or not at all, and leaves the user's changes in the checkout alone.
func (l *Lander) Land(ctx context.Context, req Request) (*Result, error) {
	result, err := l.landChecked(ctx, req)
	if req.Landed && agency.IsCode(err, agency.CodeNothingToLand) {
		if id, before := agency.AsError(err).Details["landing"].(agency.LandingID); before {
			return l.before(ctx, id)
		}
	}
	return result, err
}

// landChecked lands a run, with its checks between two attempts to do so.
func (l *Lander) landChecked(ctx context.Context, req Request) (*Result, error) {
	var passed checked
	for try := 1; ; try++ {
		result, repo, err := l.land(ctx, req, passed)
		if errors.Is(err, errUnchecked) && try <= moves {
			// No lock is held, so runs begin and end while the checks run. Then the commit is made again,
			// and lands if it still has the same files on the same target.
			if err := req.Check(ctx, repo, &result.Landing); err != nil {
				return nil, err
			}
			if passed, err = l.checked(ctx, repo, &result.Landing); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, errUnchecked) {
			err = agency.Errorf(agency.CodeTargetMoved, "%q or the work of %s changed during each of %d checks", result.Landing.Target, result.Run.Ref(), moves).
				WithHint("try again")
		}
		if err != nil || req.DryRun || result.Landing.State != agency.LandingLanded {
			return result, err
		}
		return result, l.after(ctx, result)
	}
}

// checked is what the checks passed on: a tree, and the target commit that it was to land on.
type checked struct{ tree, targetOld string }

// errUnchecked means that the checks have not passed yet on the commit that is to land.
var errUnchecked = errors.New("not checked")

func (l *Lander) checked(ctx context.Context, repo agency.Repo, landing *agency.Landing) (checked, error) {
	tree, err := l.Git.Tree(ctx, repo, landing.Candidate)
	return checked{tree, landing.TargetOld}, err
}

func (l *Lander) land(ctx context.Context, req Request, passed checked) (*Result, agency.Repo, error) {
	r, release, err := l.Runs.Hold(ctx, req.Ref)
	if err != nil {
		return nil, agency.Repo{}, err
	}
	defer release()
	repo, err := l.Repos.Of(ctx, r)
	if err != nil {
		return nil, repo, err
	}
	result, err := l.landHeld(ctx, r, repo, req, passed)
	return result, repo, err
}

func (l *Lander) landHeld(ctx context.Context, r *agency.Run, repo agency.Repo, req Request, passed checked) (*Result, error) {
	if err := l.mayLand(r); err != nil {
		return nil, err
	}
	unlock, settled, err := l.lockSettled(ctx, r, repo)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for try := 1; ; try++ {
		result, err := l.once(ctx, r, repo, req, passed)
		if settled != "" && agency.IsCode(err, agency.CodeNothingToLand) && agency.AsError(err).Details["landing"] == settled {
			return l.before(ctx, settled) // the client asked for this landing
		}
		if !agency.IsCode(err, agency.CodeTargetMoved) || try == moves || result == nil {
			return result, err
		}
	}
}

// mayLand refuses a run whose work must not land now.
func (pl *planner) mayLand(r *agency.Run) error {
	if r.Abandoned {
		return agency.Errorf(agency.CodeInvalidState, "%s is abandoned", r.Ref()).WithHint("agency abandon --undo %s", r.Ref())
	}
	switch status := pl.Status(r); status.Label {
	case agency.LabelQueued, agency.Working, agency.Active:
		return agency.Errorf(agency.CodeInvalidState, "%s is %s, and may still write", r.Ref(), status.Label).
			WithHint("wait for it: agency wait %s; or stop it: agency stop %s", r.Ref(), r.Ref())
	case agency.Broken, agency.LabelRemoving:
		return agency.Errorf(agency.CodeInvalidState, "%s is %s", r.Ref(), status.Label).WithHint("agency show %s", r.Ref())
	default:
		return nil
	}
}

// once lands a run. If its target moves meanwhile, it returns the result with E_TARGET_MOVED. If
// the commit is not the one that passed, it returns the result with errUnchecked.
func (l *Lander) once(ctx context.Context, r *agency.Run, repo agency.Repo, req Request, passed checked) (*Result, error) {
	t, err := l.try(ctx, r, repo, req)
	if err != nil {
		return nil, err
	}
	p, c := t.plan, t.candidate
	result := &Result{Run: r, Commits: c.added, Files: c.files, Warnings: []string{}, Branch: r.Branch}
	result.Landing = agency.Landing{
		RunID: r.ID, Target: p.settings.Target, Method: p.settings.Method, Source: c.source, TargetOld: p.targetOld, Candidate: c.commit,
		Worktree: t.at, State: agency.LandingMoving, Cleanup: p.settings.After == agency.AfterGC,
	}
	if req.DryRun {
		return result, nil
	}
	if req.Check != nil {
		now, err := l.checked(ctx, repo, &result.Landing)
		if err != nil {
			return nil, err
		}
		if now != passed {
			return result, errUnchecked
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout) // the client may go away
	defer cancel()
	return result, l.move(ctx, repo, []*agency.Run{r}, []*agency.Landing{&result.Landing}, "agency merge "+r.Handle)
}

// trial is a candidate with its plan, and the worktree that has its target checked out.
type trial struct {
	plan      *plan
	candidate *candidate
	at        string
}

// try makes the candidate of a run. Usually everything is committed, so it makes the candidate of
// the committed work while it reads the files.
func (pl *planner) try(ctx context.Context, r *agency.Run, repo agency.Repo, req Request) (*trial, error) {
	var whole source
	var unread, unmade error
	t := &trial{}
	_ = together(
		func() error { whole, unread = pl.source(ctx, r, repo); return nil },
		func() error { unmade = pl.tryFrom(ctx, r, repo, req, pl.committed, t); return nil },
	)
	if unread == nil && t.plan != nil && !whole.gone && whole.commit == t.plan.source.commit && whole.sealed == whole.commit && len(whole.nested) == 0 {
		return t, unmade
	}
	t = &trial{}
	return t, pl.tryFrom(ctx, r, repo, req, pl.source, t)
}

// tryFrom makes the candidate of the work that find returns.
func (pl *planner) tryFrom(ctx context.Context, r *agency.Run, repo agency.Repo, req Request, find finder, t *trial) (err error) {
	if t.plan, err = pl.planWith(ctx, r, repo, req.Asked, find); err != nil {
		return err
	}
	t.plan.env = req.Env
	return together(
		func() (err error) { t.candidate, err = pl.candidate(ctx, t.plan, req.Message); return err },
		func() (err error) { t.at, err = pl.place(ctx, t.plan); return err },
	)
}

// place returns the worktree that has the target checked out, empty when none has, and refuses one
// that must not be moved.
func (pl *planner) place(ctx context.Context, p *plan) (string, error) {
	target := p.settings.Target
	live, err := pl.Runs.Runs(ctx, agency.Filter{Repo: p.run.Repo.Fingerprint, Live: true})
	if err != nil {
		return "", err
	}
	for i := range live {
		if other := &live[i]; other.Branch == target {
			return "", agency.Errorf(agency.CodeInvalidState, "%q is the branch of %s, whose agent is %s", target, other.Ref(), pl.Status(other).Label).
				WithHint("stop it first: agency stop %s", other.Ref())
		}
	}
	at, err := pl.Git.Checkout(ctx, p.repo, target)
	if err != nil || at == "" {
		return "", err
	}
	switch p.settings.Checkout {
	case agency.CheckoutNever:
		return "", agency.Errorf(agency.CodeTargetDirty, "%q is checked out in %s, and [landing] checkout = \"never\"", target, at).
			WithHint("switch to another branch there; or land in another one: agency merge %s --into BRANCH", p.run.Ref())
	case agency.CheckoutClean:
		clean, err := pl.Git.Clean(ctx, p.repo, at)
		if err == nil && !clean {
			err = agency.Errorf(agency.CodeTargetDirty, "%q is checked out in %s, where files have changes, and [landing] checkout = \"clean\"", target, at).
				WithHint("commit them first: git -C %s status", plain.ShellWord(at))
		}
		return at, err
	}
	return at, nil
}

// move records the landings of runs, keeps their commits, moves the target from its present commit
// to the candidate of the last landing, and marks the runs. Each landing is on top of the one
// before. When it is unknown whether the target moved, the landings stay open.
func (l *Lander) move(ctx context.Context, repo agency.Repo, runs []*agency.Run, landings []*agency.Landing, reason string) error {
	var err error
	for i, landing := range landings {
		landing.ID, landing.MoveFrom, landing.MoveTo = l.NewID(), landings[0].TargetOld, landings[len(landings)-1].Candidate
		if err = l.Store.CreateLanding(ctx, landing); err != nil {
			landings = landings[:i]
			break
		}
	}
	killpoint.At("land.recorded")
	for _, landing := range landings {
		if err == nil {
			err = l.pin(ctx, repo, landing)
		}
	}
	killpoint.At("land.pinned")
	if err == nil {
		err = l.outcome(ctx, runs[0], repo, landings[0], landings[0].Worktree, l.moveTarget(ctx, repo, landings[0], reason))
	}
	if agency.IsCode(err, agency.CodeLandingOpen) {
		return err
	}
	if err != nil {
		for _, landing := range landings {
			l.giveUp(ctx, repo, landing, err)
		}
		return err
	}
	killpoint.At("land.moved")
	for _, landing := range landings {
		if err := l.finish(ctx, landing); err != nil {
			return err
		}
	}
	return nil
}

// outcome returns nil if the target of an open landing has moved, or was taken back, although git
// failed with err in a worktree, empty for none. E_LANDING_OPEN: that is unknown. After any other
// error nothing has changed.
func (l *Lander) outcome(ctx context.Context, r *agency.Run, repo agency.Repo, open *agency.Landing, worktree string, err error) error {
	if err == nil || agency.IsCode(err, agency.CodeTargetDirty) || agency.IsCode(err, agency.CodeTargetMoved) {
		return err // git refused before it began
	}
	moved, unknown := l.moved(ctx, r, repo, open)
	switch {
	case unknown != nil:
		return unknown
	case moved:
		return nil
	case worktree != "" && agency.IsCode(err, agency.CodeGitFailed):
		return agency.Errorf(agency.CodeTargetDirty, "%w", err).WithHint("nothing was changed; look there: git -C %s status", plain.ShellWord(worktree))
	default:
		return err
	}
}

func (l *Lander) pin(ctx context.Context, repo agency.Repo, landing *agency.Landing) error {
	pin := func(part, commit string) func() error {
		return func() error { return l.Git.Pin(ctx, repo, agency.LandingRef(landing.ID, part), commit) }
	}
	return together(pin("source", landing.Source), pin("target-old", landing.TargetOld), pin("candidate", landing.Candidate))
}

func (l *Lander) moveTarget(ctx context.Context, repo agency.Repo, landing *agency.Landing, reason string) error {
	if landing.Worktree == "" {
		return l.Git.MoveBranch(ctx, repo, landing.Target, landing.MoveFrom, landing.MoveTo, reason)
	}
	return l.Git.FastForward(ctx, repo, landing.Worktree, landing.Target, landing.MoveFrom, landing.MoveTo, reason)
}

// giveUp removes the refs of a landing that moved nothing, and then records that it failed: no
// daemon looks for the refs of a failed landing. The next daemon does what cannot be done now.
func (l *Lander) giveUp(ctx context.Context, repo agency.Repo, landing *agency.Landing, why error) {
	err := l.Git.Unpin(ctx, repo, pins(landing.ID)...)
	if err == nil {
		killpoint.At("land.unpinned")
		var failed *agency.Landing
		if failed, err = l.Store.SettleLanding(ctx, landing.ID, agency.LandingFailed, agency.AsError(why).Message, agency.LandingGivenUp); err == nil {
			*landing = *failed
		}
	}
	if err != nil {
		l.Log.Warn("give up a landing", "landing", landing.ID, "err", err)
	}
}

func pins(id agency.LandingID) []string {
	return []string{agency.LandingRef(id, "source"), agency.LandingRef(id, "target-old"), agency.LandingRef(id, "candidate")}
}

// finish records a landing whose target has moved.
func (l *Lander) finish(ctx context.Context, landing *agency.Landing) error {
	if _, err := l.Marks.Merge(ctx, landing.RunID, true); err != nil {
		return err
	}
	killpoint.At("land.merged")
	landed, err := l.Store.SettleLanding(ctx, landing.ID, agency.LandingLanded, "", agency.LandingDone)
	if err == nil {
		*landing = *landed
	}
	killpoint.At("land.recorded-landed")
	return err
}

// after cleans up after a landing: it removes the run, if the settings ask for it, and the branch
// of a run without a worktree. Failures are warnings, since the work has landed.
func (l *Lander) after(ctx context.Context, result *Result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	r, release, err := l.Runs.Hold(ctx, string(result.Landing.RunID))
	if err != nil {
		return err
	}
	defer func() { release() }()
	result.Run = r
	repo, err := l.Repos.Of(ctx, r)
	if err != nil {
		return err
	}
	warn := func(err error) { result.Warnings = append(result.Warnings, agency.AsError(err).Message) }
	if result.Landing.Cleanup && (r.RemovedAt != nil || !r.Attempt.State.Final() || r.MergedAt == nil) {
		if r.RemovedAt == nil {
			result.Warnings = append(result.Warnings, r.Ref()+" is "+r.Attempt.State.String()+", so it is not removed")
		}
		return l.Store.CleanedUp(ctx, result.Landing.ID)
	}
	if result.Landing.Cleanup {
		release()
		err := l.Remove(ctx, r.ID)
		if r, release, err = l.again(ctx, r.ID, err); err != nil {
			release = func() {}
			warn(err)
			return nil
		}
		result.Run, result.Removed = r, r.RemovedAt != nil
		if err := l.Store.CleanedUp(ctx, result.Landing.ID); err != nil {
			warn(err)
		}
	}
	if r.RemovedAt == nil {
		return nil
	}
	// The pin keeps the source, so a branch whose commits the source has holds nothing of its own.
	unlock, err := l.Repos.Lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.Git.DeleteBranchIn(ctx, repo, r.Branch, result.Landing.Source); err != nil {
		warn(err)
	}
	if there, err := l.Git.HasBranch(ctx, repo, r.Branch); err == nil && !there {
		result.Branch = ""
	}
	return nil
}

// before returns an earlier landing, as the result of a request that changes nothing.
func (l *Lander) before(ctx context.Context, id agency.LandingID) (*Result, error) {
	was, err := l.Store.Landing(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := l.Runs.Resolve(ctx, string(was.RunID))
	if err != nil {
		return nil, err
	}
	return &Result{Run: r, Landing: *was, Already: true, Warnings: []string{}, Branch: r.Branch, Commits: []agency.Commit{}, Files: []agency.FileChange{}}, nil
}

func (l *Lander) again(ctx context.Context, id agency.RunID, failed error) (*agency.Run, func(), error) {
	if failed != nil {
		return nil, func() {}, failed
	}
	return l.Runs.Hold(ctx, string(id))
}

// Undo takes a landing back: it moves the target back to its commit before the landing.
// Undo refuses a target that a landing may not move. E_TARGET_MOVED: the target is no longer where the
// landing left it.
func (l *Lander) Undo(ctx context.Context, id string) (*Result, error) {
	was, err := l.Store.Landing(ctx, agency.LandingID(strings.TrimSpace(id)))
	if err != nil {
		return nil, l.ofRun(ctx, id, err)
	}
	r, release, err := l.Runs.Hold(ctx, string(was.RunID))
	if err != nil {
		return nil, err
	}
	defer release()
	repo, err := l.Repos.Of(ctx, r)
	if err != nil {
		return nil, err
	}
	unlock, _, err := l.lockSettled(ctx, r, repo)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if was, err = l.Store.Landing(ctx, was.ID); err != nil {
		return nil, err
	}
	result := &Result{Run: r, Landing: *was, Warnings: []string{}, Branch: r.Branch, Commits: []agency.Commit{}, Files: []agency.FileChange{}}
	if was.State == agency.LandingUndone {
		result.Already = true
		return result, nil
	}
	if was.State != agency.LandingLanded {
		return nil, agency.Errorf(agency.CodeInvalidState, "the landing %s is %s, so there is nothing to take back", was.ID, was.State)
	}
	now, err := l.Git.CommitOf(ctx, repo, was.Target)
	if err != nil {
		return nil, err
	}
	revert := "take it back with a commit of its own: git revert " + short(was.Candidate)
	if now != was.Candidate {
		return nil, agency.Errorf(agency.CodeTargetMoved, "%q has moved on since the landing: it is at %s, not %s", was.Target, short(now), short(was.Candidate)).
			WithHint("%s", revert)
	}
	if err := l.noAlias(ctx, repo, was.Target, func(string) string { return revert }); err != nil {
		return nil, err
	}
	// The landed work, which could change the settings, does not decide whether it can be taken back.
	project, err := l.projectAt(ctx, repo, was.Target, was.MoveFrom)
	if err != nil {
		return nil, err
	}
	p := &plan{run: r, repo: repo, settings: landing.Choose(agency.LandingSettings{Target: was.Target}, project, l.Settings())}
	if was.Worktree, err = l.place(ctx, p); agency.IsCode(err, agency.CodeTargetDirty) {
		return nil, agency.AsError(err).WithHint("put away what is changed there, or switch to another branch; or %s", revert)
	} else if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	return result, l.undo(ctx, repo, was, result)
}

// ofRun adds the last landing of a run to the error for a missing landing, when the client gave the
// run instead.
func (l *Lander) ofRun(ctx context.Context, ref string, missing error) error {
	if !agency.IsCode(missing, agency.CodeLandingNotFound) {
		return missing
	}
	r, err := l.Runs.Resolve(ctx, ref)
	if err != nil {
		return missing
	}
	landings, err := l.Store.Landings(ctx, r.ID)
	if err != nil {
		return missing
	}
	for _, last := range slices.Backward(landings) {
		if last.State == agency.LandingLanded {
			return agency.AsError(missing).WithHint("take back the last landing of %s: agency merge --undo %s", r.Ref(), last.ID)
		}
	}
	return missing
}

func (l *Lander) undo(ctx context.Context, repo agency.Repo, was *agency.Landing, result *Result) error {
	undoing, err := l.Store.SettleLanding(ctx, was.ID, agency.LandingUndoing, "", "")
	if err != nil {
		return err
	}
	killpoint.At("unland.recorded")
	err = l.outcome(ctx, result.Run, repo, undoing, was.Worktree, l.moveBack(ctx, repo, undoing, was.Worktree))
	if agency.IsCode(err, agency.CodeLandingOpen) {
		return err
	}
	if err != nil {
		if failed := l.giveUpUndo(ctx, undoing); failed != nil {
			l.Log.Warn("give up to undo a landing", "landing", was.ID, "err", failed)
		}
		return err
	}
	killpoint.At("unland.moved")
	undone, err := l.finishUndo(ctx, repo, was)
	if err != nil {
		return err
	}
	result.Landing = *undone
	result.Run, err = l.Runs.Resolve(ctx, string(was.RunID))
	return err
}

// moveBack moves a target back to its commit before a landing. at is the worktree that has the
// target checked out, empty for none.
func (l *Lander) moveBack(ctx context.Context, repo agency.Repo, undoing *agency.Landing, at string) error {
	reason := "agency merge --undo " + string(undoing.ID)
	if at == "" {
		return l.Git.MoveBranch(ctx, repo, undoing.Target, undoing.Candidate, undoing.TargetOld, reason)
	}
	return l.Git.Back(ctx, repo, at, undoing.Target, undoing.Candidate, undoing.TargetOld, reason)
}

// giveUpUndo records that a landing is still in its target.
func (l *Lander) giveUpUndo(ctx context.Context, undoing *agency.Landing) error {
	_, err := l.Store.SettleLanding(ctx, undoing.ID, agency.LandingLanded, "", "")
	return err
}

// finishUndo records that a landing was taken back, and makes the branch of the run again if it was
// deleted.
func (l *Lander) finishUndo(ctx context.Context, repo agency.Repo, was *agency.Landing) (*agency.Landing, error) {
	r, err := l.Marks.Merge(ctx, was.RunID, false)
	if err != nil {
		return nil, err
	}
	killpoint.At("unland.unmerged")
	there, err := l.Git.HasBranch(ctx, repo, r.Branch)
	if err == nil && !there {
		err = l.Git.CreateBranch(ctx, repo, r.Branch, was.Source)
	}
	if err != nil {
		return nil, err
	}
	return l.Store.SettleLanding(ctx, was.ID, agency.LandingUndone, "", agency.LandingTaken)
}
