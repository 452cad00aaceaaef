package page

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
)

// FollowAgain is how long to wait before following the events of a daemon that cannot be reached.
const FollowAgain = 2 * time.Second

// Daemon has the operations of the api that the dashboard uses, each as a function.
type Daemon struct {
	ListRuns        func(context.Context, api.ListRunsRequest) (api.ListRunsResponse, error)
	ShowScreen      func(context.Context, api.ShowScreenRequest) (api.ShowScreenResponse, error)
	AnswerRun       func(context.Context, api.AnswerRunRequest) (api.AnswerRunResponse, error)
	ShowOutput      func(context.Context, api.ShowOutputRequest) (api.ShowOutputResponse, error)
	DiffRun         func(context.Context, api.DiffRunRequest) (api.DiffRunResponse, error)
	ExplainRun      func(context.Context, api.RunRequest) (api.ExplainRunResponse, error)
	SendInput       func(context.Context, api.SendInputRequest) (api.SendInputResponse, error)
	CreateRun       func(context.Context, api.CreateRunRequest) (api.CreateRunResponse, error)
	InterruptRun    func(context.Context, api.RunRequest) (api.InterruptRunResponse, error)
	StopRun         func(context.Context, api.RunRequest) (api.StopRunResponse, error)
	ResumeRun       func(context.Context, api.ResumeRunRequest) (api.ResumeRunResponse, error)
	RemoveRun       func(context.Context, api.RemoveRunRequest) (api.RemoveRunResponse, error)
	TakeSnapshot    func(context.Context, api.RunRequest) (api.TakeSnapshotResponse, error)
	VerifyRun       func(context.Context, api.VerifyRunRequest) (api.VerifyRunResponse, error)
	MergeRun        func(context.Context, api.MergeRunRequest) (api.MergeRunResponse, error)
	AddToQueue      func(context.Context, api.AddToQueueRequest) (api.QueueResponse, error)
	ReviewRun       func(context.Context, api.ReviewRunRequest) (api.ReviewRunResponse, error)
	AddComments     func(context.Context, api.AddCommentsRequest) (api.CommentsResponse, error)
	DiscardComments func(context.Context, api.DiscardCommentsRequest) (api.CommentsResponse, error)
	SendComments    func(context.Context, api.SendCommentsRequest) (api.SendCommentsResponse, error)
	MarkReviewed    func(context.Context, api.MarkReviewedRequest) (api.RunResponse, error)
	ListEvents      func(context.Context, api.ListEventsRequest) (api.ListEventsResponse, error)
	ListMessages    func(context.Context, api.ListMessagesRequest) (api.MessagesResponse, error)
	AckMessages     func(context.Context, api.AckMessagesRequest) (api.AckMessagesResponse, error)
	ListAlerts      func(context.Context, api.ListAlertsRequest) (api.ListAlertsResponse, error)
	AckAlerts       func(context.Context, api.AckAlertRequest) (api.AlertsResponse, error)
	SnoozeAlerts    func(context.Context, api.SnoozeAlertRequest) (api.AlertsResponse, error)
	ListSessions    func(context.Context, api.ListSessionsRequest) (api.ListSessionsResponse, error)
	ShowSession     func(context.Context, api.SessionRequest) (api.ShowSessionResponse, error)
	PlanSession     func(context.Context, api.PlanSessionRequest) (api.PlanSessionResponse, error)
	StartSession    func(context.Context, api.StartSessionRequest) (api.SessionResponse, error)
	PauseSession    func(context.Context, api.SessionRequest) (api.SessionResponse, error)
	ResumeSession   func(context.Context, api.ResumeSessionRequest) (api.SessionResponse, error)
	CancelSession   func(context.Context, api.SessionRequest) (api.SessionResponse, error)
	RetrySession    func(context.Context, api.RetrySessionRequest) (api.RetrySessionResponse, error)
	ListRefs        func(context.Context, api.RefsRequest) (api.RefsResponse, error)
	ListQueue       func(context.Context, api.ListQueueRequest) (api.QueueResponse, error)
	ChangeQueue     func(context.Context, api.ChangeQueueRequest) (api.QueueResponse, error)
	PauseQueue      func(context.Context, api.PauseQueueRequest) (api.QueueResponse, error)
	// Follow calls changed at the start and after every event. It calls again when another daemon
	// answers.
	Follow func(ctx context.Context, changed func(Change), again func()) error
}

