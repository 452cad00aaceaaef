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

// A timer may write to a run that rests or offers its work, under no other label.
func TestBusy(t *testing.T) {
	t.Parallel()
	for _, label := range agency.Labels() {
		idle := label == agency.Waiting || label == agency.ReadyForReview
		if why := agency.Busy(&agency.Run{}, agency.Status{Label: label}); (why == "") != idle {
			t.Errorf("%s: %q", label, why)
		}
		asks := agency.Status{Label: label, Request: &agency.Request{ID: "1"}}
		if agency.Busy(&agency.Run{}, asks) == "" {
			t.Errorf("%s with a request is idle", label)
		}
	}
}

func TestCheckSystemPrompt(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "Be brief.\r\n\tAlways. é": true, "\x00": false, "\x1b[31m": false, "\xff": false,
		strings.Repeat("x", agency.SystemPromptLimit): true, strings.Repeat("x", agency.SystemPromptLimit+1): false,
	} {
		if err := agency.CheckSystemPrompt(text); (err == nil) != ok {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	for _, kind := range []agency.RunnerKind{agency.Shell, agency.Custom} {
		for _, spec := range []agency.Spec{
			{Runner: agency.SpecRunner{Kind: kind, Name: "x"}, SystemPrompt: "Be brief."},
			{Runner: agency.SpecRunner{Kind: kind, Name: "x", SkipPermissions: true}},
		} {
			if err := spec.Validate(); !agency.IsCode(err, agency.CodeSpecInvalid) {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}
