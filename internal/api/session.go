package api

import (
	"encoding/json"
	"time"

	"agency"
)

// Session is how a session stands.
type Session struct {
	ID          agency.SessionID     `json:"id"`
	Name        string               `json:"name"`
	Status      agency.SessionStatus `json:"status"`
	Paused      string               `json:"paused"`     // why nothing new starts; empty while it does
	Cancelling  bool                 `json:"cancelling"` // somebody has cancelled it, and its agents are being ended
	Source      string               `json:"source"`
	SourceFile  string               `json:"source_file"`
	External    bool                 `json:"external"` // somebody else runs its agents and reports them
	Repo        string               `json:"repo"`
	MaxParallel int                  `json:"max_parallel"`
	RetryOf     agency.SessionID     `json:"retry_of"`
	Dir         string               `json:"dir"` // of its status.json and logs
	PlanPath    string               `json:"plan_path"`
	ReportPath  string               `json:"report_path"` // the Markdown report; empty until the session has settled
	StartedAt   time.Time            `json:"started_at"`
	CompletedAt *time.Time           `json:"completed_at"`
	Summary     agency.Counts        `json:"summary"`
	// Waiting counts the agents that wait for a person, whether they run or cannot start.
	Waiting int `json:"waiting"`
}

// Ref is how people call the session.
func (s *Session) Ref() string { return string(s.ID) }

// NeedsPerson says that the session, or one of its agents, goes no further until somebody acts.
func (s *Session) NeedsPerson() bool {
	return !s.Status.Final() && (s.Paused != "" || s.Waiting > 0)
}

// Stopped says that the session is paused, and that nobody paused it who would know.
func (s *Session) Stopped() bool {
	return !s.Status.Final() && s.Paused != "" && s.Paused != agency.PausedByHand
}

// SessionAgent is how one agent of a session stands. What comes after Error is empty for an outside agent.
type SessionAgent struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	PromptPath  string             `json:"prompt_path"`
	Wave        int                `json:"wave"`
	Status      agency.AgentStatus `json:"status"`
	StartedAt   *time.Time         `json:"started_at"`
	CompletedAt *time.Time         `json:"completed_at"`
	ExitCode    *int               `json:"exit_code"`
	PID         *int               `json:"pid"`
	LogFile     string             `json:"log_file"`
	Model       string             `json:"model"`
	Error       string             `json:"error"`

	After     []string     `json:"after"`
	Runner    string       `json:"runner"`
	RunID     agency.RunID `json:"run_id"`     // empty until it starts
	Run       string       `json:"run"`        // how people call the run
	Label     agency.Label `json:"run_status"` // the run's status now; empty when it has none
	Note      string       `json:"note"`       // what it says, asks or waits for
	Branch    string       `json:"branch"`
	Attempts  int          `json:"attempts"`
	NotBefore *time.Time   `json:"not_before"` // the first or next attempt, while one is put off
	// Locked is why it has no attempt although nobody has to act for it: what it comes after, a limit, a pause. Empty when it has one.
	WaitReason string `json:"wait_reason"`
	// NeedsPerson says that it cannot start, or that its run waits, until somebody acts.
	NeedsPerson bool                `json:"needs_person"`
	Result      *agency.AgentResult `json:"result"` // null until it is final and found out, and for one that never ran
}

// Wave is one wave of a session.
type Wave struct {
	Wave   int               `json:"wave"`
	Status agency.WaveStatus `json:"status"`
	Agents []string          `json:"agents"`
}

// SessionRequest names one session: by its id, a unique prefix of it, its name when only one has it, "active" for the one
// that began last and is running, or "latest" for the one that began last. Active and latest are those of the repository of Dir.
type SessionRequest struct {
	Session string `json:"session" jsonschema:"its id, a unique prefix of it, its name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"`
}

