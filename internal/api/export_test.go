package api

import (
	"context"
	"net"
	"net/http"
	"reflect"
)

// DialWith has a client that was just made connect by other means than its socket.
func (c *Client) DialWith(dial func() (net.Conn, error)) {
	c.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
}

// Description is an operation without its types, for documents and tests.
type Description struct {
	Name, Help        string
	Request, Response reflect.Type
}

func describe[Req, Resp any](o Operation[Req, Resp]) Description {
	return Description{o.Name, o.Help, reflect.TypeFor[Req](), reflect.TypeFor[Resp]()}
}

// Operations is the table of all operations.
func Operations() []Description {
	return []Description{
		describe(CreateRun), describe(ListRuns), describe(ShowRun), describe(ExplainRun), describe(AnswerRun), describe(ShowOutput), describe(DiffRun), describe(SendInput), describe(StopRun), describe(ResumeRun),
		describe(RemoveRun), describe(TakeSnapshot), describe(ListSnapshots), describe(ShowSnapshot), describe(RestoreSnapshot),
		describe(CollectRuns), describe(CheckDatabase), describe(BackupDatabase), describe(InitRepo), describe(ShowTrust),
		describe(GrantTrust), describe(RevokeTrust), describe(ListAlerts), describe(AckAlerts),
		describe(SnoozeAlerts), describe(ExplainWatchdog), describe(StartTimer), describe(StopTimers), describe(ListTimers), describe(SendMessage), describe(PollMessages), describe(AckMessages),
		describe(ListMessages), describe(ChangeTags), describe(FlagRun), describe(UnflagRun), describe(TestNotify), describe(ListChannels), describe(WaitRuns), describe(AttachRun), describe(ListEvents), describe(Doctor),
		describe(DaemonStatus), describe(StopDaemon),
		describe(PlanSession), describe(StartSession), describe(PauseSession), describe(ResumeSession), describe(CancelSession), describe(RetrySession), describe(WaitSession),
		describe(CreateSession), describe(UpdateSession), describe(ListSessions), describe(ShowSession), describe(RemoveSessions),
	}
}
