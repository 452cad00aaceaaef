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
	Run      string         `json:"to_run,omitempty" jsonschema:"to one run"`
	Tag      string         `json:"to_tag,omitempty" jsonschema:"to the live runs with this tag"`
	Owner    bool           `json:"to_owner,omitempty" jsonschema:"to who started the run that you are"`
	Repo     bool           `json:"to_repository,omitempty" jsonschema:"to all live runs of this repository"`
	Everyone bool           `json:"to_everyone,omitempty" jsonschema:"to all live runs of every repository"`
	Person   bool           `json:"to_person,omitempty" jsonschema:"to the person who uses agency"`
	Type     string         `json:"msg_type,omitempty" jsonschema:"lower-case words with dots between them; message unless told"`
	Text     string         `json:"text,omitempty" jsonschema:"what to say"`
	Payload  map[string]any `json:"payload,omitempty" jsonschema:"an object to send instead of a text"`
	ReplyTo  string         `json:"reply_to,omitempty" jsonschema:"the id of the message that this answers"`
}

func (s *Server) addMessages(server *sdk.Server) error {
	type poll struct {
		Seconds int `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the first one; 0 returns at once, at most 600"`
		Limit   int `json:"limit,omitempty" jsonschema:"the oldest so many"`
	}
	type ids struct {
		Messages []string `json:"message_ids" jsonschema:"the ids of messages"`
	}
	return errors.Join(
		add(server, tool{name: "send_message", help: `Send a durable message: it waits in the recipient's inbox until it is acknowledged. Name exactly one recipient. To make an agent act now,
use run_send.`}, s.send),
		add(server, tool{name: "poll_messages", reads: true, help: `What waits in your inbox, oldest first: alerts about your workers (worker.needs_input, worker.stuck, worker.complete, worker.error,
worker.lost), their reports and messages. Sleep here with wait_seconds instead of looking at runs again and again. It comes again until you
call ack_messages.` + untrusted},
			func(ctx context.Context, req *sdk.CallToolRequest, in poll) (any, error) {
				wait, err := duration(in.Seconds, 0)
				if err != nil {
					return nil, err
				}
				defer tell(ctx, req, wait, "waiting for a message")()
				return api.Call(ctx, s.Client, api.PollMessages, api.PollMessagesRequest{Limit: in.Limit, WaitMS: wait.Milliseconds()})
			}),
		add(server, tool{name: "ack_messages", help: "Say that you have dealt with messages, so that they do not come again."},
			func(ctx context.Context, _ *sdk.CallToolRequest, in ids) (any, error) {
				return api.Call(ctx, s.Client, api.AckMessages, api.AckMessagesRequest{Messages: in.Messages})
			}),
	)
}

func (s *Server) send(ctx context.Context, _ *sdk.CallToolRequest, in letter) (any, error) {
	to := agency.Target{Run: in.Run, Tag: in.Tag, Owner: in.Owner, Broadcast: in.Everyone, User: in.Person}
	if in.Repo {
		to.Repo = s.Dir
	}
	if to.Broadcast && !s.AllRepos {
		return nil, agency.Errorf(agency.CodePermissionDenied, "these tools are for one repository, and so are their messages").
			WithHint("to_repository; a person can serve all of them: agency mcp --all-repos")
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

func (s *Server) addWatchdog(server *sdk.Server) error {
	type filter struct {
		Run      string `json:"run,omitempty" jsonschema:"only those of one run"`
		Resolved bool   `json:"include_resolved,omitempty" jsonschema:"also those that are over"`
	}
	type ids struct {
		Alerts []string `json:"alert_ids" jsonschema:"the ids of alerts"`
	}
	type timer struct {
		Run     string `json:"run" jsonschema:"the run to write to"`
		Name    string `json:"name,omitempty" jsonschema:"a name for the timer; that of the run unless told"`
		Message string `json:"message,omitempty" jsonschema:"what to write; check unless told"`
		Seconds int    `json:"interval_seconds,omitempty" jsonschema:"between two messages; 30 unless told"`
	}
	type name struct {
		Name string `json:"name" jsonschema:"the name of the timer"`
	}
	return errors.Join(
		add(server, tool{name: "alerts_list", reads: true, help: "Episodes in which somebody must act on a run, a session or the machine: each is told once and resolved when its reason goes." + untrusted},
			func(ctx context.Context, _ *sdk.CallToolRequest, in filter) (any, error) {
				if in.Run != "" {
					r, err := s.find(ctx, in.Run)
					if err != nil {
						return nil, err
					}
					in.Run = string(r.ID)
				}
				return api.Call(ctx, s.Client, api.ListAlerts, api.ListAlertsRequest{Dir: s.scope(), Run: in.Run, Resolved: in.Resolved})
			}),
		add(server, tool{name: "alerts_ack", help: "Say that you deal with alerts, so that they are not repeated and nobody above you is called."},
			func(ctx context.Context, _ *sdk.CallToolRequest, in ids) (any, error) {
				return api.Call(ctx, s.Client, api.AckAlerts, api.AckAlertRequest{Dir: s.scope(), Alerts: in.Alerts})
			}),
		add(server, tool{name: "watchdog_explain", reads: true, help: "What each rule of the watchdog makes of a run, and when it looks again." + untrusted},
			onRun(s, func(ctx context.Context, run string, _ one) (any, error) {
				resp, err := api.Call(ctx, s.Client, api.ExplainWatchdog, api.ExplainWatchdogRequest{Run: run})
				return map[string]any{
					"run": newRow(&resp.Run), "watched": resp.Watched, "rules": resp.Rules, "alerts": resp.Alerts, "next_at": resp.NextAt,
				}, err
			})),
		add(server, tool{name: "watchdog_start", help: "Have a message written to a run again and again, whenever it is idle: to wake an agent that watches or orchestrates others."},
			onRun(s, func(ctx context.Context, run string, in timer) (any, error) {
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
		add(server, tool{name: "watchdog_stop", help: "End a timer of watchdog_start."},
			func(ctx context.Context, _ *sdk.CallToolRequest, in name) (any, error) {
				if in.Name == "" {
					return nil, agency.Errorf(agency.CodeUsage, "the name of the timer is empty").WithHint("watchdog_status shows them")
				}
				return api.Call(ctx, s.Client, api.StopTimers, api.StopTimersRequest{Dir: s.scope(), Name: in.Name})
			}),
		add(server, tool{name: "watchdog_status", reads: true, help: "When the watchdog last looked, how many alerts are open, and the timers." + untrusted},
			func(ctx context.Context, _ *sdk.CallToolRequest, _ api.Empty) (any, error) {
				return api.Call(ctx, s.Client, api.ListTimers, api.ListTimersRequest{Dir: s.scope()})
			}),
	)
}