// PlanSource is where a plan comes from: one of a path, a text, and agents to fan one prompt out to.
type PlanSource struct {
	Path string `json:"path,omitempty"` // absolute: a YAML file, or a folder of NNN-name.md prompts
	Text string `json:"text,omitempty"` // YAML
	// Agents are runners with how many of each, such as claude_code:3; Prompt or PromptPath is their common task.
	Agents     []string `json:"agents,omitempty"`
	Prompt     string   `json:"prompt,omitempty"`
	PromptPath string   `json:"prompt_path,omitempty"`
	// What follows is laid over what the plan says; empty leaves it.
	Name        string `json:"name,omitempty"`
	Base        string `json:"base,omitempty"`
	MaxParallel int    `json:"max_parallel,omitempty"`
	OnFailure   string `json:"on_failure,omitempty"`
}

// PlanSessionRequest asks what a plan would do.
type PlanSessionRequest struct {
	Plan   PlanSource     `json:"plan"`
	Dir    string         `json:"dir"` // the caller's working directory; the repository is that of it
	Env    agency.Environ `json:"env,omitempty"`
	Config string         `json:"config,omitempty"`
}

// PlanSessionResponse is what a plan would do.
type PlanSessionResponse struct {
	Plan     agency.Plan    `json:"plan"`
	Waves    [][]string     `json:"waves"` // ids
	Agents   []PlannedAgent `json:"agents"`
	Hash     string         `json:"hash"`
	Refused  *Problem       `json:"refused"` // why session.start refuses the plan as things are now; null when it does not
	Warnings []string       `json:"warnings"`
}

// PlannedAgent is how one agent would be started.
type PlannedAgent struct {
	ID      string   `json:"id"`
	Runner  string   `json:"runner"`
	Branch  string   `json:"branch"` // SESSION stands for the id of the session
	Command []string `json:"command"`
}

// StartSessionRequest starts a session.
type StartSessionRequest struct {
	Plan   PlanSource     `json:"plan"`
	Dir    string         `json:"dir"`
	Env    agency.Environ `json:"env,omitempty"` // for the agents, for as long as the session runs
	Config string         `json:"config,omitempty"`
	Source string         `json:"source,omitempty"` // empty is orchestrate
}

// SessionResponse is one session after an operation.
type SessionResponse struct {
	Session  Session  `json:"session"`
	Warnings []string `json:"warnings"`
}

// ShowSessionResponse is everything about one session.
type ShowSessionResponse struct {
	Session Session        `json:"session"`
	Agents  []SessionAgent `json:"agents"`
	Waves   []Wave         `json:"waves"`
	// StatusFile is the session in the form of its status.json.
	StatusFile json.RawMessage `json:"status_file"`
}

// ListSessionsRequest chooses sessions.
type ListSessionsRequest struct {
	Dir   string `json:"dir,omitempty"` // only those of the repository of this directory; empty is every repository
	Live  bool   `json:"live,omitempty"`
	Limit int    `json:"limit,omitempty"` // the newest so many; 0 is all
}

// ListSessionsResponse lists sessions, newest first.
type ListSessionsResponse struct {
	Sessions []Session `json:"sessions"`
}

// ResumeSessionRequest has a paused session go on.
type ResumeSessionRequest struct {
	Session string `json:"session" jsonschema:"its id, a unique prefix of it, its name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"`
	// PlanChanged goes on with the plan as it was at the start although its files have changed since.
	PlanChanged bool `json:"plan_changed,omitempty"`
}

// RetrySessionRequest makes a new session of a settled one, which takes over what is complete.
type RetrySessionRequest struct {
	Session     string         `json:"session" jsonschema:"its id, a unique prefix of it, its name, active (the one that runs) or latest"`
	Dir         string         `json:"dir,omitempty"`
	Failed      bool           `json:"failed,omitempty"` // only what failed and what was cancelled because of it; otherwise everything that is not complete
	PlanChanged bool           `json:"plan_changed,omitempty"`
	Env         agency.Environ `json:"env,omitempty"`
	Config      string         `json:"config,omitempty"`
}

