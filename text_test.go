package agency_test

import (
	"fmt"
	"testing"
	"time"

	"agency"
)

func TestShortDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59*time.Second + 999: "59s", time.Minute: "1m", 59 * time.Minute: "59m", time.Hour: "1h",
		2*time.Hour + 5*time.Minute: "2h5m", 24*time.Hour - 1: "23h59m", 24 * time.Hour: "1d", 75 * time.Hour: "3d",
	} {
		if got := agency.ShortDuration(d); got != want {
			t.Errorf("%s is %s, want %s", fmt.Sprint(d), got, want)
		}
	}
}
