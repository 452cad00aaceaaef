package api

import (
	"encoding/json"
	"time"

	"agency"
)

// Session describes the state of a session.
type Session struct {
	ID          agency.SessionID     `json:"id"`           // the second of its start in UTC and eight hex digits, such as 20260201-143022-abc12345
	Name        string               `json:"name"`         // of the plan, or from the program that reports on it; may be empty
	Status      agency.SessionStatus `json:"status"`       // its state
	Paused      string               `json:"paused"`       // why no more agents start; empty when not paused
	Cancelling  bool                 `json:"cancelling"`   // the session was cancelled, and its agents are being ended
	Source      string               `json:"source"`       // what runs it: orchestrate, execute-phase or run-prompt
	SourceFile  string               `json:"source_file"`  // the plan, relative to the repository when it is inside it; empty when the plan came from flags
	External    bool                 `json:"external"`     // another program runs its agents and reports on them
	Repo        string               `json:"repo"`         // the root of its repository
	MaxParallel int                  `json:"max_parallel"` // how many agents may run at once; 0 when another program runs them
	RetryOf     agency.SessionID     `json:"retry_of"`     // the session that this one retries; empty for none
	Dir         string               `json:"dir"`          // the folder of its status.json and logs
	PlanPath    string               `json:"plan_path"`    // the absolute path of the file or folder that the plan was read from; empty for none
	ReportPath  string               `json:"report_path"`  // the Markdown report; empty until the session has settled
	StartedAt   time.Time            `json:"started_at"`   // when it began
	CompletedAt *time.Time           `json:"completed_at"` // when its last agent ended; null before
	Summary     agency.Counts        `json:"summary"`      // its agents by status
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
	ID          string             `json:"id"`           // its id in the plan
	Name        string             `json:"name"`         // for readers
	PromptPath  string             `json:"prompt_path"`  // the file with its task, relative to the repository when it is inside it; empty for none
	Wave        int                `json:"wave"`         // the level that it is at in the order of the plan, from 1; 0 is in none
	Status      agency.AgentStatus `json:"status"`       // its state
	StartedAt   *time.Time         `json:"started_at"`   // when its first attempt began; null before
	CompletedAt *time.Time         `json:"completed_at"` // when it ended or was given up; null before
	ExitCode    *int               `json:"exit_code"`    // of its last attempt; null before its end, and when it did not exit by itself
	PID         *int               `json:"pid"`          // the number of its process; null while none runs
	LogFile     string             `json:"log_file"`     // its log, relative to the repository when it is inside it
	Model       string             `json:"model"`        // what the plan, or the program that reports on it, names; empty for none
	Error       string             `json:"error"`        // why it failed or was cancelled, why it is tried again, or what its start waits for; empty for none; untrusted

	After     []string     `json:"after"`      // the ids of the agents that must end before it starts
	Runner    string       `json:"runner"`     // its runner, as users name it
	RunID     agency.RunID `json:"run_id"`     // the id of its newest run; empty until it starts
	Run       string       `json:"run"`        // the name or handle of that run; empty until it is made
	Label     agency.Label `json:"run_status"` // the run's status now; empty when it has none
	Note      string       `json:"note"`       // what the agent reports, asks or waits for; may be empty; untrusted
	Branch    string       `json:"branch"`     // of its run; empty until it starts
	Attempts  int          `json:"attempts"`   // how many attempts its newest run has; 0 before the first
	NotBefore *time.Time   `json:"not_before"` // when the first or next attempt may start, if that is postponed
	// WaitReason is why it has no attempt although no action is needed: an agent that it comes
	// after, a limit, a pause. Empty when it has one.
	WaitReason string `json:"wait_reason"`
	// NeedsUser is true when it cannot start, or its run waits, until the user or an agent acts.
	NeedsUser bool                `json:"needs_user"`
	Result    *agency.AgentResult `json:"result"` // its work; null until it is final and the work is counted, and for an agent that never ran
	Landed    *AgentLanding       `json:"landed"` // where its work landed, or why it did not; null when it neither landed nor is to land
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
	Wave   int               `json:"wave"`   // its number, from 1
	Status agency.WaveStatus `json:"status"` // its state
	Agents []string          `json:"agents"` // the ids of its agents
}

// SessionRequest names one session: by its id, a unique prefix of it, its name when only one has
// it, "active" for the running session that began last, or "latest" for the session that began
// last. Active and latest refer to the repository of Dir.
type SessionRequest struct {
	Session string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"` // a folder in the repository that active and latest mean
}

