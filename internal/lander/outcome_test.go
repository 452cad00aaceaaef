package lander_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/lander"
)

// faulty is a git that fails where a test says so.
type faulty struct {
	lander.Git
	move   func() error // before a checkout moves
	moved  func() error // afterwards
	settle error
	branch error
	unpin  error
}

func (f *faulty) Unpin(ctx context.Context, repo agency.Repo, refs ...string) error {
	if f.unpin != nil {
		return f.unpin
	}
	return f.Git.Unpin(ctx, repo, refs...)
}

func (f *faulty) FastForward(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error {
	return f.around(func() error { return f.Git.FastForward(ctx, repo, worktree, branch, from, to, reason) })
}

func (f *faulty) Back(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error {
	return f.around(func() error { return f.Git.Back(ctx, repo, worktree, branch, from, to, reason) })
}

func (f *faulty) around(move func() error) error {
	for _, step := range []func() error{f.move, move, f.moved} {
		if step == nil {
			continue
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) SettleMove(ctx context.Context, repo agency.Repo, worktree, branch, from, to string, since time.Time) (bool, error) {
	if f.settle != nil {
		return false, f.settle
	}
	return f.Git.SettleMove(ctx, repo, worktree, branch, from, to, since)
}

func (f *faulty) HasBranch(ctx context.Context, repo agency.Repo, branch string) (bool, error) {
	if f.branch != nil {
		return false, f.branch
	}
	return f.Git.HasBranch(ctx, repo, branch)
}

// faults makes the git of a bench one that fails.
func (b *bench) faults() *faulty {
	f := &faulty{Git: b.lander.Git}
	b.lander.Git = f
	return f
}

func (b *bench) land(asked agency.LandingSettings) (*lander.Result, error) {
	return b.lander.Land(b.t.Context(), lander.Request{Ref: "work", Asked: asked})
}

// states checks the states of all landings, the oldest first, and that git keeps the commits of
// those that did not fail.
func (b *bench) states(want ...agency.LandingState) {
	b.t.Helper()
	got := []agency.LandingState{}
	for i := range b.rec.landings {
		l := &b.rec.landings[i]
		got = append(got, l.State)
		_, err := b.try(b.checkout, "rev-parse", "--verify", "--quiet", agency.LandingRef(l.ID, "candidate"))
		if kept := err == nil; kept == (l.State == agency.LandingFailed) {
			b.t.Errorf("%s is %s, and its commits are kept: %v", l.ID, l.State, kept)
		}
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("the landings are %v, want %v", got, want)
	}
}

func open(t *testing.T, err error, hint string) {
	t.Helper()
	if !agency.IsCode(err, agency.CodeLandingOpen) || !strings.Contains(agency.AsError(err).Hint, hint) {
		t.Errorf("got %v, hint %q, want %s with %q", err, agency.AsError(err).Hint, agency.CodeLandingOpen, hint)
	}
}

var errKilled = agency.Errorf(agency.CodeGitFailed, "git merge: signal: killed")

// A landing of which it is not known whether its target moved stays open, also where what is in the
// way has the code of a refusal, until the next attempt can tell.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.faults()
	b.write(b.worktree, "new.txt", "of the run\n")
	f.moved = func() error { return errKilled }
	f.settle = agency.Errorf(agency.CodeTargetDirty, "the lock is in the way").WithHint("remove it")
	_, err := b.land(agency.LandingSettings{})
	open(t, err, "remove it; then: agency merge work")
	b.states(agency.LandingMoving)
	_, err = b.land(agency.LandingSettings{})
	open(t, err, "remove it; then: agency merge work")

	f.settle = nil
	if result, err := b.land(agency.LandingSettings{}); err != nil || !result.Already || result.Landing.State != agency.LandingLanded {
		t.Errorf("the next attempt: %+v, %v", result, err)
	}
	b.states(agency.LandingLanded)
	if _, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeNothingToLand) {
		t.Errorf("one more: %v", err)
	}

	f.settle = errKilled
	id := string(b.rec.landings[0].ID)
	_, err = b.lander.Undo(t.Context(), id)
	open(t, err, "agency merge --undo "+id)
	b.states(agency.LandingUndoing)
	f.settle = nil
	if result, err := b.lander.Undo(t.Context(), id); err != nil || !result.Already {
		t.Errorf("the next attempt: %v", err)
	}
	b.states(agency.LandingUndone)
}

// A landing whose refs cannot be removed stays open, so that the next attempt removes them.
func TestRefsOfALandingThatIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.faults()
	b.write(b.worktree, "new.txt", "of the run\n")
	f.move = func() error { return errKilled }
	f.unpin = errKilled
	if _, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeTargetDirty) {
		t.Errorf("a git that was killed before it moved: %v", err)
	}
	b.states(agency.LandingMoving)
	f.move, f.unpin = nil, nil
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		t.Errorf("the next attempt: %v", err)
	}
	b.states(agency.LandingFailed, agency.LandingLanded)
}

