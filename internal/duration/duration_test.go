package duration_test

import (
	"fmt"
	"testing"
	"time"

	"agency/internal/duration"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "30m": 30 * time.Minute, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "500ms": 500 * time.Millisecond, "0": 0, "0d": 0, "0s": 0, "100000d": 100_000 * 24 * time.Hour,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "7", "-1s", "-7d", "7d-1h", "1.5d", "100001d", "7 d", "2d48h", "1h7d", "a day", "9223372036s9223372036s"} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", 7 * 24 * time.Hour: "7d", 36 * time.Hour: "36h",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 20 * time.Second: "20s",
	} {
		got := duration.Text(d)
		if back, err := duration.Parse(got); got != want || err != nil || back != d {
			t.Errorf("%s: got %q, which is %s, %v", d, got, back, err)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59*time.Second + 999: "59s", time.Minute: "1m", 59 * time.Minute: "59m", time.Hour: "1h",
		2*time.Hour + 5*time.Minute: "2h5m", 24*time.Hour - 1: "23h59m", 24 * time.Hour: "1d", 75 * time.Hour: "3d",
	} {
		if got := duration.Short(d); got != want {
			t.Errorf("%s is %s, want %s", fmt.Sprint(d), got, want)
		}
	}
}
