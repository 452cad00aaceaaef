package agency

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Timer writes a message to a run repeatedly, while the run is idle.
type Timer struct {
	Seq      int64 // identifies it among all timers that ever had its name
	Name     string
	RunID    RunID
	Owner    string // the starter: the id of a run, or User
	Message  string
	Interval time.Duration

	StartedAt time.Time
	NextAt    time.Time  // the next tick
	TickedAt  *time.Time // the last one
	// Ticks is the sum of the other three: messages that were sent, messages that were skipped
	// because the run was not idle, and messages that failed.
	Ticks, Sent, Skipped, Failed int
	Outcome                      string // of the last tick, in words
	// StoppedAt is when it ended by itself; a timer that is stopped on request is deleted.
	StoppedAt  *time.Time
	StopReason string
}

// The bounds of a timer's interval.
const (
	MinTimerInterval = 5 * time.Second
	MaxTimerInterval = 24 * time.Hour
)

// timerMessageLimit is the longest message of a timer, in bytes: it is typed repeatedly.
const timerMessageLimit = 4 << 10

// Validate checks the fields that a user chooses; its error is E_USAGE.
func (t *Timer) Validate() error {
	switch {
	case t.Interval < MinTimerInterval || t.Interval > MaxTimerInterval:
		return Errorf(CodeUsage, "the interval is %s, not between %s and %s", t.Interval, MinTimerInterval, MaxTimerInterval).
			WithHint("for example: --interval 30")
	case strings.TrimSpace(t.Message) == "":
		return Errorf(CodeUsage, "the message is empty").WithHint("for example: --message check")
	case len(t.Message) > timerMessageLimit:
		return Errorf(CodeUsage, "the message has %d bytes, and a timer's has at most %d", len(t.Message), timerMessageLimit)
	case strings.ContainsFunc(t.Message, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return Errorf(CodeUsage, "the message %q holds what no agent takes; a message is plain text, newlines and tabs", t.Message)
	}
	return CheckWord("timer name", t.Name)
}
