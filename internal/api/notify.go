package api

import (
	"time"

	"agency"
)

// TestNotifyRequest names a channel; empty is all of them.
type TestNotifyRequest struct {
	Channel string `json:"channel,omitempty"`
}

// TestNotifyResponse says what became of the notice at each channel.
type TestNotifyResponse struct {
	Results []NotifyResult `json:"results"`
}

// NotifyResult is one of them.
type NotifyResult struct {
	Channel string `json:"channel,omitempty"`
	Sent    bool   `json:"sent"`
	Waiting bool   `json:"waiting"` // the time for the test was over before it was sent or given up
	Tries   int    `json:"tries"`
	Error   string `json:"error"` // of the last try that failed; empty when none did
}

// ListChannelsResponse is every channel that is configured or has something left, and the newest dead letters, newest first.
type ListChannelsResponse struct {
	Channels    []Channel    `json:"channels"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	QuietUntil  *time.Time   `json:"quiet_until"` // null outside of the quiet hours
}

// Channel is a way to people, and how it stands with it.
type Channel struct {
	Channel  string     `json:"channel"`
	Kind     string     `json:"kind"`      // desktop, webhook, command or bell; empty when it is not configured any more
	Waiting  int        `json:"waiting"`   // notices that were not sent yet
	Dead     int        `json:"dead"`      // notices that were given up
	NextAt   *time.Time `json:"next_at"`   // the next try; null when nothing waits
	SentAt   *time.Time `json:"sent_at"`   // the last success
	FailedAt *time.Time `json:"failed_at"` // the last failure
	Error    string     `json:"error"`     // of that
}

// DeadLetter is a notice that a channel did not take, and that is not tried any more.
type DeadLetter struct {
	Notice  string       `json:"notice"`
	Channel string       `json:"channel"`
	Kind    string       `json:"msg_type"`
	Title   string       `json:"title"`
	RunID   agency.RunID `json:"run_id"` // empty when it is about no run
	Tries   int          `json:"tries"`
	Error   string       `json:"error"`
	DeadAt  time.Time    `json:"dead_at"`
}