// WaitSessionRequest waits until a session has settled and its report is written or, with Attention, until somebody is needed.
type WaitSessionRequest struct {
	Session   string `json:"session" jsonschema:"its id, a unique prefix of it, its name, active (the one that runs) or latest"`
	Dir       string `json:"dir,omitempty"`
	Attention bool   `json:"attention,omitempty"`
	Paused    bool   `json:"paused,omitempty"`     // return also when it is paused and somebody is needed, which nobody is after a pause by hand
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // 0 is none
}

func (r WaitSessionRequest) time() time.Duration {
	return time.Duration(r.TimeoutMS) * time.Millisecond
}

func (r WaitSessionRequest) after(passed time.Duration) any {
	r.TimeoutMS = left(r.TimeoutMS, passed)
	return r
}

// CreateSessionRequest records a session whose agents an outside executor runs.
type CreateSessionRequest struct {
	Dir        string            `json:"dir"`
	Env        agency.Environ    `json:"env,omitempty"` // of the caller, for its configuration
	Config     string            `json:"config,omitempty"`
	Source     string            `json:"source,omitempty"` // empty is as the file says, or else orchestrate; so is source_file
	SourceFile string            `json:"source_file,omitempty"`
	Name       string            `json:"name,omitempty"`
	Agents     []json.RawMessage `json:"agents,omitempty"` // objects in the form of the status file; only id is needed
	File       json.RawMessage   `json:"file,omitempty"`   // a whole status file in place of agents; null is none
}

// SessionAction is what an outside executor reports.
type SessionAction string

// The actions: on an agent, or, without one, on the session.
const (
	ActionStart    SessionAction = "start"
	ActionComplete SessionAction = "complete"
	ActionFail     SessionAction = "fail"
	ActionCancel   SessionAction = "cancel"
)

// SessionUpdate is one report of an outside executor.
type SessionUpdate struct {
	Agent    string        `json:"agent,omitempty"` // empty is the session itself, for complete and cancel
	Action   SessionAction `json:"action"`
	PID      *int          `json:"pid,omitempty"`       // of start
	ExitCode *int          `json:"exit_code,omitempty"` // of complete and fail; null is 0 and 1
	Error    string        `json:"error,omitempty"`     // of fail and cancel
}

// UpdateSessionRequest changes a session: outside reports, or how many agents of a session of agency's own run at once.
type UpdateSessionRequest struct {
	Session     string          `json:"session" jsonschema:"its id, a unique prefix of it, its name, active (the one that runs) or latest"`
	Dir         string          `json:"dir,omitempty"`
	Updates     []SessionUpdate `json:"updates,omitempty"`
	MaxParallel int             `json:"max_parallel,omitempty"` // 0 leaves it
}

// RemoveSessionsRequest removes the records and status files of settled sessions; their runs stay.
type RemoveSessionsRequest struct {
	Session     string `json:"session,omitempty"` // empty is by age
	Dir         string `json:"dir,omitempty"`
	OlderThanMS int64  `json:"older_than_ms,omitempty"`
	Apply       bool   `json:"apply,omitempty"` // otherwise they are only listed; one that is named is removed either way
}

// RemoveSessionsResponse lists what was removed, or would be.
type RemoveSessionsResponse struct {
	Sessions []Session `json:"sessions"`
	Applied  bool      `json:"applied"`
	Warnings []string  `json:"warnings"`
}

// SessionUpdatesPath is a kept connection for many reports: GET ?session=REF&dir=DIR with Upgrade: agency-updates. The client
// writes lines of SessionUpdate, the daemon answers each, in order, with a line of UpdateReply when it is durable.
const (
	SessionUpdatesPath = "/v1/session.updates"
	UpdatesProtocol    = "agency-updates"
	UpdateLimit        = 64 << 10 // the longest line, in bytes
)

// UpdateReply answers one line of updates.
type UpdateReply struct {
	OK    bool     `json:"ok"`
	Error *Problem `json:"error,omitempty"`
}
