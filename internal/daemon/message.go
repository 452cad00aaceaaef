package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// pollLimits bound how many messages one poll of an inbox returns, and how long it waits.
const (
	pollMessages = 100
	pollWait     = 10 * time.Minute
)

func (d *Daemon) sendMessage(ctx context.Context, req api.SendMessageRequest) (api.SendMessageResponse, error) {
	from, err := d.policy.Caller(ctx)
	if err != nil {
		return api.SendMessageResponse{}, err
	}
	m := &agency.Message{Type: req.Type, From: from, To: req.To, Payload: req.Payload, ReplyTo: req.ReplyTo}
	recipients, dead, err := d.sup.Inbox.Send(ctx, m)
	if recipients == nil {
		recipients = []string{}
	}
	return api.SendMessageResponse{ID: m.ID, Recipients: recipients, Dead: dead}, err
}

func (d *Daemon) pollMessages(ctx context.Context, req api.PollMessagesRequest) (api.MessagesResponse, error) {
	who, err := d.policy.Caller(ctx)
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
	ctx, cancel := d.untilStop(ctx)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer done()
	messages, err := d.sup.Inbox.Poll(ctx, who, limit, wait > 0)
	if err == nil && len(messages) == 0 && wait > 0 && d.isStopping() {
		err = errStopping() // the client continues to wait at the next daemon
	}
	return api.MessagesResponse{Messages: messages}, err
}

func (d *Daemon) ackMessages(ctx context.Context, req api.AckMessagesRequest) (api.AckMessagesResponse, error) {
	who, err := d.policy.Caller(ctx)
	if err != nil {
		return api.AckMessagesResponse{}, err
	}
	acked, err := d.store.AckMessages(ctx, who, req.Messages)
	return api.AckMessagesResponse{Acked: acked}, err
}

func (d *Daemon) listMessages(ctx context.Context, req api.ListMessagesRequest) (api.MessagesResponse, error) {
	who, err := d.policy.Caller(ctx)
	if err != nil {
		return api.MessagesResponse{}, err
	}
	recipient := req.Recipient
	if recipient != "" && recipient != agency.User {
		r, err := d.sup.Records.Resolve(ctx, recipient)
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
	messages, err := d.store.Messages(ctx, agency.MessageFilter{Recipient: recipient, Waiting: !req.All})
	return api.MessagesResponse{Messages: messages}, err
}
