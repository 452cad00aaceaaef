package api

import (
	"encoding/json"
	"time"

	"agency"
)

// Session describes the state of a session.
type Session struct {
	ID          agency.SessionID     `json:"id"`
	Name        string               `json:"name"`
	Status      agency.SessionStatus `json:"status"`
	Paused      string               `json:"paused"`     // why no more agents start; empty when not paused
	Cancelling  bool                 `json:"cancelling"` // the session was cancelled, and its agents are being ended
	Source      string               `json:"source"`
	SourceFile  string               `json:"source_file"`
	External    bool                 `json:"external"` // another program runs its agents and reports on them
	Repo        string               `json:"repo"`
	MaxParallel int                  `json:"max_parallel"`
	RetryOf     agency.SessionID     `json:"retry_of"`
	Dir         string               `json:"dir"` // the folder of its status.json and logs
	PlanPath    string               `json:"plan_path"`
	ReportPath  string               `json:"report_path"` // the Markdown report; empty until the session has settled
	StartedAt   time.Time            `json:"started_at"`
	CompletedAt *time.Time           `json:"completed_at"`
	Summary     agency.Counts        `json:"summary"`
	// Waiting counts the agents that wait for the user, whether they run or cannot start.
	Waiting int `json:"waiting"`
}

// Ref returns the name of the session for users.
func (s *Session) Ref() string { return string(s.ID) }

// NeedsUser reports whether the session, or one of its agents, can continue only after the user
// or an agent acts.
func (s *Session) NeedsUser() bool {
	return !s.Status.Final() && (s.Paused != "" || s.Waiting > 0)
}

// Stopped reports whether the session is paused, and not by the user or an agent.
func (s *Session) Stopped() bool {
	return !s.Status.Final() && s.Paused != "" && s.Paused != agency.PausedByHand
}

// SessionAgent describes the state of one agent of a session. The fields after Error are empty for
// an external agent.
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
	Run       string       `json:"run"`        // the name of the run for users
	Label     agency.Label `json:"run_status"` // the run's status now; empty when it has none
	Note      string       `json:"note"`       // what the agent reports, asks or waits for
	Branch    string       `json:"branch"`
	Attempts  int          `json:"attempts"`
	NotBefore *time.Time   `json:"not_before"` // when the first or next attempt may start, if that is postponed
	// WaitReason is why it has no attempt although no action is needed: an agent that it comes
	// after, a limit, a pause. Empty when it has one.
	WaitReason string `json:"wait_reason"`
	// NeedsUser is true when it cannot start, or its run waits, until the user or an agent acts.
	NeedsUser bool                `json:"needs_user"`
	Result    *agency.AgentResult `json:"result"` // null until it is final and the result is known, and for an agent that never ran
	Landed    *AgentLanding       `json:"landed"` // null when its work neither landed nor is to land
}

// AgentLanding is where the work of an agent has landed, or why it has not.
type AgentLanding struct {
	// State is landed, undone (it was taken back), part (it lands with agents that started from it),
	// nothing (there is nothing to land) or refused; or else the state of its entry in the landing
	// queue, such as queued or held.
	State     string           `json:"state"`
	Into      string           `json:"into"`       // the branch; empty when no landing names one
	LandingID agency.LandingID `json:"landing_id"` // empty unless it has landed or was taken back
	Why       string           `json:"why"`        // of a refusal, or of the queue; of a part the agents; else empty
}

// Wave is one wave of a session.
type Wave struct {
	Wave   int               `json:"wave"`
	Status agency.WaveStatus `json:"status"`
	Agents []string          `json:"agents"`
}

// SessionRequest names one session: by its id, a unique prefix of it, its name when only one has
// it, "active" for the running session that began last, or "latest" for the session that began
// last. Active and latest refer to the repository of Dir.
type SessionRequest struct {
	Session string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"`
}

