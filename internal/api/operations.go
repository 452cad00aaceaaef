// Package api is the contract between the daemon and its clients: the operations, their requests and responses, the
// envelope and the strict codec, and the client itself.
package api

import (
	"time"

	"agency"
)

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

// The streams, the wrapper's connection and a question about nothing, which are no operations.
const (
	AlivePath   = "/v1/alive"   // GET: an answer without data, as soon as the daemon takes requests
	EventsPath  = "/v1/events"  // GET ?since=SEQ&run=REF: server-sent events; Last-Event-ID wins over since
	LogsPath    = "/v1/logs"    // GET ?run=REF&stream=&attempt=&since=&offset=&follow=: bytes; offset wins over since
	WrapperPath = "/v1/wrapper" // GET with Upgrade: agency-wrapper
)

// The headers by which a request from within a run proves that it is: what the wrapper gave the runner in AGENCY_RUN_ID,
// AGENCY_ATTEMPT and AGENCY_TOKEN. Without them a request is the person's.
const (
	RunHeader     = "Agency-Run"
	AttemptHeader = "Agency-Attempt"
	TokenHeader   = "Agency-Token"
	// ToolsHeader is on what the tools of an agent ask, whether they belong to a run or not.
	ToolsHeader = "Agency-Tools"
)

// VersionHeader carries the version of the program on each request and response.
const VersionHeader = "Agency-Version"

// StreamRunHeader is the id of the run that a stream is of. Who asks the next daemon to go on names the run by it: a part of a name
// can mean another run by then.
const StreamRunHeader = "Agency-Stream-Run"

// What a log's bytes are: the attempt, and the place of the first one in the log.
const (
	LogAttemptHeader = "Agency-Log-Attempt"
	LogOffsetHeader  = "Agency-Log-Offset"
)

// Empty is a request without content.
type Empty struct{}

// RunRequest names one run: by name, handle, id, or a unique prefix of four or more characters of one of these.
type RunRequest struct {
	Run string `json:"run"`
}

// CreateRunRequest asks for a run.
type CreateRunRequest struct {
	Spec   agency.Spec    `json:"spec"`
	Dir    string         `json:"dir"`    // the caller's working directory
	Env    agency.Environ `json:"env"`    // the caller's environment, for the runner
	Config string         `json:"config"` // the caller's configuration file; empty for the default one
}

// CreateRunResponse is the new run. Warnings say what its worktree did not get that the repository wants it to have.
type CreateRunResponse struct {
	Run      Run      `json:"run"`
	Warnings []string `json:"warnings"`
}

// RunResponse is one run after an operation.
type RunResponse struct {
	Run Run `json:"run"`
}

// ListRunsRequest chooses runs.
type ListRunsRequest struct {
	Dir     string   `json:"dir"` // only runs of the repository of this directory; empty is every repository
	Run     string   `json:"run"` // only this one; empty is all
	Removed bool     `json:"removed"`
	Status  []string `json:"status"` // only these; empty is all
	Tag     string   `json:"tag"`
}

// ListRunsResponse holds runs, newest last.
type ListRunsResponse struct {
	Runs []Run `json:"runs"`
}

// SendInputRequest types Text into a run's agent and presses Enter.
type SendInputRequest struct {
	Run      string `json:"run"`
	Text     string `json:"text"`
	PromptID string `json:"prompt_id"` // refused when the agent does not wait for this; empty is not looked at
}

// SendInputResponse says how far the text got.
type SendInputResponse struct {
	RunID     agency.RunID `json:"run_id"`
	Delivered bool         `json:"delivered"` // it was typed
	Confirmed bool         `json:"confirmed"` // the agent was seen to take it
	Effect    string       `json:"effect"`    // prompt, turn, read or ended if it was; else composer, output or none
	Composer  string       `json:"composer"`  // with composer: what stands in the agent's input box
}

// ResumeRunRequest starts another attempt of a run.
type ResumeRunRequest struct {
	Run     string         `json:"run"`
	Prompt  string         `json:"prompt"`   // a new task; empty keeps the old one
	Fresh   bool           `json:"fresh"`    // a new conversation; what is in the worktree is saved first
	Restart bool           `json:"restart"`  // stop an attempt that lives
	Force   bool           `json:"force"`    // although the runner's configuration changed
	NoSetup bool           `json:"no_setup"` // although the repository's setup never succeeded
	Set     []string       `json:"set"`      // NAME=value for the runner, over the caller's environment; what the first start was given is not kept
	Env     agency.Environ `json:"env"`      // the caller's environment, for the runner
	Config  string         `json:"config"`   // the caller's configuration file; empty for the default one
}

