package spool_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/spool"
)

// A file is read up to its last complete line from every offset, and nothing is returned twice.
func FuzzTail(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-22T09:00:00Z","source":"hook","signal":"busy"}`+"\n"+`{"source":"hook","signal":"resting"}`+"\nhalf"), int64(0))
	f.Add([]byte("\n\n{}\nnot json\n"), int64(3))
	f.Add([]byte{0xff, 0, '\n'}, int64(99))
	path := filepath.Join(f.TempDir(), agency.EventsFile)
	f.Fuzz(func(t *testing.T, data []byte, offset int64) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		offset = max(offset, 0) // it comes from the record
		evidence, next, err := spool.Tail(path, offset)
		if err != nil {
			t.Fatal(err)
		}
		if next > int64(len(data)) || offset <= int64(len(data)) && next < offset || next > 0 && next != offset && data[next-1] != '\n' {
			t.Errorf("read from %d to %d of %d", offset, next, len(data))
		}
		if again, end, err := spool.Tail(path, next); err != nil || len(again) > 0 || end != next {
			t.Errorf("the same again: %d after %d, from %d to %d, %v", len(again), len(evidence), next, end, err)
		}
	})
}
