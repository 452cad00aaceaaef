package inspect_test

import (
	"testing"
	"time"

	"agency"
	"agency/internal/cli/inspect"
)

func TestParseSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "0s": now, "1h30m": now.Add(-90 * time.Minute),
		"2026-01-31T15:04:05Z":      time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC),
		"2026-01-31T15:04:05+02:00": time.Date(2026, 1, 31, 13, 4, 5, 0, time.UTC),
	} {
		if got, err := inspect.ParseSince(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v and %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "-10m", "10", "2026-01-31", "15:04", "10m ago", "٣m"} {
		_, err := inspect.ParseSince(in, now)
		if !agency.IsCode(err, agency.CodeUsage) || agency.AsError(err).Hint == "" {
			t.Errorf("%q: got %v", in, err)
		}
	}
}
