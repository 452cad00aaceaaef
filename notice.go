package agency

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// TestNotice is the kind of the notice that a person sends to see whether a channel works.
const TestNotice = "notify.test"

// Notice is something that people should know, wherever they are. Title, body and payload may quote an agent: untrusted.
type Notice struct {
	ID      string          `json:"id"`       // the same notice is brought to a channel once
	Kind    string          `json:"msg_type"` // that of an alert, or TestNotice
	Title   string          `json:"title"`
	Body    string          `json:"body"`
	RunID   RunID           `json:"run_id"`   // empty when it is about no run
	RunName string          `json:"run_name"` // how people call the run
	Repo    string          `json:"repo"`     // the path of its repository
	Tags    []string        `json:"tags"`     // of the run
	Payload json.RawMessage `json:"payload"`  // an object
	At      time.Time       `json:"at"`
}

// Dispatch is one notice on its way through one channel. It waits until it is sent or dead.
type Dispatch struct {
	Notice   Notice
	Channel  string
	Tries    int
	DueAt    time.Time // of the next try
	SentAt   *time.Time
	FailedAt *time.Time // the last try that failed
	Error    string     // of that try; may quote another program: untrusted
	DeadAt   *time.Time // it is not tried any more
}

// Settled says that nothing more will happen to it.
func (d *Dispatch) Settled() bool { return d.SentAt != nil || d.DeadAt != nil }

// ChannelState is how it stands with one channel.
type ChannelState struct {
	Channel  string
	Waiting  int
	Dead     int
	DueAt    *time.Time // the next try; nil when nothing waits
	SentAt   *time.Time // the last success
	FailedAt *time.Time // the last failure
	Error    string     // of that
}

// Hours are a part of each day by the clock on the wall, in minutes since midnight: from the first up to the second, over
// midnight when that is the smaller one. The zero value is no part.
type Hours struct{ From, To int }

var hoursRule = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// ParseHours reads hours like "22:00-07:00". Its errors continue a sentence.
func ParseHours(s string) (Hours, error) {
	if !hoursRule.MatchString(s) {
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

// String is what ParseHours reads; no hours are empty.
func (h Hours) String() string {
	if h == (Hours{}) {
		return ""
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// Until is when the hours end that t lies in, by the clock of its location; within is false when it lies in none.
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
	for !end.After(t) { // a clock that was set back shows an hour twice
		end = end.Add(time.Hour)
	}
	return end, true
}

// NoticeKind says why somebody is told of a session. The words are those of the messages and notices that go out.
type NoticeKind string

// The kinds of notices about sessions that need nobody. What needs somebody is an alert.
const (
	NoticeComplete  NoticeKind = "session.complete"
	NoticeCancelled NoticeKind = "session.cancelled"
)

// NoticeKinds are all kinds.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeComplete, NoticeCancelled}
}

// Words are what a kind says of a session.
func (k NoticeKind) Words() string {
	switch k {
	case NoticeComplete:
		return "is complete"
	case NoticeCancelled:
		return "was cancelled"
	}
	return string(k)
}
