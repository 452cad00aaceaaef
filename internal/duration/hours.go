package duration

import (
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Hours are a part of each day in local time, in minutes since midnight: from From until To, across
// midnight when To is smaller. The zero value is no part.
type Hours struct{ From, To int }

var hoursRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)
})

// ParseHours reads hours like "22:00-07:00". Its errors continue a sentence.
func ParseHours(s string) (Hours, error) {
	if !hoursRule().MatchString(s) {
		return Hours{}, fmt.Errorf(`must be hours of the day such as "22:00-07:00", not %q`, s)
	}
	var hour, minute, toHour, toMinute int
	if _, err := fmt.Sscanf(s, "%d:%d-%d:%d", &hour, &minute, &toHour, &toMinute); err != nil {
		return Hours{}, err
	}
	h := Hours{From: hour*60 + minute, To: toHour*60 + toMinute}
	if h.From == h.To {
		return Hours{}, fmt.Errorf("must begin and end at different times, not %q", s)
	}
	return h, nil
}

// String returns the text that ParseHours reads; "" for the zero value.
func (h Hours) String() string {
	if h == (Hours{}) {
		return ""
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// Until returns when the hours that contain t end, in the location of t; within is false when t is
// outside them.
func (h Hours) Until(t time.Time) (end time.Time, within bool) {
	now := t.Hour()*60 + t.Minute()
	switch {
	case h.From < h.To:
		within = now >= h.From && now < h.To
	case h.From > h.To:
		within = now >= h.From || now < h.To
	}
	if !within {
		return time.Time{}, false
	}
	day := t.Day()
	if now >= h.To {
		day++
	}
	end = time.Date(t.Year(), t.Month(), day, 0, h.To, 0, 0, t.Location())
	for !end.After(t) { // when clocks are set back, an hour occurs twice
		end = end.Add(time.Hour)
	}
	return end, true
}
