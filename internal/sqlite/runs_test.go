package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"agency"
)

// Every field of a run is read back as it was written, empty and full.
func TestRunRoundTrip(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i, r := range []*agency.Run{newRun(1), fullRun(2)} {
		spec := []byte("{\"prompt\": \"\x00 any bytes \xff\"}")
		if err := s.CreateRun(context.Background(), r, agency.Creation{Spec: spec, TokenHash: "hash"}); err != nil {
			t.Fatal(err)
		}
		if r.Seq != int64(i+1) || r.CreatedAt.IsZero() || r.UpdatedAt != r.CreatedAt || r.Attempt.CreatedAt != r.CreatedAt {
			t.Errorf("not filled in: seq %d, created %v, updated %v, attempt created %v",
				r.Seq, r.CreatedAt, r.UpdatedAt, r.Attempt.CreatedAt)
		}
		got, err := s.Run(context.Background(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("run (-want +got):\n%s", diff)
		}
		gotSpec, err := s.Spec(context.Background(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(spec, gotSpec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	}
}

// A change of every column is stored, and the returned run is the stored one.
func TestChangeRunWritesEverything(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := newRun(1)
	create(t, s, r)
	want := fullRun(1)
	want.Seq, want.CreatedAt = r.Seq, r.CreatedAt
	want.Attempt.CreatedAt = r.Attempt.CreatedAt
	want.RemovedAt = new(epoch)
	got := change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		*r = *want
		return nil, nil
	})
	if !got.UpdatedAt.After(r.UpdatedAt) {
		t.Errorf("updated at %v, created at %v", got.UpdatedAt, r.CreatedAt)
	}
	want.UpdatedAt = got.UpdatedAt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
	stored, err := s.Run(context.Background(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// A new attempt does not change the older one, and must have the next number.
func TestNewAttempt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := fullRun(1)
	create(t, s, r)
	first := r.Attempt
	got := change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt = agency.Attempt{Number: 2, State: agency.Queued}
		return []agency.EventDraft{{Type: agency.AttemptStarted}}, nil
	})
	if got.Attempt.Number != 2 || got.Attempt.CreatedAt != got.UpdatedAt {
		t.Errorf("attempt %+v", got.Attempt)
	}
	attempts, err := s.Attempts(context.Background(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]agency.Attempt{first, got.Attempt}, attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if e := lastEvent(t, s); e.Attempt != 2 || e.RunID != r.ID {
		t.Errorf("event %+v", e)
	}
	for _, number := range []int{0, 1, 4} {
		_, err := s.ChangeRun(context.Background(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Attempt.Number = number
			return nil, nil
		})
		if err == nil {
			t.Errorf("attempt %d followed attempt 2", number)
		}
	}
}

// A failed change leaves neither a change nor an event, and its error is returned unwrapped.
func TestFailedChange(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := newRun(1)
	create(t, s, r)
	seq, changed := lastEvent(t, s).Seq, s.Changed()
	refused := errors.New("refused")
	for name, f := range map[string]func(r *agency.Run) ([]agency.EventDraft, error){
		"refused": func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Abandoned = true
			return []agency.EventDraft{{Type: agency.RunRemoved}}, refused
		},
		"bad state": func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Attempt.State = "dreaming"
			return []agency.EventDraft{{Type: agency.RunRemoved}}, nil
		},
		"bad event": func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Abandoned = true
			return []agency.EventDraft{{Type: agency.RunRemoved}, {Type: agency.RunRemoved, Data: "not an object"}}, nil
		},
	} {
		got, err := s.ChangeRun(context.Background(), r.ID, f)
		if got != nil || err == nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if name == "refused" && err != refused { //nolint:errorlint // as it is
			t.Errorf("got %v, want %v", err, refused)
		}
	}
	stored, err := s.Run(context.Background(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, stored); diff != "" {
		t.Errorf("the run changed (-want +got):\n%s", diff)
	}
	if got := lastEvent(t, s).Seq; got != seq {
		t.Errorf("last event %d, want %d", got, seq)
	}
	select {
	case <-changed:
		t.Error("Changed was closed")
	default:
	}
	_, err = s.ChangeRun(context.Background(), newRun(2).ID, func(*agency.Run) ([]agency.EventDraft, error) { return nil, nil })
	wantCode(t, err, agency.CodeRunNotFound)
}

// A change that changes no field writes nothing.
func TestChangeOfNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := fullRun(1)
	create(t, s, r)
	got := change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Seq, r.Repo.Root = 99, "/elsewhere"
		return nil, nil
	})
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each uniqueness rule has its own error, which leaves nothing behind; a removed run keeps only its
// handle taken.
func TestConflicts(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := context.Background()
	first := newRun(1)
	first.Name = "fix"
	create(t, s, first)

	sameName, sameBranch, sameHandle := newRun(2), newRun(3), newRun(4)
	sameName.Name, sameBranch.Branch, sameHandle.Handle = first.Name, first.Branch, first.Handle
	wantCode(t, s.CreateRun(ctx, sameName, agency.Creation{}), agency.CodeNameExists)
	wantCode(t, s.CreateRun(ctx, sameBranch, agency.Creation{}), agency.CodeBranchExists)
	if err := s.CreateRun(ctx, sameHandle, agency.Creation{}); !errors.Is(err, agency.ErrHandleTaken) {
		t.Errorf("got %v, want agency.ErrHandleTaken", err)
	}
	if sameHandle.Seq != 0 || !sameHandle.CreatedAt.IsZero() {
		t.Error("a run that was not created was filled in")
	}
	elsewhere := newRun(5)
	elsewhere.Branch, elsewhere.Repo = first.Branch, agency.Repo{Fingerprint: "other", Root: "/src/other"}
	create(t, s, elsewhere)

	remove(t, s, first.ID)
	create(t, s, sameName, sameBranch)
	if err := s.CreateRun(ctx, sameHandle, agency.Creation{}); !errors.Is(err, agency.ErrHandleTaken) {
		t.Errorf("got %v, want agency.ErrHandleTaken", err)
	}
	_, err := s.ChangeRun(ctx, first.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.RemovedAt, r.Branch = nil, "agency/again"
		return nil, nil
	})
	wantCode(t, err, agency.CodeNameExists)
	create(t, s, newRun(6), newRun(7)) // without names, which do not clash
}

