package agency_test

import (
	"strings"
	"testing"
	"time"

	"agency"
)

func TestTimerValidate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timer agency.Timer
		ok    bool
	}{
		"usual":         {agency.Timer{Name: "boss", Message: "check", Interval: 30 * time.Second}, true},
		"shortest":      {agency.Timer{Name: "boss", Message: "check", Interval: agency.MinTimerInterval}, true},
		"too short":     {agency.Timer{Name: "boss", Message: "check", Interval: agency.MinTimerInterval - 1}, false},
		"too long":      {agency.Timer{Name: "boss", Message: "check", Interval: agency.MaxTimerInterval + 1}, false},
		"no message":    {agency.Timer{Name: "boss", Message: "\n", Interval: time.Minute}, false},
		"large message": {agency.Timer{Name: "boss", Message: strings.Repeat("x", 5000), Interval: time.Minute}, false},
		"two lines":     {agency.Timer{Name: "boss", Message: "check\n\tall é 漢", Interval: time.Minute}, true},
		"escape":        {agency.Timer{Name: "boss", Message: "check\x1b[A", Interval: time.Minute}, false},
		"no UTF-8":      {agency.Timer{Name: "boss", Message: "check\xff", Interval: time.Minute}, false},
		"no name":       {agency.Timer{Message: "check", Interval: time.Minute}, false},
		"strange name":  {agency.Timer{Name: "a\x1bb", Message: "check", Interval: time.Minute}, false},
	} {
		if err := tt.timer.Validate(); (err == nil) != tt.ok || err != nil && !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
