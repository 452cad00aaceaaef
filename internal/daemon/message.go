package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/policy"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// pollLimits bound how many messages one poll of an inbox returns, and how long it waits.
const (
	pollMessages = 100
	pollWait     = 10 * time.Minute
)

// messageOperations serve the operations on messages.
type messageOperations struct {
	sup        *supervisor.Supervisor
	store      *sqlite.Store
	policy     *policy.Policy
	untilStop  untilStop
	isStopping func() bool
}

func (o messageOperations) sendMessage(ctx context.Context, req api.SendMessageRequest) (api.SendMessageResponse, error) {
	from, err := o.policy.Caller(ctx)
	if err != nil {
		return api.SendMessageResponse{}, err
	}
	m := &agency.Message{Type: req.Type, From: from, To: req.To, Payload: req.Payload, ReplyTo: req.ReplyTo}
	recipients, dead, err := o.sup.Inbox.Send(ctx, m)
	if recipients == nil {
		recipients = []string{}
	}
	return api.SendMessageResponse{ID: m.ID, Recipients: recipients, Dead: dead}, err
}

func (o messageOperations) pollMessages(ctx context.Context, req api.PollMessagesRequest) (api.MessagesResponse, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return api.MessagesResponse{}, err
	}
	limit := req.Limit
	if limit <= 0 || limit > pollMessages {
		limit = pollMessages
	}
	wait, err := api.Milliseconds("wait_ms", req.WaitMS)
	if err != nil {
		return api.MessagesResponse{}, err
	}
	wait = min(wait, pollWait)
	ctx, cancel := o.untilStop(ctx)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer done()
	filter := agency.MessageFilter{Recipient: who, Limit: limit}
	if who == agency.User && req.Since != nil {
		filter.Since = *req.Since
	}
	messages, err := o.sup.Inbox.Poll(ctx, filter, wait > 0)
	if err == nil && len(messages) == 0 && wait > 0 && o.isStopping() {
		err = errStopping() // the client continues to wait at the next daemon
	}
	return api.MessagesResponse{Messages: messages}, err
}

func (o messageOperations) ackMessages(ctx context.Context, req api.AckMessagesRequest) (api.AckMessagesResponse, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return api.AckMessagesResponse{}, err
	}
	acked, err := o.store.AckMessages(ctx, who, req.Messages)
	return api.AckMessagesResponse{Acked: acked}, err
}

func (o messageOperations) listMessages(ctx context.Context, req api.ListMessagesRequest) (api.MessagesResponse, error) {
	who, err := o.policy.Caller(ctx)
	if err != nil {
		return api.MessagesResponse{}, err
	}
	recipient := req.Recipient
	if recipient != "" && recipient != agency.User {
		r, err := o.sup.Records.Resolve(ctx, recipient)
		if err != nil {
			return api.MessagesResponse{}, err
		}
		recipient = string(r.ID)
	}
	if who != agency.User && recipient != who {
		if recipient != "" {
			return api.MessagesResponse{}, agency.Errorf(agency.CodePermissionDenied, "a run can look into its own inbox only")
		}
		recipient = who
	}
	messages, err := o.store.Messages(ctx, agency.MessageFilter{Recipient: recipient, Waiting: !req.All})
	return api.MessagesResponse{Messages: messages}, err
}