// A git that fails is no refusal: where git shows that it moved the target, the landing is done,
// and where it shows that it did not, the landing is given up, and the next one lands.
func TestFailureOfTheMove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.faults()
	b.write(b.worktree, "new.txt", "of the run\n")
	f.move = func() error { return errKilled }
	if _, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeTargetDirty) {
		t.Errorf("a git that was killed before it moved: %v", err)
	}
	b.states(agency.LandingFailed)
	f.move, f.moved = nil, func() error { return errKilled }
	if result, err := b.land(agency.LandingSettings{}); err != nil || result.Landing.State != agency.LandingLanded {
		t.Errorf("a git that was killed after it moved: %v", err)
	}
	b.states(agency.LandingFailed, agency.LandingLanded)
}

// A commit that the user makes on top at once does not hide that a landing is done.
func TestCommitOnTopAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.faults()
	b.write(b.worktree, "new.txt", "of the run\n")
	f.moved = func() error {
		b.git(b.checkout, "commit", "-q", "--allow-empty", "-m", "on top")
		return errKilled
	}
	if _, err := b.land(agency.LandingSettings{}); err != nil {
		t.Error(err)
	}
	b.states(agency.LandingLanded)
}

// A base of which git cannot tell whether it is a branch lands nowhere. One that cannot be a branch
// lands in the branch that is checked out.
func TestTargetOfTheBase(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.git(b.checkout, "branch", "trunk")
	b.write(b.worktree, "new.txt", "of the run\n")
	f := b.faults()
	b.rec.run.Base, f.branch = "trunk", errKilled
	if result, err := b.land(agency.LandingSettings{}); !agency.IsCode(err, agency.CodeGitFailed) {
		t.Errorf("landed: %+v, %v", result, err)
	}
	f.branch = nil
	for _, base := range []string{"HEAD~0", ":/base " + strings.Repeat("long", 100)} {
		b.rec.run.Base = base
		if target, err := b.lander.Target(t.Context(), &b.rec.run, b.rec.repo, ""); err != nil || target != "main" {
			t.Errorf("base %.10s lands in %q, %v", base, target, err)
		}
	}
	b.rec.run.Base = "trunk"
	if result, err := b.land(agency.LandingSettings{}); err != nil || result.Landing.Target != "trunk" {
		t.Errorf("%+v, %v", result, err)
	}
}

// store is a record that tells when a landing was settled.
type store struct {
	*record
	settled chan struct{}
}

func (s *store) OpenLandings(context.Context) ([]agency.Landing, error) {
	open := slices.Clone(s.landings)
	return slices.DeleteFunc(open, func(l agency.Landing) bool { return l.State != agency.LandingMoving }), nil
}

func (s *store) SettleLanding(ctx context.Context, id agency.LandingID, state agency.LandingState, reason string, event agency.EventType) (*agency.Landing, error) {
	defer close(s.settled)
	return s.record.SettleLanding(ctx, id, state, reason, event)
}

// busy is a git whose user is at work in the checkout when a daemon looks first.
type busy struct {
	lander.Git
	tried bool
}

func (b *busy) SettleMove(ctx context.Context, repo agency.Repo, worktree, branch, from, to string, since time.Time) (bool, error) {
	if !b.tried {
		b.tried = true
		return false, agency.Errorf(agency.CodeTargetDirty, "some files are neither as before nor as after")
	}
	return b.Git.SettleMove(ctx, repo, worktree, branch, from, to, since)
}

// A landing that a daemon cannot settle when it starts is settled later, without another command.
func TestSettlesLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.faults()
	b.write(b.worktree, "new.txt", "of the run\n")
	f.moved, f.settle = func() error { return errKilled }, errKilled
	_, err := b.land(agency.LandingSettings{})
	open(t, err, "agency merge work")

	s := &store{b.rec, make(chan struct{})}
	b.lander.Git, b.lander.Store = &busy{Git: f.Git}, s
	if err := b.lander.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.settled:
	case <-time.After(time.Minute):
		t.Error("the landing stays open")
	}
	b.lander.Stop()
	b.states(agency.LandingLanded)
}
