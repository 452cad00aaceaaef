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
