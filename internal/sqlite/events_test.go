package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/sqlite"
)

func lastEvent(t *testing.T, s *sqlite.Store) agency.Event {
	t.Helper()
	seq, err := s.LastSeq(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(context.Background(), seq-1, "", 0)
	if err != nil || len(events) != 1 {
		t.Fatalf("events %v, %v", events, err)
	}
	return events[0]
}

// No event can be changed, replaced or deleted.
func TestEventsAreAppendOnly(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create(t, s, newRun(1))
	before := lastEvent(t, s)
	for _, statement := range []string{
		`UPDATE events SET type = 'x'`,
		`UPDATE OR REPLACE events SET data = '{}'`,
		`DELETE FROM events`,
		`REPLACE INTO events (seq, at_ms, type, attempt, data) VALUES (1, 0, 'x', 0, '{}')`,
		`INSERT INTO events (seq, at_ms, type, attempt, data) VALUES (1, 0, 'x', 0, '{}') ON CONFLICT DO UPDATE SET type = 'x'`,
	} {
		if _, err := s.Writer().Exec(statement); err == nil {
			t.Errorf("allowed: %s", statement)
		}
	}
	if diff := cmp.Diff(before, lastEvent(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Events have the time of their transaction, their run and an object, and are read from any number
// on.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := context.Background()
	if seq, err := s.LastSeq(ctx); err != nil || seq != 0 {
		t.Errorf("last seq %d of nothing, %v", seq, err)
	}
	create(t, s, newRun(1), newRun(2))
	err := s.Append(ctx, agency.EventDraft{Type: agency.DaemonStarted, Data: struct {
		Version string `json:"version"`
	}{"<1>"}}, agency.EventDraft{Type: agency.DaemonStopped})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(ctx, newRun(2).ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []agency.Event{
		{Seq: 2, At: r.CreatedAt, Type: agency.RunCreated, RunID: r.ID, Run: r.Handle, Attempt: 1, Data: []byte(`{}`)},
		{Seq: 3, At: r.CreatedAt.Add(time.Second), Type: agency.DaemonStarted, Data: []byte(`{"version":"\u003c1\u003e"}`)},
		{Seq: 4, At: r.CreatedAt.Add(time.Second), Type: agency.DaemonStopped, Data: []byte(`{}`)},
	}
	check := func(since int64, run agency.RunID, limit int, want []agency.Event) {
		t.Helper()
		got, err := s.Events(ctx, since, run, limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(1, "", 0, want)
	check(1, "", 2, want[:2])
	check(0, r.ID, 0, want[:1])
	check(4, "", 0, []agency.Event{})
}

// A follower that takes the channel before it reads sees every event, in order, however commits and
// reads mix.
func TestChangedNeverMisses(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var seen int64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		batches := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 5).Draw(t, "batches")
		end := seen
		for _, n := range batches {
			end += int64(n)
		}
		var writer errgroup.Group
		writer.Go(func() error {
			for _, n := range batches {
				if err := s.Append(ctx, make([]agency.EventDraft, n)...); err != nil {
					return err
				}
			}
			return nil
		})
		for seen < end {
			changed := s.Changed()
			events, err := s.Events(ctx, seen, "", 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Seq != seen+1 {
					t.Fatalf("event %d after %d", e.Seq, seen)
				}
				seen = e.Seq
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("missed: saw %d of %d events", seen, end)
			}
		}
		if err := writer.Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

// A repository is known by its fingerprint wherever it moves, and its runs follow it.
func TestRepos(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "agency.db"))
	ctx := context.Background()
	get := func(r *agency.Repo, err error) *agency.Repo {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	put := func(r agency.Repo) {
		t.Helper()
		if err := s.PutRepo(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	r := newRun(1)
	if got := get(s.Repo(ctx, r.Repo.Fingerprint)); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	create(t, s, r)
	if diff := cmp.Diff(&r.Repo, get(s.Repo(ctx, r.Repo.Fingerprint))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	put(r.Repo)
	if e := lastEvent(t, s); e.Type != agency.RunCreated {
		t.Errorf("event %+v for a repository that did not move", e)
	}
	moved := r.Repo
	moved.Root, moved.CommonDir = "/new/app", "/new/app/.git"
	put(moved)
	e := lastEvent(t, s)
	if e.Type != agency.RepositoryMoved ||
		string(e.Data) != `{"fingerprint":"5c0f3f5e-0000-4000-8000-000000000001","from":"/src/app","to":"/new/app"}` {
		t.Errorf("event %s %s", e.Type, e.Data)
	}
	run, err := s.Run(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(moved, run.Repo); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A guard runs once more just before a change is committed, while no reader can see the change.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var seen []int64
	s.Guard(func() error {
		seq, err := s.LastSeq(context.Background())
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, seq)
		return nil
	})
	for range 2 {
		if err := s.Append(context.Background(), agency.EventDraft{Type: agency.DaemonStarted}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []int64{0, 1}) {
		t.Errorf("the record had %v events before each commit", seen)
	}
	lost := errors.New("lost")
	s.Guard(func() error { return lost })
	if err := s.Append(context.Background(), agency.EventDraft{Type: agency.DaemonStarted}); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if seq, err := s.LastSeq(context.Background()); seq != 2 || err != nil {
		t.Errorf("what was refused is there: %d events, %v", seq, err)
	}
}
