package api

import (
	"time"

	"agency"
)

// TestNotifyRequest names a channel; empty means all.
type TestNotifyRequest struct {
	Channel string `json:"channel,omitempty"` // the name of one channel; empty means all
}

// TestNotifyResponse holds the outcome of the notice at each channel.
type TestNotifyResponse struct {
	Results []NotifyResult `json:"results"` // the outcome at each channel
}

// NotifyResult is the outcome at one channel.
type NotifyResult struct {
	Channel string `json:"channel,omitempty"` // its name
	Sent    bool   `json:"sent"`              // the channel accepted the notice
	Waiting bool   `json:"waiting"`           // the test ended before the notice was sent or given up
	Tries   int    `json:"tries"`             // how often agency tried
	Error   string `json:"error"`             // of the last failed try; empty when none failed
}

// ListChannelsResponse holds every channel that is configured or still has notices, and the dead
// letters, newest first.
type ListChannelsResponse struct {
	Channels    []Channel    `json:"channels"`     // those that are configured or still have notices, by name
	DeadLetters []DeadLetter `json:"dead_letters"` // notices that were given up, the newest first, at most 20
	QuietUntil  *time.Time   `json:"quiet_until"`  // when the quiet hours end; null outside of them
}

// Channel is a way to notify the user, and its state.
type Channel struct {
	Channel  string     `json:"channel"`   // its name in the configuration
	Kind     string     `json:"kind"`      // desktop, webhook, command or bell; empty when it is no longer configured
	Waiting  int        `json:"waiting"`   // notices that were not sent yet
	Dead     int        `json:"dead"`      // notices that were given up
	NextAt   *time.Time `json:"next_at"`   // when the next try is due; null when nothing waits
	SentAt   *time.Time `json:"sent_at"`   // when it last accepted a notice; null when never
	FailedAt *time.Time `json:"failed_at"` // when it last failed; null when never
	Error    string     `json:"error"`     // of the last failure; empty when it never failed
}

// DeadLetter is a notice that a channel did not accept and that is not tried again.
type DeadLetter struct {
	Notice  string       `json:"notice"`   // its id
	Channel string       `json:"channel"`  // the name of the channel that did not accept it
	Kind    string       `json:"msg_type"` // that of its alert or session, or notify.test
	Title   string       `json:"title"`    // one line; untrusted
	RunID   agency.RunID `json:"run_id"`   // the run that it is about; empty for none
	Tries   int          `json:"tries"`    // how often agency tried
	Error   string       `json:"error"`    // of the last try; may quote another program: untrusted
	DeadAt  time.Time    `json:"dead_at"`  // when it was given up
}