// PlanSource is the source of a plan: a path, a text, or agents that all get the same prompt.
type PlanSource struct {
	Path string `json:"path,omitempty"` // absolute: a YAML file, or a folder of NNN-name.md prompts
	Text string `json:"text,omitempty"` // YAML
	// Agents are runners with their number, such as claude_code:3; prompt or prompt_path is their
	// common task.
	Agents     []string `json:"agents,omitempty"`
	Prompt     string   `json:"prompt,omitempty"`
	PromptPath string   `json:"prompt_path,omitempty"`
	// The following fields override the plan; empty ones do not.
	Name        string `json:"name,omitempty"`
	Base        string `json:"base,omitempty"`
	MaxParallel int    `json:"max_parallel,omitempty"`
	OnFailure   string `json:"on_failure,omitempty"`
	Land        string `json:"land,omitempty"` // queue, merge or none, for every agent
}

// PlanSessionRequest asks what a plan would do.
type PlanSessionRequest struct {
	Plan   PlanSource     `json:"plan"`
	Dir    string         `json:"dir"` // the caller's working directory, which also selects the repository
	Env    agency.Environ `json:"env,omitempty"`
	Config string         `json:"config,omitempty"`
}

// PlanSessionResponse describes what a plan would do.
type PlanSessionResponse struct {
	Plan     agency.Plan    `json:"plan"`
	Waves    [][]string     `json:"waves"` // ids
	Agents   []PlannedAgent `json:"agents"`
	Hash     string         `json:"hash"`
	Refused  *Problem       `json:"refused"` // why session.start would refuse the plan now; null when it would not
	Warnings []string       `json:"warnings"`
}

// PlannedAgent describes how one agent would be started.
type PlannedAgent struct {
	ID      string   `json:"id"`
	Runner  string   `json:"runner"`
	Branch  string   `json:"branch"` // SESSION is a placeholder for the id of the session
	Command []string `json:"command"`
}

// StartSessionRequest starts a session.
type StartSessionRequest struct {
	Plan   PlanSource     `json:"plan"`
	Dir    string         `json:"dir"`
	Env    agency.Environ `json:"env,omitempty"` // for the agents, as long as the session runs
	Config string         `json:"config,omitempty"`
	Source string         `json:"source,omitempty"` // empty means orchestrate
}

// SessionResponse holds one session after an operation.
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

// ListSessionsRequest selects sessions.
type ListSessionsRequest struct {
	Dir   string `json:"dir,omitempty"` // only sessions of the repository of this directory; empty means all repositories
	Live  bool   `json:"live,omitempty"`
	Limit int    `json:"limit,omitempty"` // how many of the newest; 0 means all
}

// ListSessionsResponse lists sessions, newest first.
type ListSessionsResponse struct {
	Sessions []Session `json:"sessions"`
}

// ResumeSessionRequest continues a paused session.
type ResumeSessionRequest struct {
	Session string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"`
	// PlanChanged continues with the plan as it was at the start, even if its files have changed
	// since.
	PlanChanged bool `json:"plan_changed,omitempty"`
}

// RetrySessionRequest makes a new session from a settled one. Complete agents are taken over.
type RetrySessionRequest struct {
	Session     string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir         string `json:"dir,omitempty"`
	Failed      bool   `json:"failed,omitempty"` // only agents that failed, and those cancelled because of them; otherwise all that are not complete
	PlanChanged bool   `json:"plan_changed,omitempty"`
	// NewPlan reads the plan's files again. What is complete and unchanged, with everything that it
	// comes after, is taken over; the rest runs by the new plan.
	NewPlan bool           `json:"new_plan,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"` // start nothing
	Env     agency.Environ `json:"env,omitempty"`
	Config  string         `json:"config,omitempty"`
}

// RetrySessionResponse holds the new session; with dry_run the settled one.
type RetrySessionResponse struct {
	Session    Session         `json:"session"`
	Warnings   []string        `json:"warnings"`
	Difference *PlanDifference `json:"difference"` // null without new_plan
}