// PlanSource is the source of a plan: a path, a text, or agents that all get the same prompt.
type PlanSource struct {
	Path string `json:"path,omitempty"` // absolute: a YAML file, or a folder of NNN-name.md prompts
	Text string `json:"text,omitempty"` // the plan itself, as YAML
	// Agents are runners with their number, such as claude_code:3; prompt or prompt_path is their
	// common task.
	Agents     []string `json:"agents,omitempty"`
	Prompt     string   `json:"prompt,omitempty"`      // the common task, as text
	PromptPath string   `json:"prompt_path,omitempty"` // a file of the repository with the common task; absolute, or relative to dir
	// Name overrides the name of the plan, as base, max_parallel, on_failure and land override theirs.
	// What is left out does not.
	Name        string `json:"name,omitempty"`
	Base        string `json:"base,omitempty"`         // what the agents start from: a git reference, or deps for the results of the agents before
	MaxParallel int    `json:"max_parallel,omitempty"` // how many agents may run at once
	OnFailure   string `json:"on_failure,omitempty"`   // what happens when an agent fails, an OnFailure: stop, continue or ask
	Land        string `json:"land,omitempty"`         // how the work of every agent lands, a LandBy: queue, merge or none
}

// PlanSessionRequest asks what a plan would do.
type PlanSessionRequest struct {
	Plan   PlanSource     `json:"plan"`             // where the plan is
	Dir    string         `json:"dir"`              // the caller's working directory, which also selects the repository
	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, which the agents would get
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// PlanSessionResponse describes what a plan would do.
type PlanSessionResponse struct {
	Plan     agency.Plan    `json:"plan"`     // the whole plan, with defaults and the texts of prompts
	Waves    [][]string     `json:"waves"`    // the ids of the agents by wave
	Agents   []PlannedAgent `json:"agents"`   // in the order of the plan
	Hash     string         `json:"hash"`     // SHA-256 of the content of the plan, without the paths of its files, in hex
	Refused  *Problem       `json:"refused"`  // why session.start would refuse the plan now; null when it would not
	Warnings []string       `json:"warnings"` // what in the plan has no effect, or not the one that it asks for
}

// PlannedAgent describes how one agent would be started.
type PlannedAgent struct {
	ID      string   `json:"id"`      // its id in the plan
	Runner  string   `json:"runner"`  // the name of its runner
	Branch  string   `json:"branch"`  // the branch of its run; SESSION stands for the id of the session
	Command []string `json:"command"` // the command line; words in capitals such as WORKTREE stand for what is known at the start
}

// StartSessionRequest starts a session.
type StartSessionRequest struct {
	Plan   PlanSource     `json:"plan"`             // where the plan is
	Dir    string         `json:"dir"`              // the caller's working directory, which also selects the repository
	Env    agency.Environ `json:"env,omitempty"`    // for the agents, as long as the session runs
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
	Source string         `json:"source,omitempty"` // orchestrate, execute-phase or run-prompt; empty means orchestrate
}

// SessionResponse holds one session after an operation.
type SessionResponse struct {
	Session  Session  `json:"session"`  // as it is afterwards
	Warnings []string `json:"warnings"` // what did not go as the request or the plan asks
}

// ShowSessionResponse is everything about one session.
type ShowSessionResponse struct {
	Session Session        `json:"session"` // as it is now
	Agents  []SessionAgent `json:"agents"`  // in the order of the plan
	Waves   []Wave         `json:"waves"`   // the lowest first
	// StatusFile is the session in the form of its status.json.
	StatusFile json.RawMessage `json:"status_file"`
}

// ListSessionsRequest selects sessions.
type ListSessionsRequest struct {
	Dir   string `json:"dir,omitempty"`   // only sessions of the repository of this directory; empty means all repositories
	Live  bool   `json:"live,omitempty"`  // only sessions that run
	Limit int    `json:"limit,omitempty"` // how many of the newest; 0 means all
}

// ListSessionsResponse lists sessions, newest first.
type ListSessionsResponse struct {
	Sessions []Session `json:"sessions"` // the newest first
}

// ResumeSessionRequest continues a paused session.
type ResumeSessionRequest struct {
	Session string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir     string `json:"dir,omitempty"` // a folder in the repository that active and latest mean
	// PlanChanged continues with the plan as it was at the start, even if its files have changed
	// since.
	PlanChanged bool `json:"plan_changed,omitempty"`
}

// RetrySessionRequest makes a new session from a settled one. Complete agents are taken over.
type RetrySessionRequest struct {
	Session     string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir         string `json:"dir,omitempty"`          // a folder in the repository that active and latest mean
	Failed      bool   `json:"failed,omitempty"`       // only agents that failed, and those cancelled because of them; otherwise all that are not complete
	PlanChanged bool   `json:"plan_changed,omitempty"` // continue with the plan as it was at the start, even if its files have changed
	// NewPlan reads the plan's files again. What is complete and unchanged, with everything that it
	// comes after, is taken over; the rest runs by the new plan.
	NewPlan bool           `json:"new_plan,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"` // start nothing, and only tell what would be done
	Env     agency.Environ `json:"env,omitempty"`     // the caller's environment, for the agents, as long as the session runs
	Config  string         `json:"config,omitempty"`  // the caller's configuration file; empty means the default one
}

// RetrySessionResponse holds the new session; with dry_run the settled one.
type RetrySessionResponse struct {
	Session    Session         `json:"session"`    // the new session; with dry_run the settled one
	Warnings   []string        `json:"warnings"`   // what did not go as the request or the plan asks
	Difference *PlanDifference `json:"difference"` // what the new plan changes; null without new_plan
}

// PlanDifference describes what a retry by a new plan does.
type PlanDifference struct {
	Plan    string              `json:"plan"`    // the path of the plan
	Changes []agency.PlanChange `json:"changes"` // in the order of the new plan
	Kept    []string            `json:"kept"`    // ids of complete agents that are taken over
	Runs    []string            `json:"runs"`    // ids of the agents that run
}

// WaitSessionRequest waits until a session has settled and its report is written or, with
// Attention, until the user or an agent must act.
type WaitSessionRequest struct {
	Session   string `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir       string `json:"dir,omitempty"`        // a folder in the repository that active and latest mean
	Attention bool   `json:"attention,omitempty"`  // also return when the session, or one of its agents, needs the user
	Paused    bool   `json:"paused,omitempty"`     // also return when agency paused the session and it needs an action
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // how long, in milliseconds; 0 means no limit
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
	Dir        string            `json:"dir"`                   // a folder in the repository
	Env        agency.Environ    `json:"env,omitempty"`         // of the caller, for its configuration
	Config     string            `json:"config,omitempty"`      // the caller's configuration file; empty means the default one
	Source     string            `json:"source,omitempty"`      // what runs the agents: orchestrate, execute-phase or run-prompt; empty means as in the file, or else orchestrate
	SourceFile string            `json:"source_file,omitempty"` // the plan, which lies in the repository; empty means as in the file
	Name       string            `json:"name,omitempty"`        // of the session, in one line; empty means as in the file
	Agents     []json.RawMessage `json:"agents,omitempty"`      // objects in the form of the status file; only id is required
	File       json.RawMessage   `json:"file,omitempty"`        // a whole status file instead of agents; null means none
}

// SessionAction is a report of the program that runs the agents.
type SessionAction string

// The actions: on an agent or, without one, on the session.
const (
	ActionStart    SessionAction = "start"    // the agent runs, as the process of pid if that is given
	ActionComplete SessionAction = "complete" // the agent did its work; or all agents of the session have ended
	ActionFail     SessionAction = "fail"     // the agent failed
	ActionCancel   SessionAction = "cancel"   // the agent, or the session with all agents that have not ended, is given up
)

// SessionUpdate is one report of the program that runs the agents.
type SessionUpdate struct {
	Agent    string        `json:"agent,omitempty"`     // its id; empty means the session itself, for complete and cancel
	Action   SessionAction `json:"action"`              // what happened
	PID      *int          `json:"pid,omitempty"`       // for start: the number of the agent's process; null when it is unknown
	ExitCode *int          `json:"exit_code,omitempty"` // for complete and fail; null means 0 and 1
	Error    string        `json:"error,omitempty"`     // for fail and cancel: why
}

// UpdateSessionRequest changes a session: reports of another program, or how many agents of
// agency's own session run at once.
type UpdateSessionRequest struct {
	Session     string          `json:"session" jsonschema:"its id, name, active (the one that runs) or latest"`
	Dir         string          `json:"dir,omitempty"`          // a folder in the repository that active and latest mean
	Updates     []SessionUpdate `json:"updates,omitempty"`      // reports, in their order; the first that is refused ends the request, and those before it stay
	MaxParallel int             `json:"max_parallel,omitempty"` // how many agents run at once from now on; 0 leaves it as it is
}

// RemoveSessionsRequest removes the records and status files of settled sessions; their runs stay.
type RemoveSessionsRequest struct {
	Session     string `json:"session,omitempty"`       // its id, name, active or latest; empty selects by age
	Dir         string `json:"dir,omitempty"`           // a folder in the repository that active and latest mean
	OlderThanMS int64  `json:"older_than_ms,omitempty"` // without a session: only sessions that ended so long ago, in milliseconds
	Apply       bool   `json:"apply,omitempty"`         // remove them, not only list them; a named session is removed either way
}

// RemoveSessionsResponse lists the sessions that were removed, or would be.
type RemoveSessionsResponse struct {
	Sessions []Session `json:"sessions"` // those that were removed, or would be
	Applied  bool      `json:"applied"`  // they were removed
	Warnings []string  `json:"warnings"` // what stays of them
}

// UpdateLimit is the longest line of session.updates, in bytes. The client writes lines of
// SessionUpdate; the daemon answers each with a line of UpdateReply.
const UpdateLimit = 64 << 10

// UpdateReply answers one line of updates.
type UpdateReply struct {
	OK    bool     `json:"ok"`              // the report is durable
	Error *Problem `json:"error,omitempty"` // why it was refused; left out when it was not
}
