package agency

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"
)

// TestNotice is the kind of the notice that a user sends to test a channel.
const TestNotice = "notify.test"

// Notice is a notification for the user. Title, body and payload may quote an agent: untrusted.
type Notice struct {
	ID      string          `json:"id"`       // a channel gets a notice of the same id once
	Kind    string          `json:"msg_type"` // that of an alert, or TestNotice
	Title   string          `json:"title"`
	Body    string          `json:"body"`
	RunID   RunID           `json:"run_id"`   // empty when it is not about a run
	RunName string          `json:"run_name"` // what users call the run
	Repo    string          `json:"repo"`     // the path of its repository
	Tags    []string        `json:"tags"`     // of the run
	Payload json.RawMessage `json:"payload"`  // an object
	At      time.Time       `json:"at"`
	// Reminder reports whether the user was told of the same alert before. It is not stored.
	Reminder bool `json:"-"`
}

// Dispatch is one notice on its way through one channel. It waits until it is sent or dead.
type Dispatch struct {
	Notice   Notice
	Channel  string
	Tries    int
	DueAt    time.Time // time of the next try
	SentAt   *time.Time
	FailedAt *time.Time // time of the last failed try
	Error    string     // of that try; may quote another program: untrusted
	DeadAt   *time.Time // when it was given up
}

// Settled reports whether the dispatch is final: sent or dead.
func (d *Dispatch) Settled() bool { return d.SentAt != nil || d.DeadAt != nil }

// ChannelState is the state of one channel.
type ChannelState struct {
	Channel  string
	Waiting  int
	Dead     int
	DueAt    *time.Time // the next try; nil when nothing waits
	SentAt   *time.Time // the last success
	FailedAt *time.Time // the last failure
	Error    string     // of the last failure
}

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

// NoticeKind is the kind of a notice about a session. Its values appear in the messages and notices
// that are sent.
type NoticeKind string

// The kinds of notices about sessions that need no action. Those that need one are alerts.
const (
	NoticeComplete  NoticeKind = "session.complete"
	NoticeCancelled NoticeKind = "session.cancelled"
)

// NoticeKinds returns all kinds.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeComplete, NoticeCancelled}
}

// Words returns the kind as a sentence part about a session.
func (k NoticeKind) Words() string {
	switch k {
	case NoticeComplete:
		return "is complete"
	case NoticeCancelled:
		return "was cancelled"
	}
	return string(k)
}
