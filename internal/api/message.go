package api

import (
	"encoding/json"
	"time"

	"agency"
)

// SendMessageRequest sends a message. The sender is the run that the caller's token proves, or else
// the user.
type SendMessageRequest struct {
	Type    string          `json:"msg_type"`           // what it is about: words of lower-case letters with dots between them, such as help.request
	To      agency.Target   `json:"to"`                 // where it goes
	Payload json.RawMessage `json:"payload"`            // an object, at most 64 KiB
	ReplyTo string          `json:"reply_to,omitempty"` // the message that it answers, by its id or the id's end, from the caller's inbox; empty for none
}

// SendMessageResponse lists the recipients of the message. Without any, it is a dead letter.
type SendMessageResponse struct {
	ID         string   `json:"id"`         // of the message
	Recipients []string `json:"recipients"` // the ids of runs, or user
	Dead       string   `json:"dead"`       // why there are no recipients; empty when there are
}

// PollMessagesRequest asks for the messages in the caller's inbox.
type PollMessagesRequest struct {
	Limit  int   `json:"limit,omitempty"`   // how many, at most 100; 0 means 100
	WaitMS int64 `json:"wait_ms,omitempty"` // how long to wait for the first message, in milliseconds, at most ten minutes; 0 means not at all
	// Since leaves out the user's messages that were sent before; a run always gets all of its own.
	Since *time.Time `json:"since,omitempty"`
}

func (r PollMessagesRequest) time() time.Duration { return time.Duration(r.WaitMS) * time.Millisecond }

func (r PollMessagesRequest) after(passed time.Duration) any {
	r.WaitMS = left(r.WaitMS, passed)
	return r
}

// MessagesResponse holds messages, oldest first.
type MessagesResponse struct {
	Messages []agency.Message `json:"messages"` // the oldest first
}

// AckMessagesRequest acknowledges messages that the caller has dealt with.
type AckMessagesRequest struct {
	Messages []string `json:"messages"` // ids, or their endings
}

// AckMessagesResponse counts the messages that this request acknowledged.
type AckMessagesResponse struct {
	Acked int `json:"acked"` // how many messages this request acknowledged
}

// ListMessagesRequest lists messages without acknowledging them. A run sees only its own inbox.
type ListMessagesRequest struct {
	Recipient string `json:"recipient,omitempty"` // a run, or "user"; empty means all inboxes, for the user only
	All       bool   `json:"all,omitempty"`       // acknowledged and dead ones too
}

// ChangeTagsRequest adds tags to a run and removes others.
type ChangeTagsRequest struct {
	Run    string   `json:"run"`              // its name, handle or id
	Add    []string `json:"add,omitempty"`    // tags that the run gets
	Remove []string `json:"remove,omitempty"` // tags that it loses
}
