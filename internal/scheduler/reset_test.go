package scheduler

import (
	"testing"
	"time"
)

func TestResetIn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 1, 14, 30, 0, 0, time.Local)
	for text, want := range map[string]time.Duration{
		"Request rejected (429): retry after 30s":        30 * time.Second,
		"Rate limit reached. Please try again in 250ms.": 250 * time.Millisecond,
		"try again in 5 minutes":                         5 * time.Minute,
		"Claude usage limit reached|1769990000":          time.Unix(1769990000, 0).Sub(at),
		"You've hit your limit - resets 3pm":             30 * time.Minute,
		"limit reached, resets at 14:00":                 23*time.Hour + 30*time.Minute,
		"resets 12am":                                    9*time.Hour + 30*time.Minute,
		"This request would exceed the rate limit":       0,
		"try again in 999999 hours":                      0,
		"try again in 24 hours":                          24 * time.Hour,
		"try again in 25 hours":                          0,
		"resets 99:99":                                   0,
		"resets 7 times":                                 0,
	} {
		got := resetIn(text, at)
		if want <= 0 && !got.IsZero() || want > 0 && !got.Equal(at.Add(want)) {
			t.Errorf("%q: %s, want %s later", text, got, want)
		}
	}
}

// A limit that ends at the present hour, or ended a moment ago, does not mean tomorrow.
func TestResetInAtItsOwnHour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		at   time.Time
		want time.Time
	}{
		{"resets 3pm", time.Date(2026, 2, 1, 15, 0, 0, 0, time.Local), time.Time{}},
		{"resets 3pm", time.Date(2026, 2, 1, 15, 0, 2, 0, time.Local), time.Time{}},
		{"resets 3pm", time.Date(2026, 2, 1, 15, 10, 0, 0, time.Local), time.Time{}},
		{"resets 3pm", time.Date(2026, 2, 1, 15, 10, 1, 0, time.Local), time.Date(2026, 2, 2, 15, 0, 0, 0, time.Local)},
		{"resets 3pm", time.Date(2026, 2, 1, 14, 59, 59, 0, time.Local), time.Date(2026, 2, 1, 15, 0, 0, 0, time.Local)},
		{"resets 11:55pm", time.Date(2026, 2, 2, 0, 2, 0, 0, time.Local), time.Time{}},
		{"resets 12am", time.Date(2026, 2, 2, 0, 0, 2, 0, time.Local), time.Time{}},
	} {
		if got := resetIn(tt.text, tt.at); !got.Equal(tt.want) {
			t.Errorf("%q at %s: %s, want %s", tt.text, tt.at.Format(time.TimeOnly), got, tt.want)
		}
	}
}
