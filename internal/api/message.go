package api

import (
	"encoding/json"
	"time"

	"agency"
)

// SendMessageRequest sends a message. The sender is who proves by its token to be a run, or else the person.
type SendMessageRequest struct {
	Type    string          `json:"msg_type"`
	To      agency.Target   `json:"to"`
	Payload json.RawMessage `json:"payload"` // an object
	ReplyTo string          `json:"reply_to,omitempty"`
}

// SendMessageResponse says who gets the message. With nobody it is a dead letter.
type SendMessageResponse struct {
	ID         string   `json:"id"`
	Recipients []string `json:"recipients"`
	Dead       string   `json:"dead"` // why nobody gets it; empty when somebody does
}

// PollMessagesRequest asks for what waits for the caller.
type PollMessagesRequest struct {
	Limit  int   `json:"limit,omitempty"`   // 0 is 100
	WaitMS int64 `json:"wait_ms,omitempty"` // how long to wait for the first one; 0 is not at all
}

func (r PollMessagesRequest) time() time.Duration { return time.Duration(r.WaitMS) * time.Millisecond }

func (r PollMessagesRequest) after(passed time.Duration) any {
	r.WaitMS = left(r.WaitMS, passed)
	return r
}

// MessagesResponse is messages, oldest first.
type MessagesResponse struct {
	Messages []agency.Message `json:"messages"`
}

// AckMessagesRequest says that the caller has dealt with messages.
type AckMessagesRequest struct {
	Messages []string `json:"messages"` // ids, or the ends of them
}

// AckMessagesResponse counts the messages that were acknowledged now.
type AckMessagesResponse struct {
	Acked int `json:"acked"`
}

// ListMessagesRequest looks at inboxes without taking from them. A run sees its own alone.
type ListMessagesRequest struct {
	Recipient string `json:"recipient,omitempty"` // a run, or "user"; empty is every inbox, for the person
	All       bool   `json:"all,omitempty"`       // acknowledged and dead ones too
}

// ChangeTagsRequest adds tags to a run and takes others away.
type ChangeTagsRequest struct {
	Run    string   `json:"run"`
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}
