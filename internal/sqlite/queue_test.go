package sqlite_test

import (
	"path/filepath"
	"testing"

	"agency"
	"agency/test/fixture"
)

// Readers get an entry once it is written, and after the store was opened again.
func TestQueueEntries(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	fixture.Database(t, path)
	first := openAt(t, path)
	r := newRun(1)
	create(t, first, r)
	filter := agency.QueueFilter{Run: r.ID}
	if entries, err := first.QueueEntries(t.Context(), filter); err != nil || entries == nil || len(entries) > 0 {
		t.Errorf("%v, %v before there is a queue", entries, err)
	}
	e := agency.QueueEntry{RunID: r.ID, Repo: r.Repo.Fingerprint, Target: "main", Source: "aa", State: agency.EntryQueued, By: agency.User}
	if err := first.AddQueueEntry(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := openAt(t, path)
		if entries, err := s.QueueEntries(t.Context(), filter); err != nil || len(entries) != 1 || entries[0].Seq != e.Seq {
			t.Errorf("%v, %v", entries, err)
		}
	}
	if entries, err := first.QueueEntries(t.Context(), filter); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