// Concurrent changes take turns: none is lost.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := setup(t)
	id := newRun(1).ID
	create(t, s, newRun(1))
	const workers, each = 8, 10
	var all errgroup.Group
	for range workers {
		all.Go(func() error {
			for range each {
				_, err := s.ChangeRun(context.Background(), id, func(r *agency.Run) ([]agency.EventDraft, error) {
					r.MaxMinutes++
					return []agency.EventDraft{{Type: agency.ContractChanged, Data: map[string]int{"n": r.MaxMinutes}}}, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background(), id)
	if err != nil || r.MaxMinutes != workers*each {
		t.Errorf("%d changes kept of %d, %v", r.MaxMinutes, workers*each, err)
	}
	events, err := s.Events(context.Background(), 1, id, 0)
	if err != nil || len(events) != workers*each {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if want := fmt.Sprintf(`{"n":%d}`, i+1); string(e.Data) != want || e.Seq != int64(i+2) {
			t.Errorf("event %d is %s, want %s", e.Seq, e.Data, want)
		}
	}
}

// Each filter returns what it names, oldest first.
func TestRuns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	runs := make([]*agency.Run, 5)
	for i := range runs {
		runs[i] = newRun(i)
	}
	runs[0].Repo = agency.Repo{Fingerprint: "other", Root: "/src/other"}
	runs[1].Tags = []string{"worker", "night"}
	runs[2].Tags = []string{}
	runs[3].Attempt.State = agency.Running
	create(t, s, runs...)
	remove(t, s, runs[4].ID)
	// Run 2 ended and was resumed: its newest attempt lives. Run 1 ended.
	for _, n := range []int{1, 2} {
		change(t, s, runs[n].ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Attempt.State = agency.Failed
			return nil, nil
		})
	}
	change(t, s, runs[2].ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt = agency.Attempt{Number: 2, State: agency.Queued}
		r.RemovedAt = new(time.Now())
		return nil, nil
	})
	for _, c := range []struct {
		name   string
		filter agency.Filter
		want   []int
	}{
		{"kept", agency.Filter{}, []int{0, 1, 3}},
		{"all", agency.Filter{Removed: true}, []int{0, 1, 2, 3, 4}},
		{"live", agency.Filter{Live: true}, []int{0, 2, 3}},
		{"repo", agency.Filter{Repo: "other"}, []int{0}},
		{"unknown repo", agency.Filter{Repo: "none"}, []int{}},
		{"tag", agency.Filter{Tag: "worker"}, []int{0, 1, 3}},
		{"second tag", agency.Filter{Tag: "night"}, []int{1}},
		{"part of a tag", agency.Filter{Tag: "nig"}, []int{}},
		{"newest", agency.Filter{Removed: true, Limit: 2}, []int{3, 4}},
		{"all at once", agency.Filter{Repo: runs[3].Repo.Fingerprint, Live: true, Tag: "worker", Limit: 9}, []int{3}},
	} {
		got, err := s.Runs(context.Background(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, places(runs, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// places returns the positions of the runs got among runs.
func places(runs []*agency.Run, got []agency.Run) []int {
	list := []int{}
	for _, g := range got {
		for i, r := range runs {
			if r.ID == g.ID {
				list = append(list, i)
			}
		}
	}
	return list
}

// Steps are finished once, in any order, and listed in the planned order.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := context.Background()
	r := newRun(1)
	if err := s.CreateRun(ctx, r, agency.Creation{Steps: []string{"files", "worktree", "session"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"worktree", "worktree", "extra"} {
		if err := s.FinishSteps(ctx, r.ID, 1, name); err != nil {
			t.Fatal(err)
		}
	}
	events, err := s.Events(ctx, 0, r.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 2 || events[0].Type != agency.RunStep || string(events[0].Data) != `{"step":"worktree"}` {
		t.Fatalf("events %+v", events)
	}
	got, err := s.Steps(ctx, r.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []agency.Step{
		{Name: "files"}, {Name: "worktree", DoneAt: &events[0].At}, {Name: "session"}, {Name: "extra", DoneAt: &events[1].At},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantCode(t, s.FinishSteps(ctx, r.ID, 2, "files"), agency.CodeRunNotFound)
}

// A token belongs to one attempt, and changes of the run do not affect it.
func TestToken(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := context.Background()
	r := newRun(1)
	if err := s.CreateRun(ctx, r, agency.Creation{TokenHash: "first"}); err != nil {
		t.Fatal(err)
	}
	change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt.State = agency.Failed
		return nil, nil
	})
	change(t, s, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Attempt = agency.Attempt{Number: 2, State: agency.Queued}
		return nil, nil
	})
	if err := s.SetToken(ctx, r.ID, 2, "second"); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[int]string{1: "first", 2: "second"} {
		if got, err := s.TokenHash(ctx, r.ID, attempt); err != nil || got != want {
			t.Errorf("attempt %d: got %q, want %q, %v", attempt, got, want, err)
		}
	}
	_, err := s.TokenHash(ctx, r.ID, 3)
	wantCode(t, err, agency.CodeRunNotFound)
	wantCode(t, s.SetToken(ctx, r.ID, 3, "third"), agency.CodeRunNotFound)
}

// Every operation about a run that does not exist returns E_RUN_NOT_FOUND.
func TestNoSuchRun(t *testing.T) {
	t.Parallel()
	s := setup(t)
	id := newRun(1).ID
	_, err := s.Run(context.Background(), id)
	wantCode(t, err, agency.CodeRunNotFound)
	_, err = s.Spec(context.Background(), id)
	wantCode(t, err, agency.CodeRunNotFound)
	_, err = s.Attempts(context.Background(), id)
	wantCode(t, err, agency.CodeRunNotFound)
}