// PlanDifference describes what a retry by a new plan does.
type PlanDifference struct {
	Plan    string              `json:"plan"`    // the path of the plan
	Changes []agency.PlanChange `json:"changes"` // in the order of the new plan
	Kept    []string            `json:"kept"`    // ids of complete agents that are taken over
	Runs    []string            `json:"runs"`    // ids of the others
}

// WaitSessionRequest waits until a session has settled and its report is written or, with
// Attention, until the user or an agent must act.
type WaitSessionRequest struct {
	Session   string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir       string `json:"dir,omitempty"`
	Attention bool   `json:"attention,omitempty"`
	Paused    bool   `json:"paused,omitempty"`     // also return when the session is paused and an action is needed, which is not the case after a pause by hand
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // 0 means no limit
}

func (r WaitSessionRequest) time() time.Duration {
	return time.Duration(r.TimeoutMS) * time.Millisecond
}

func (r WaitSessionRequest) after(passed time.Duration) any {
	r.TimeoutMS = left(r.TimeoutMS, passed)
	return r
}

// CreateSessionRequest records a session whose agents another program runs.
type CreateSessionRequest struct {
	Dir        string            `json:"dir"`
	Env        agency.Environ    `json:"env,omitempty"` // of the caller, for its configuration
	Config     string            `json:"config,omitempty"`
	Source     string            `json:"source,omitempty"` // empty means as in the file, or else orchestrate; the same holds for source_file
	SourceFile string            `json:"source_file,omitempty"`
	Name       string            `json:"name,omitempty"`
	Agents     []json.RawMessage `json:"agents,omitempty"` // objects in the form of the status file; only id is required
	File       json.RawMessage   `json:"file,omitempty"`   // a whole status file instead of agents; null means none
}

// SessionAction is a report of the program that runs the agents.
type SessionAction string

// The actions: on an agent or, without one, on the session.
const (
	ActionStart    SessionAction = "start"
	ActionComplete SessionAction = "complete"
	ActionFail     SessionAction = "fail"
	ActionCancel   SessionAction = "cancel"
)

// SessionUpdate is one report of the program that runs the agents.
type SessionUpdate struct {
	Agent    string        `json:"agent,omitempty"` // empty means the session itself, for complete and cancel
	Action   SessionAction `json:"action"`
	PID      *int          `json:"pid,omitempty"`       // for start
	ExitCode *int          `json:"exit_code,omitempty"` // for complete and fail; null means 0 and 1
	Error    string        `json:"error,omitempty"`     // for fail and cancel
}

// UpdateSessionRequest changes a session: reports of another program, or how many agents of
// agency's own session run at once.
type UpdateSessionRequest struct {
	Session     string          `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir         string          `json:"dir,omitempty"`
	Updates     []SessionUpdate `json:"updates,omitempty"`
	MaxParallel int             `json:"max_parallel,omitempty"` // 0 leaves it as it is
}

// RemoveSessionsRequest removes the records and status files of settled sessions; their runs stay.
type RemoveSessionsRequest struct {
	Session     string `json:"session,omitempty"` // empty selects by age
	Dir         string `json:"dir,omitempty"`
	OlderThanMS int64  `json:"older_than_ms,omitempty"`
	Apply       bool   `json:"apply,omitempty"` // remove them, not only list them; a named session is removed either way
}

// RemoveSessionsResponse lists the sessions that were removed, or would be.
type RemoveSessionsResponse struct {
	Sessions []Session `json:"sessions"`
	Applied  bool      `json:"applied"`
	Warnings []string  `json:"warnings"`
}

// UpdateLimit is the longest line of session.updates, in bytes. The client writes lines of
// SessionUpdate; the daemon answers each with a line of UpdateReply.
const UpdateLimit = 64 << 10

// UpdateReply answers one line of updates.
type UpdateReply struct {
	OK    bool     `json:"ok"`              // the report is durable
	Error *Problem `json:"error,omitempty"` // why it was refused
}
