// Package api is the contract between the daemon and its clients: the operations, their requests and responses, the
// envelope and the strict codec, and the client itself.
package api

// Operation is one thing that the daemon does: POST Path with a JSON request, answered by an envelope with a response.
type Operation[Req, Resp any] struct {
	Name string // also the path: /v1/NAME
	Help string
	Kind Kind
}

// Kind says what a client may do about an operation whose answer does not come.
type Kind int

// The kinds of operation.
const (
	Acts  Kind = iota // changes something: never asked twice, because the first may have been carried out
	Reads             // changes nothing and answers soon: asked again, and given up after a while
	Waits             // changes nothing and may take long, as what waits for something, or has git look at files: asked again
)

// Path is where the operation is served.
func (o Operation[Req, Resp]) Path() string { return "/v1/" + o.Name }

// The operations.
var (
	CreateRun       = Operation[CreateRunRequest, CreateRunResponse]{"run.create", "start an agent on a task in its own worktree", Acts}
	ListRuns        = Operation[ListRunsRequest, ListRunsResponse]{"run.list", "list runs with their status", Reads}
	ShowRun         = Operation[RunRequest, ShowRunResponse]{"run.show", "everything about one run", Waits}
	ExplainRun      = Operation[RunRequest, ExplainRunResponse]{"run.explain", "why a run has its status: the rule and every piece of evidence", Reads}
	AnswerRun       = Operation[AnswerRunRequest, AnswerRunResponse]{"run.answer", "answer the permission or question that a run's agent waits for", Acts}
	ShowOutput      = Operation[ShowOutputRequest, ShowOutputResponse]{"run.output", "the end of what a run's agent shows, and what it came to", Reads}
	DiffRun         = Operation[DiffRunRequest, DiffRunResponse]{"run.diff", "what a run changed since it began", Waits}
	SendInput       = Operation[SendInputRequest, SendInputResponse]{"run.send", "type a message into a run's agent", Acts}
	StopRun         = Operation[RunRequest, RunResponse]{"run.stop", "end a run's agent; the worktree stays", Acts}
	ResumeRun       = Operation[ResumeRunRequest, ResumeRunResponse]{"run.resume", "start another attempt of an ended run in the same worktree", Acts}
	RemoveRun       = Operation[RemoveRunRequest, RemoveRunResponse]{"run.remove", "remove an ended run's worktree and session", Acts}
	TakeSnapshot    = Operation[RunRequest, TakeSnapshotResponse]{"snapshot.take", "save everything in a run's worktree that is not ignored", Acts}
	ListSnapshots   = Operation[RunRequest, ListSnapshotsResponse]{"snapshot.list", "what was saved of a run", Reads}
	ShowSnapshot    = Operation[SnapshotRequest, ShowSnapshotResponse]{"snapshot.show", "one snapshot and the files in it", Waits}
	RestoreSnapshot = Operation[RestoreSnapshotRequest, RestoreSnapshotResponse]{"snapshot.restore", "make a branch at a snapshot", Acts}
	CollectRuns     = Operation[CollectRunsRequest, CollectRunsResponse]{"gc", "ended runs that could be removed without losing anything", Acts}
	CheckDatabase   = Operation[Empty, CheckDatabaseResponse]{"db.check", "read the whole database and say what is wrong with it", Waits}
	BackupDatabase  = Operation[BackupDatabaseRequest, BackupDatabaseResponse]{"db.backup", "write a copy of the database", Acts}
	InitRepo        = Operation[InitRepoRequest, InitRepoResponse]{"project.init", "write agency.toml and what belongs to it into a repository", Acts}
	ShowTrust       = Operation[TrustRequest, TrustResponse]{"trust.show", "what a repository wants done in new worktrees, and whether that is trusted", Waits}
	GrantTrust      = Operation[GrantTrustRequest, TrustResponse]{"trust.grant", "trust what was shown", Acts}
	RevokeTrust     = Operation[RevokeTrustRequest, RevokeTrustResponse]{"trust.revoke", "take back everything that was trusted in a repository", Acts}
	ListAlerts      = Operation[ListAlertsRequest, ListAlertsResponse]{"alert.list", "episodes in which somebody must act", Reads}
	AckAlerts       = Operation[AckAlertRequest, AlertsResponse]{"alert.ack", "say that alerts were seen, so that they are not repeated", Acts}
	SnoozeAlerts    = Operation[SnoozeAlertRequest, AlertsResponse]{"alert.snooze", "put alerts off", Acts}
	ExplainWatchdog = Operation[ExplainWatchdogRequest, ExplainWatchdogResponse]{"watchdog.explain", "what the watchdog makes of a run, and why", Reads}
	StartTimer      = Operation[StartTimerRequest, StartTimerResponse]{"timer.start", "write a message to a run again and again, while it is idle", Acts}
	StopTimers      = Operation[StopTimersRequest, StopTimersResponse]{"timer.stop", "end one timer, or all of them", Acts}
	ListTimers      = Operation[ListTimersRequest, ListTimersResponse]{"timer.list", "how the watchdog and its timers stand", Reads}
	SendMessage     = Operation[SendMessageRequest, SendMessageResponse]{"message.send", "send a message to runs or to the person", Acts}
	PollMessages    = Operation[PollMessagesRequest, MessagesResponse]{"message.poll", "what waits for the caller, until it is acknowledged", Waits}
	AckMessages     = Operation[AckMessagesRequest, AckMessagesResponse]{"message.ack", "say that the caller has dealt with messages", Acts}
	ListMessages    = Operation[ListMessagesRequest, MessagesResponse]{"message.list", "look at messages without taking them", Reads}
	ChangeTags      = Operation[ChangeTagsRequest, RunResponse]{"run.tag", "add tags to a run and take others away", Acts}
	FlagRun         = Operation[FlagRunRequest, FlagRunResponse]{"run.flag", "have a run need attention, for a reason, until the flag is taken away", Acts}
	UnflagRun       = Operation[RunRequest, FlagRunResponse]{"run.unflag", "take a run's flag away; a run without one is left as it is", Acts}
	TestNotify      = Operation[TestNotifyRequest, TestNotifyResponse]{"notify.test", "send a test through the channels to people and wait for the outcome", Acts}
	ListChannels    = Operation[Empty, ListChannelsResponse]{"notify.list", "the channels to people, what waits for them, and the dead letters", Reads}
	WaitRuns        = Operation[WaitRunsRequest, WaitRunsResponse]{"run.wait", "wait until runs reach a status", Waits}
	AttachRun       = Operation[RunRequest, AttachRunResponse]{"run.attach", "where a run's terminal is", Reads}
	ListEvents      = Operation[ListEventsRequest, ListEventsResponse]{"event.list", "events of the record in order", Reads}
	Doctor          = Operation[DoctorRequest, DoctorResponse]{"doctor", "what is installed, what is running, what is left over", Waits}
	DaemonStatus    = Operation[Empty, DaemonStatusResponse]{"daemon.status", "facts about the daemon", Reads}
	StopDaemon      = Operation[Empty, DaemonStatusResponse]{"daemon.stop", "end the daemon; runs go on", Reads}
)

