package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
)

// letter is a message to send.
type letter struct {
	Run      string         `json:"to_run,omitempty"`
	Tag      string         `json:"to_tag,omitempty" jsonschema:"to the live runs with this tag"`
	Owner    bool           `json:"to_owner,omitempty" jsonschema:"to the run or user that started your run"`
	Repo     bool           `json:"to_repository,omitempty" jsonschema:"to all live runs of this repository"`
	Everyone bool           `json:"to_everyone,omitempty" jsonschema:"to all live runs of every repository"`
	User     bool           `json:"to_user,omitempty"`
	Type     string         `json:"msg_type,omitempty" jsonschema:"words with dots between them; default message"`
	Text     string         `json:"text,omitempty"`
	Payload  map[string]any `json:"payload,omitempty" jsonschema:"instead of a text"`
	ReplyTo  string         `json:"reply_to,omitempty" jsonschema:"the message that this answers"`
}

func (s *Server) addMessages(tools *toolset) error {
	type poll struct {
		Seconds int `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the first one; at most 600"`
		Limit   int `json:"limit,omitempty" jsonschema:"how many of the oldest"`
	}
	type ids struct {
		Messages []string `json:"message_ids"`
	}
	return errors.Join(
		add(tools, api.SendMessage, s.send),
		add(tools, api.PollMessages, func(ctx context.Context, req *sdk.CallToolRequest, in poll) (any, error) {
			wait, err := duration(in.Seconds, 0)
			if err != nil {
				return nil, err
			}
			defer reportProgress(ctx, req, wait, "waiting for a message")()
			return api.Call(ctx, s.Client, api.PollMessages, api.PollMessagesRequest{Limit: in.Limit, WaitMS: wait.Milliseconds(), Since: &s.Since})
		}),
		add(tools, api.AckMessages, func(ctx context.Context, _ *sdk.CallToolRequest, in ids) (any, error) {
			return api.Call(ctx, s.Client, api.AckMessages, api.AckMessagesRequest{Messages: in.Messages})
		}),
	)
}

func (s *Server) send(ctx context.Context, _ *sdk.CallToolRequest, in letter) (any, error) {
	to := agency.Target{Run: in.Run, Tag: in.Tag, Owner: in.Owner, Broadcast: in.Everyone, User: in.User}
	if in.Repo {
		to.Repo = s.Dir
	}
	if to.Broadcast && !s.AllRepos {
		return nil, agency.Errorf(agency.CodePermissionDenied, "these tools are for one repository, and so are their messages").
			WithHint("to_repository; the user can start the tools for all of them: agency mcp --all-repos")
	}
	if to.Run != "" {
		r, err := s.find(ctx, to.Run)
		if err != nil {
			return nil, err
		}
		to.Run = string(r.ID)
	}
	if (in.Text == "") == (len(in.Payload) == 0) {
		return nil, agency.Errorf(agency.CodeUsage, "a message has either a text or a payload")
	}
	if in.Text != "" {
		in.Payload = map[string]any{"text": in.Text}
	}
	payload, err := json.Marshal(in.Payload)
	if err != nil {
		return nil, err
	}
	if in.Type == "" {
		in.Type = "message"
	}
	return api.Call(ctx, s.Client, api.SendMessage, api.SendMessageRequest{Type: in.Type, To: to, Payload: payload, ReplyTo: in.ReplyTo})
}

func (s *Server) addWatchdog(tools *toolset) error {
	type filter struct {
		Run      string `json:"run,omitempty"`
		Resolved bool   `json:"include_resolved,omitempty" jsonschema:"also those that are over"`
	}
	type ids struct {
		Alerts []string `json:"alert_ids"`
	}
	type timer struct {
		Run     string `json:"run" jsonschema:"the run to write to"`
		Name    string `json:"name,omitempty" jsonschema:"a name for the timer; default: the name of the run"`
		Message string `json:"message,omitempty" jsonschema:"what to write; default check"`
		Seconds int    `json:"interval_seconds,omitempty" jsonschema:"between two messages; default 30"`
	}
	type name struct {
		Name string `json:"name" jsonschema:"the name of the timer"`
	}
	return errors.Join(
		add(tools, api.ListAlerts, func(ctx context.Context, _ *sdk.CallToolRequest, in filter) (any, error) {
			if in.Run != "" {
				r, err := s.find(ctx, in.Run)
				if err != nil {
					return nil, err
				}
				in.Run = string(r.ID)
			}
			return api.Call(ctx, s.Client, api.ListAlerts, api.ListAlertsRequest{Dir: s.scope(), Run: in.Run, Resolved: in.Resolved})
		}),
		add(tools, api.AckAlerts, func(ctx context.Context, _ *sdk.CallToolRequest, in ids) (any, error) {
			return api.Call(ctx, s.Client, api.AckAlerts, api.AckAlertRequest{Dir: s.scope(), Alerts: in.Alerts})
		}),
		addKeys(tools, api.ExplainWatchdog, onRun(s, func(ctx context.Context, run string, _ api.ExplainWatchdogRequest) (any, error) {
			resp, err := api.Call(ctx, s.Client, api.ExplainWatchdog, api.ExplainWatchdogRequest{Run: run})
			return map[string]any{
				"run": newRow(&resp.Run), "watched": resp.Watched, "rules": resp.Rules, "alerts": resp.Alerts, "next_at": resp.NextAt,
			}, err
		})),
		add(tools, api.StartTimer, onRun(s, func(ctx context.Context, run string, in timer) (any, error) {
			if in.Message == "" {
				in.Message = "check"
			}
			if in.Seconds == 0 {
				in.Seconds = 30
			}
			return api.Call(ctx, s.Client, api.StartTimer, api.StartTimerRequest{
				Run: run, Name: in.Name, Message: in.Message, IntervalMS: (time.Duration(in.Seconds) * time.Second).Milliseconds(),
			})
		})),
		add(tools, api.StopTimers, func(ctx context.Context, _ *sdk.CallToolRequest, in name) (any, error) {
			if in.Name == "" {
				return nil, agency.Errorf(agency.CodeUsage, "the name of the timer is empty").WithHint("watchdog_status shows them")
			}
			return api.Call(ctx, s.Client, api.StopTimers, api.StopTimersRequest{Dir: s.scope(), Name: in.Name})
		}),
		add(tools, api.ListTimers, func(ctx context.Context, _ *sdk.CallToolRequest, _ api.Empty) (any, error) {
			return api.Call(ctx, s.Client, api.ListTimers, api.ListTimersRequest{Dir: s.scope()})
		}),
	)
}
