package tui

import (
	"context"

	"agency/internal/api"
)

// Daemon is what the dashboard asks of the daemon: the operations of the api, each a function.
type Daemon struct {
	ListRuns     func(context.Context, api.ListRunsRequest) (api.ListRunsResponse, error)
	ShowScreen   func(context.Context, api.ShowScreenRequest) (api.ShowScreenResponse, error)
	AnswerRun    func(context.Context, api.AnswerRunRequest) (api.AnswerRunResponse, error)
	ShowOutput   func(context.Context, api.ShowOutputRequest) (api.ShowOutputResponse, error)
	DiffRun      func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error)
	ExplainRun   func(context.Context, api.RunRequest) (api.ExplainRunResponse, error)
	SendInput    func(context.Context, api.SendInputRequest) (api.SendInputResponse, error)
	StopRun      func(context.Context, api.RunRequest) (api.StopRunResponse, error)
	ResumeRun    func(context.Context, api.ResumeRunRequest) (api.ResumeRunResponse, error)
	RemoveRun    func(context.Context, api.RemoveRunRequest) (api.RemoveRunResponse, error)
	TakeSnapshot func(context.Context, api.RunRequest) (api.TakeSnapshotResponse, error)
	// Follow calls changed after every event, and again when another daemon answers.
	Follow func(ctx context.Context, changed, again func()) error
}

// DaemonOf returns the operations by a client.
func DaemonOf(c *api.Client) Daemon {
	return Daemon{
		ListRuns: asks(c, api.ListRuns), ShowScreen: asks(c, api.ShowScreen), AnswerRun: asks(c, api.AnswerRun),
		ShowOutput: asks(c, api.ShowOutput), DiffRun: asks(c, api.DiffRun), ExplainRun: asks(c, api.ExplainRun), SendInput: asks(c, api.SendInput),
		StopRun: asks(c, api.StopRun), ResumeRun: asks(c, api.ResumeRun), RemoveRun: asks(c, api.RemoveRun), TakeSnapshot: asks(c, api.TakeSnapshot),
		Follow: func(ctx context.Context, changed, again func()) error {
			return follow(ctx, c, changed, again)
		},
	}
}

func asks[Req, Resp any](c *api.Client, op api.Operation[Req, Resp]) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (Resp, error) { return api.Call(ctx, c, op, req) }
}
