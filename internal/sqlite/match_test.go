package sqlite_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/sqlite"
)

// namedRuns makes ten runs with names and handles that resemble each other; 2, 3 and 6 are removed.
func namedRuns(t *testing.T, s *sqlite.Store) []*agency.Run {
	t.Helper()
	names := []string{"auth", "auth-fix", "old-one", "old-one", "", "", "", "", "1", ""}
	runs := make([]*agency.Run, len(names))
	for i, name := range names {
		runs[i] = newRun(i + 1)
		runs[i].Name = name
	}
	runs[4].Handle = "1122-scout-aaaa"
	runs[5].Handle = "1122-scout-aaab"
	runs[6].Handle = "1122-scout-aaac"
	runs[7].Handle = "auth" // another run's name
	runs[8].Name = "under-score"
	runs[9].Handle = "old-one" // a removed run's name
	for i, r := range runs {
		create(t, s, r)
		if i == 2 || i == 3 || i == 6 {
			remove(t, s, r.ID)
		}
	}
	return runs
}

// A reference matches as users expect: an exact match before a beginning, existing runs before
// removed ones, and the newest of the removed.
func TestMatchRuns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	runs := namedRuns(t, s)
	matches := func(ref string, want []int) {
		t.Helper()
		got, err := s.MatchRuns(context.Background(), ref, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, places(runs, got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", ref, diff)
		}
	}
	id := string(runs[8].ID)
	for _, c := range []struct {
		ref  string
		want []int
	}{
		{id, []int{8}},
		{strings.ToLower(id), []int{8}},
		{id[:len(id)-1], []int{0, 1, 4, 5, 7, 8, 9}}, // they differ in the last character only
		{"auth", []int{0}},
		{"auth-", []int{1}},
		{"AUTH-", []int{}},
		{"aut", []int{}},
		{"unde", []int{8}},
		{"u_de", []int{}},
		{"unde%", []int{}},
		{"1122-scout-aaaa", []int{4}},
		{"1122-scout-aaac", []int{6}}, // a handle is never reused
		{"1122-scout-aaa", []int{4, 5}},
		{"1122-scout", []int{4, 5}},
		{"old-one", []int{9}},
		{"old-on", []int{9}},
		{"unknown", []int{}},
		{"", []int{}},
		{"r_", []int{}},
		{"\xff\xff\xff\xff", []int{}},
	} {
		matches(c.ref, c.want)
	}
	remove(t, s, runs[9].ID)
	change(t, s, runs[9].ID, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Handle = "1122-gone-0000"
		return nil, nil
	})
	for ref, want := range map[string][]int{"old-one": {3}, "old-on": {2, 3}, "1122-gone": {9}} {
		matches(ref, want)
	}
	got, err := s.MatchRuns(context.Background(), "1122", 2)
	if err != nil || len(got) != 2 {
		t.Errorf("%d runs for a limit of 2, %v", len(got), err)
	}
}
