package duration_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency/internal/duration"
)

func TestParseHours(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"22:00-07:00", "00:00-23:59", "09:30-17:45", "23:59-00:00"} {
		h, err := duration.ParseHours(s)
		if err != nil || h.String() != s {
			t.Errorf("%q: %v, %v", s, h, err)
		}
	}
	for _, s := range []string{"", "22-7", "22:00", "24:00-07:00", "22:60-07:00", "7:00-8:00", "22:00-22:00", " 22:00-07:00", "22:00-07:00x", "00:00-00:00"} {
		if h, err := duration.ParseHours(s); err == nil || h != (duration.Hours{}) {
			t.Errorf("%q is taken as %v", s, h)
		}
	}
	if s := (duration.Hours{}).String(); s != "" {
		t.Errorf("no hours are %q", s)
	}
}

func TestHoursUntil(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse("02 15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, tt := range []struct{ hours, now, end string }{
		{"22:00-07:00", "05 21:59:59", ""},
		{"22:00-07:00", "05 22:00:00", "06 07:00:00"},
		{"22:00-07:00", "05 23:59:59", "06 07:00:00"},
		{"22:00-07:00", "06 00:00:00", "06 07:00:00"},
		{"22:00-07:00", "06 06:59:59", "06 07:00:00"},
		{"22:00-07:00", "06 07:00:00", ""},
		{"12:00-13:30", "05 11:59:59", ""},
		{"12:00-13:30", "05 12:00:00", "05 13:30:00"},
		{"12:00-13:30", "05 13:30:00", ""},
		{"22:00-00:00", "05 23:00:00", "06 00:00:00"},
	} {
		h, err := duration.ParseHours(tt.hours)
		if err != nil {
			t.Fatal(err)
		}
		end, within := h.Until(at(tt.now))
		if within != (tt.end != "") || within && !end.Equal(at(tt.end)) {
			t.Errorf("%s at %s: %v, %v, want %q", tt.hours, tt.now, end, within, tt.end)
		}
	}
	if _, within := (duration.Hours{}).Until(at("05 00:00:00")); within {
		t.Error("no hours hold midnight")
	}
}

// For any quiet hours, also where the clock changes twice a year: they end later than now and soon,
// at the latest after one more look.
func TestHoursEnd(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	zones := []*time.Location{time.UTC, time.FixedZone("far", 13*3600)}
	if berlin, err := time.LoadLocation("Europe/Berlin"); err == nil {
		zones = append(zones, berlin)
	}
	rapid.Check(t, func(t *rapid.T) {
		h := duration.Hours{From: rapid.IntRange(0, 1439).Draw(t, "from"), To: rapid.IntRange(0, 1439).Draw(t, "to")}
		now := begin.Add(time.Duration(rapid.Int64Range(-2*24*3600, 220*24*3600).Draw(t, "second")) * time.Second)
		now = now.In(rapid.SampledFrom(zones).Draw(t, "zone"))
		end, within := h.Until(now)
		if !within {
			return
		}
		if !end.After(now) || end.Sub(now) > 26*time.Hour {
			t.Fatalf("%v at %v ends at %v", h, now, end)
		}
		for looks := 0; within; looks++ {
			if looks > 2 {
				t.Fatalf("%v at %v does not end", h, now)
			}
			end, within = h.Until(end)
		}
	})
}
