package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"agency"
	"agency/internal/sqlite"
)

// A list is never older than the last change, even when the clock stands still or is set back.
func TestRunsAreFresh(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), epoch
	s, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "agency.db"), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Writer().Exec("PRAGMA synchronous = OFF"); err != nil { // this test has no crashes
		t.Fatal(err)
	}
	const many = 5000 // more than is kept in memory
	for i := range many {
		if err := s.CreateRun(ctx, newRun(i), agency.Creation{Spec: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	id := newRun(many - 2).ID
	look := func() *agency.Run {
		t.Helper()
		runs, err := s.Runs(ctx, agency.Filter{})
		if err != nil || len(runs) != many {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		for i := range runs {
			if runs[i].ID != newRun(i).ID {
				t.Fatalf("run %d is %s", i, runs[i].ID)
			}
		}
		return &runs[many-2]
	}
	for i := range 3 {
		look()
		want := fmt.Sprint("reason ", i)
		if _, err := s.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Flag = &agency.Flag{Reason: want}
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := look().Flag; got == nil || got.Reason != want {
			t.Errorf("after change %d: got %+v, want %q", i, got, want)
		}
		now = now.Add(-time.Second)
	}
	repo := newRun(0).Repo
	for _, place := range []agency.Repo{{Root: "/src/moved", CommonDir: "/src/app/.git"}, {Root: "/src/moved", CommonDir: "/src/moved/.git"}} {
		repo.Root, repo.CommonDir = place.Root, place.CommonDir
		if err := s.PutRepo(ctx, repo); err != nil {
			t.Fatal(err)
		}
		if got := look().Repo; got != repo {
			t.Errorf("got %+v, want %+v", got, repo)
		}
	}
}

// A list that is asked for again is the same until something is written, and a failed change, or
// one of a run that it does not hold, leaves nothing stale.
func TestListIsKeptUntilACommit(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), setup(t)
	for i := range 3 {
		create(t, s, newRun(i))
	}
	look := func(f agency.Filter) []*agency.Run {
		t.Helper()
		runs, err := s.List(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	first, again := look(agency.Filter{}), look(agency.Filter{})
	if len(first) != 3 || &first[0] != &again[0] {
		t.Errorf("%d runs, and they were read twice", len(first))
	}
	if tagged := look(agency.Filter{Tag: "none"}); len(tagged) != 0 {
		t.Errorf("another filter: got %d runs", len(tagged))
	}
	removed := time.UnixMilli(1e12).UTC()
	if _, err := s.ChangeRun(ctx, first[1].ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.RemovedAt = &removed
		if during := look(agency.Filter{}); len(during) != 3 {
			t.Errorf("before the commit: got %d runs", len(during))
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	if left := look(agency.Filter{}); len(left) != 2 || left[1].ID != first[2].ID || first[1].RemovedAt != nil {
		t.Errorf("after it: got %d runs", len(left))
	}
	if all := look(agency.Filter{Removed: true}); len(all) != 3 || all[1].RemovedAt == nil {
		t.Errorf("with removed ones: got %d runs", len(all))
	}
	runs, err := s.Runs(ctx, agency.Filter{})
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	runs[0].Name = "mine" // a copy
	if now := look(agency.Filter{}); now[0].Name == "mine" {
		t.Error("Runs returns what List shares")
	}
}