// QueueOf returns the queue of an entry; the zero queue if the response has none.
func QueueOf(resp *api.QueueResponse, e *agency.QueueEntry) agency.Queue {
	for _, q := range resp.Queues {
		if q.Repo == e.Repo && q.Target == e.Target {
			return q
		}
	}
	return agency.Queue{}
}

// PauseQueueOf pauses the landing queue of an entry or, with resume, continues it.
func (d *Daemon) PauseQueueOf(ctx context.Context, e *agency.QueueEntry, resume bool, env []string, config string) error {
	resp, err := d.ListRuns(ctx, api.ListRunsRequest{RunIDs: []agency.RunID{e.RunID}})
	switch {
	case err != nil:
		return err
	case len(resp.Runs) == 0:
		return agency.Errorf(agency.CodeRunNotFound, "the run %s was removed", e.Run).WithHint("agency queue ls")
	}
	_, err = d.PauseQueue(ctx, api.PauseQueueRequest{Dir: resp.Runs[0].Repo, Into: e.Target, Resume: resume, Env: env, Config: config})
	return err
}

// Change is what an event of the daemon may have changed.
type Change struct {
	Run agency.RunID // empty for an event about no run, such as a message to the user
	All bool         // anything may have changed
}

// DaemonOf returns the operations of a client.
func DaemonOf(c *api.Client) Daemon {
	return Daemon{
		ListRuns: asks(c, api.ListRuns), ShowScreen: asks(c, api.ShowScreen), AnswerRun: asks(c, api.AnswerRun),
		ShowOutput: asks(c, api.ShowOutput), DiffRun: asks(c, api.DiffRun), ExplainRun: asks(c, api.ExplainRun), SendInput: asks(c, api.SendInput),
		CreateRun: asks(c, api.CreateRun), InterruptRun: asks(c, api.InterruptRun), StopRun: asks(c, api.StopRun), ResumeRun: asks(c, api.ResumeRun), RemoveRun: asks(c, api.RemoveRun),
		TakeSnapshot: asks(c, api.TakeSnapshot), VerifyRun: asks(c, api.VerifyRun), MergeRun: asks(c, api.MergeRun), AddToQueue: asks(c, api.AddToQueue),
		ReviewRun: asks(c, api.ReviewRun), AddComments: asks(c, api.AddComments), DiscardComments: asks(c, api.DiscardComments), SendComments: asks(c, api.SendComments), MarkReviewed: asks(c, api.MarkReviewed),
		ListEvents: asks(c, api.ListEvents), ListMessages: asks(c, api.ListMessages), AckMessages: asks(c, api.AckMessages),
		ListAlerts: asks(c, api.ListAlerts), AckAlerts: asks(c, api.AckAlerts), SnoozeAlerts: asks(c, api.SnoozeAlerts),
		ListSessions: asks(c, api.ListSessions), ShowSession: asks(c, api.ShowSession),
		PlanSession: asks(c, api.PlanSession), StartSession: asks(c, api.StartSession), PauseSession: asks(c, api.PauseSession),
		ResumeSession: asks(c, api.ResumeSession), CancelSession: asks(c, api.CancelSession), RetrySession: asks(c, api.RetrySession),
		ListRefs: asks(c, api.ListRefs), ListQueue: asks(c, api.ListQueue), ChangeQueue: asks(c, api.ChangeQueue), PauseQueue: asks(c, api.PauseQueue),
		Follow: func(ctx context.Context, changed func(Change), again func()) error {
			return follow(ctx, c, changed, again)
		},
	}
}

// asks returns an operation of a client.
func asks[Req, Resp any](c *api.Client, op api.Operation[Req, Resp]) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (Resp, error) { return api.Call(ctx, c, op, req) }
}

// follow is Daemon.Follow for a client.
func follow(ctx context.Context, c *api.Client, changed func(Change), again func()) error {
	last, err := api.Call(ctx, c, api.ListEvents, api.ListEventsRequest{Limit: 1})
	if err != nil {
		return err
	}
	changed(Change{All: true})
	return c.Follow(ctx, last.LastSeq, "", again, func(e agency.Event) error {
		changed(Change{Run: e.RunID})
		return nil
	})
}
