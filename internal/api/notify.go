package api

import (
	"time"

	"agency"
)

// TestNotifyRequest names a channel; empty means all.
type TestNotifyRequest struct {
	Channel string `json:"channel,omitempty"`
}

// TestNotifyResponse holds the outcome of the notice at each channel.
type TestNotifyResponse struct {
	Results []NotifyResult `json:"results"`
}

// NotifyResult is the outcome at one channel.
type NotifyResult struct {
	Channel string `json:"channel,omitempty"`
	Sent    bool   `json:"sent"`
	Waiting bool   `json:"waiting"` // the test ended before the notice was sent or given up
	Tries   int    `json:"tries"`
	Error   string `json:"error"` // of the last failed try; empty when none failed
}

// ListChannelsResponse holds every channel that is configured or still has notices, and the dead
// letters, newest first.
type ListChannelsResponse struct {
	Channels    []Channel    `json:"channels"`
	DeadLetters []DeadLetter `json:"dead_letters"`
	QuietUntil  *time.Time   `json:"quiet_until"` // null outside the quiet hours
}

// Channel is a way to notify the user, and its state.
type Channel struct {
	Channel  string     `json:"channel"`
	Kind     string     `json:"kind"`      // desktop, webhook, command or bell; empty when it is no longer configured
	Waiting  int        `json:"waiting"`   // notices that were not sent yet
	Dead     int        `json:"dead"`      // notices that were given up
	NextAt   *time.Time `json:"next_at"`   // the next try; null when nothing waits
	SentAt   *time.Time `json:"sent_at"`   // the last success
	FailedAt *time.Time `json:"failed_at"` // the last failure
	Error    string     `json:"error"`     // of the last failure
}

// DeadLetter is a notice that a channel did not accept and that is not tried again.
type DeadLetter struct {
	Notice  string       `json:"notice"`
	Channel string       `json:"channel"`
	Kind    string       `json:"msg_type"`
	Title   string       `json:"title"`
	RunID   agency.RunID `json:"run_id"` // empty when it is not about a run
	Tries   int          `json:"tries"`
	Error   string       `json:"error"`
	DeadAt  time.Time    `json:"dead_at"`
}
