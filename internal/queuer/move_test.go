package queuer_test

import (
	"context"
	"slices"
	"testing"

	"agency"
	"agency/internal/lander"
	"agency/internal/queuer"
	"agency/internal/supervisor"
	"agency/internal/verify"
)

// branch is a record whose entries land in a branch without checks.
type branch struct {
	*record

	looks   int
	looked  func()                          // before the second look ends
	attempt func(runs []agency.RunID) error // to move the branch
	verify.Projects
}

func (b *branch) PlanChecks(context.Context, agency.Repo, string, string) (*supervisor.CheckPlan, error) {
	return nil, agency.Errorf(agency.CodeNoChecks, "no checks")
}

func (b *branch) Chain(ctx context.Context, target string, runs []agency.RunID, _ agency.Environ, accept lander.Accept) (*lander.Chain, error) {
	c := &lander.Chain{Target: target, TargetOld: "old"}
	for _, id := range runs {
		link := lander.Link{Run: &agency.Run{ID: id}, Source: "work of " + string(id), Tree: c.Tree + "+" + string(id)}
		c.Tree = link.Tree
		link.Err = accept(ctx, &link, c.TargetOld)
		c.Links = append(c.Links, link)
	}
	c.Tree = ""
	if b.looks++; b.looks == 2 {
		b.looked()
	}
	return c, nil
}

func (b *branch) LandChain(_ context.Context, _ string, links []*lander.Link, _ agency.Environ, _, _ string) ([]lander.Result, error) {
	results, runs := make([]lander.Result, len(links)), make([]agency.RunID, len(links))
	for i, link := range links {
		runs[i] = link.Run.ID
	}
	return results, b.attempt(runs)
}

func (b *branch) Queue(context.Context, agency.QueueRef) (*agency.Queue, error) {
	return &agency.Queue{}, nil
}

func (b *branch) ChangeQueue(context.Context, agency.QueueRef, func(q *agency.Queue)) error {
	return nil
}

func (b *branch) ChangedRuns(context.Context, int64) ([]agency.RunID, int64, error) {
	return nil, 0, nil
}
func (b *branch) Changed() <-chan struct{}               { return nil }
func (b *branch) LastSeq(context.Context) (int64, error) { return 0, nil }

// A run that the user holds after the queue has looked at it does not land, also when it was ready
// before. One that is landing cannot be held.
func TestHoldWhatIsReady(t *testing.T) {
	t.Parallel()
	r, q := newBench(t)
	add(t, q, false, "one", "two")
	hold := func(ctx context.Context, name string) error {
		_, err := q.Change(ctx, &queuer.ChangeRequest{Change: queuer.Hold, Runs: []string{name}})
		return err
	}
	b := &branch{record: r}
	q.Store, q.Lander, q.Verifier = b, b, verify.New(verify.Deps{Projects: b})
	q.Settings = func() queuer.Settings { return queuer.Settings{Batch: 2, Parallel: 1} }
	b.looked = func() {
		if err := hold(t.Context(), "one"); err != nil || r.entries[1].State != agency.EntryReady {
			t.Errorf("%v, and two is %s", err, r.entries[1].State)
		}
	}
	attempts, landed := [][]agency.RunID{}, make(chan struct{})
	b.attempt = func(runs []agency.RunID) error {
		if attempts = append(attempts, runs); len(attempts) == 1 {
			return agency.Errorf(agency.CodeTargetDirty, "the user works in the checkout")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := hold(ended, "two"); err == nil {
			t.Error("held while it lands")
		}
		if err := q.Pause(ended, agency.QueueRef{Repo: "repo", Target: "main"}, true, nil); err == nil {
			t.Error("paused while it lands")
		}
		close(landed)
		return nil
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-landed
	q.Stop()
	if len(attempts) != 2 || !slices.Equal(attempts[1], []agency.RunID{"r_two"}) {
		t.Errorf("the attempts to land were %v", attempts)
	}
	if one, two := r.entries[0].State, r.entries[1].State; one != agency.EntryHeld || two != agency.EntryLanded {
		t.Errorf("one is %s, two is %s", one, two)
	}
}