// Empty is a request without content.
type Empty struct{}

// The operations on sessions.
var (
	PlanSession    = Operation[PlanSessionRequest, PlanSessionResponse]{"session.plan", "what a session plan would do; starts nothing", Waits}
	StartSession   = Operation[StartSessionRequest, SessionResponse]{"session.start", "run a plan of dependent agents", Acts}
	ListSessions   = Operation[ListSessionsRequest, ListSessionsResponse]{"session.list", "list sessions", Reads}
	ShowSession    = Operation[SessionRequest, ShowSessionResponse]{"session.show", "everything about one session", Reads}
	PauseSession   = Operation[SessionRequest, SessionResponse]{"session.pause", "start no more agents of a session", Acts}
	ResumeSession  = Operation[ResumeSessionRequest, SessionResponse]{"session.resume", "have a paused session go on", Acts}
	CancelSession  = Operation[SessionRequest, SessionResponse]{"session.cancel", "end all agents of a session; their worktrees stay", Acts}
	RetrySession   = Operation[RetrySessionRequest, SessionResponse]{"session.retry", "run again what a settled session left undone, in a new session", Acts}
	WaitSession    = Operation[WaitSessionRequest, ShowSessionResponse]{"session.wait", "wait until a session has settled", Waits}
	CreateSession  = Operation[CreateSessionRequest, SessionResponse]{"session.create", "record a session whose agents somebody else runs", Acts}
	UpdateSession  = Operation[UpdateSessionRequest, SessionResponse]{"session.update", "report what became of a session's agents", Acts}
	RemoveSessions = Operation[RemoveSessionsRequest, RemoveSessionsResponse]{"session.remove", "remove the records of settled sessions", Acts}
)