// ResumeRunResponse is the run with its new attempt. Continued says that the agent goes on with the conversation of the
// attempt before; Note says why not.
type ResumeRunResponse struct {
	Run       Run           `json:"run"`
	Continued bool          `json:"continued"`
	Note      string        `json:"note"`
	Snapshot  *agency.Saved `json:"snapshot"`
	Warnings  []string      `json:"warnings"` // what the worktree did not get that the repository wants it to have
}

// RemoveRunRequest removes a run.
type RemoveRunRequest struct {
	Run          string `json:"run"`
	Force        bool   `json:"force"` // also when work is lost that cannot be saved
	DeleteBranch bool   `json:"delete_branch"`
}

// RemoveRunResponse says what is gone and what was kept.
type RemoveRunResponse struct {
	ID        agency.RunID  `json:"id"`
	State     agency.State  `json:"state"`
	Removed   bool          `json:"removed"`
	RemovedAt time.Time     `json:"removed_at"`
	Snapshot  *agency.Saved `json:"snapshot"`
	Branch    string        `json:"branch"` // empty when it was deleted
	Warnings  []string      `json:"warnings"`
}

// FlagRunRequest flags a run. It takes the place of a flag with another reason.
type FlagRunRequest struct {
	Run    string `json:"run"`
	Reason string `json:"reason"` // at most 1000 characters
}

// FlagRunResponse is a run after its flag was set or taken away.
type FlagRunResponse struct {
	Run Run          `json:"run"`
	Was *agency.Flag `json:"was"` // the flag that it had before; null when it had none
}

// WaitRunsRequest waits until every run has one of the statuses in For, or is settled when For is empty.
type WaitRunsRequest struct {
	Runs      []string `json:"runs"`
	For       []string `json:"for"`
	TimeoutMS int64    `json:"timeout_ms"` // 0 is no limit
}

func (r WaitRunsRequest) time() time.Duration { return time.Duration(r.TimeoutMS) * time.Millisecond }

func (r WaitRunsRequest) after(passed time.Duration) any {
	r.TimeoutMS = left(r.TimeoutMS, passed)
	return r
}

// WaitRunsResponse holds the runs as they were when the wait ended.
type WaitRunsResponse struct {
	Runs     []Run `json:"runs"`
	TimedOut bool  `json:"timed_out"`
}

// AttachRunResponse says where a run's terminal is. The client makes the command that shows it, so that nothing that a daemon
// answers is run as a command.
type AttachRunResponse struct {
	RunID  agency.RunID `json:"run_id"`      // its session is called agency_ and this
	Socket string       `json:"tmux_socket"` // of the tmux server that holds the session, absolute
}

// ListEventsRequest asks for events after Since, oldest first.
type ListEventsRequest struct {
	Since int64  `json:"since"`
	Run   string `json:"run"`
	Limit int    `json:"limit"` // 0 is 1000
}

// ListEventsResponse holds events; LastSeq is the newest in the record, whether it is among them or not.
type ListEventsResponse struct {
	Events  []agency.Event `json:"events"`
	LastSeq int64          `json:"last_seq"`
}

// DoctorRequest says where the caller stands and which environment its runners would get.
type DoctorRequest struct {
	Dir    string         `json:"dir"`
	Env    agency.Environ `json:"env"`
	Config string         `json:"config"`
}

// DoctorResponse is a list of findings.
type DoctorResponse struct {
	Checks []Check `json:"checks"`
}

// Check is one finding of the doctor. Level is ok, note, warning or error; Fix is a command that can be pasted.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

// DaemonStatusResponse is what the daemon says of itself.
type DaemonStatusResponse struct {
	PID       int          `json:"pid"`
	Version   string       `json:"version"`
	StartedAt time.Time    `json:"started_at"`
	Socket    string       `json:"socket"`
	Home      string       `json:"home"`
	Log       string       `json:"log"`
	LiveRuns  int          `json:"live_runs"`
	LastSeq   int64        `json:"last_seq"`
	Config    DaemonConfig `json:"config"`
}

// DaemonConfig is the configuration that the daemon goes by. It takes over a changed file by itself.
type DaemonConfig struct {
	Path         string    `json:"path"`
	ReadAt       time.Time `json:"read_at"`
	Problem      string    `json:"problem"`       // why the file as it is now is not used; empty when it is
	NeedsRestart []string  `json:"needs_restart"` // keys that changed and hold only when the daemon starts again
}
