package agency

import (
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"regexp"
	"time"
)

// SessionID names a session: the second of its start in UTC and eight hex digits, as in 20260201-143022-abc12345.
type SessionID string

var sessionIDRule = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{8}$`)

// NewSessionID makes the id of a session that starts at a time from four random bytes.
func NewSessionID(at time.Time, random [4]byte) SessionID {
	return SessionID(at.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:]))
}

// ParseSessionID reads an id strictly. Anything else is E_USAGE.
func ParseSessionID(s string) (SessionID, error) {
	if !sessionIDRule.MatchString(s) {
		return "", Errorf(CodeUsage, "%q is no session id", s).WithHint("agency session ls")
	}
	return SessionID(s), nil
}

// SessionStatus is how a session stands. It is running until all of its agents are final.
type SessionStatus string

// The statuses of a session. The last three are final.
const (
	SessionRunning   SessionStatus = "running"
	SessionComplete  SessionStatus = "complete"  // every agent is complete or cancelled
	SessionFailed    SessionStatus = "failed"    // an agent failed
	SessionCancelled SessionStatus = "cancelled" // somebody cancelled it
)

// Final says that nothing can happen to the session any more.
func (s SessionStatus) Final() bool { return s != SessionRunning }

// AgentStatus is how one agent of a session stands.
type AgentStatus string

// The statuses of an agent. The last three are final. Retries happen inside running.
const (
	AgentQueued    AgentStatus = "queued"
	AgentRunning   AgentStatus = "running"
	AgentComplete  AgentStatus = "complete"
	AgentFailed    AgentStatus = "failed"
	AgentCancelled AgentStatus = "cancelled"
)

// AgentStatuses are all statuses, in the order of a life.
func AgentStatuses() []AgentStatus {
	return []AgentStatus{AgentQueued, AgentRunning, AgentComplete, AgentFailed, AgentCancelled}
}

// Final says that nothing can happen to the agent any more.
func (s AgentStatus) Final() bool {
	return s == AgentComplete || s == AgentFailed || s == AgentCancelled
}

// NextAgent says whether an agent may go from one status to another: queued to running or cancelled, running to complete,
// failed or cancelled. Everything else is E_INVALID_STATE.
func NextAgent(from, to AgentStatus) error {
	switch {
	case from == AgentQueued && (to == AgentRunning || to == AgentCancelled):
		return nil
	case from == AgentRunning && to.Final():
		return nil
	}
	return Errorf(CodeInvalidState, "an agent that is %s cannot become %s", from, to)
}

// WaveStatus is how one wave of a session stands, which follows from its agents.
type WaveStatus string

// The statuses of a wave.
const (
	WavePending  WaveStatus = "pending"  // none of its agents has begun
	WaveRunning  WaveStatus = "running"  // some have
	WaveComplete WaveStatus = "complete" // all are final
)

// Tally counts the agents of a session by status.
type Tally struct {
	Total     int `json:"total"`
	Queued    int `json:"queued"`
	Running   int `json:"running"`
	Complete  int `json:"complete"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// Add counts n more agents of a status, or fewer when n is negative.
func (t *Tally) Add(status AgentStatus, n int) {
	t.Total += n
	switch status {
	case AgentQueued:
		t.Queued += n
	case AgentRunning:
		t.Running += n
	case AgentComplete:
		t.Complete += n
	case AgentFailed:
		t.Failed += n
	case AgentCancelled:
		t.Cancelled += n
	}
}

// TallyOf counts agents.
func TallyOf(agents []SessionAgent) Tally {
	var t Tally
	for i := range agents {
		t.Add(agents[i].Status, 1)
	}
	return t
}

// Settled says that no agent has anything before it.
func (t *Tally) Settled() bool { return t.Queued == 0 && t.Running == 0 }

// Session is the durable record of one execution of a plan, or of what an outside executor reports of its own agents.
type Session struct {
	ID   SessionID
	Seq  int64  // order of creation
	Name string // of the plan; may be empty
	// Source says what kind of executor it is: orchestrate, execute-phase or run-prompt.
	Source string
	// SourceFile is the plan, relative to the repository when it lies in it; empty when the plan came from flags.
	SourceFile string
	Outside    bool // somebody else runs the agents and reports them
	Repo       Repo
	Status     SessionStatus
	Tally      Tally

	// StatusDir is the absolute folder of the status files, and Dir the session's own in it.
	StatusDir string
	Dir       string

	PlanPath string // absolute path of the file or folder that the plan was read from; empty when there is none
	PlanHash string // of everything that the plan said at the start, prompts included
	// MaxParallel is how many agents may run at once. It can be changed while the session runs.
	MaxParallel int
	// Paused is why nothing new starts; empty while it does.
	Paused string
	// CancelAt is when somebody asked for the end of it all.
	CancelAt *time.Time
	RetryOf  SessionID // the session that this one takes over from; empty when none
	Owner    string    // who started it: the id of a run, or User
	Config   string    // the starter's configuration file; empty for the default one

	StartedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt *time.Time
	// Reported says that it has settled, the results of its agents are known, and its report is written.
	Reported bool
	// Extra are the members of the status file that agency does not know, in their order, as one JSON object; nil is none. Its own
	// waves are what else was said of waves.
	Extra json.RawMessage
}

// Ref is how people call the session: its id.
func (s *Session) Ref() string { return string(s.ID) }

// SessionAgent is the durable record of one agent of a session.
type SessionAgent struct {
	Session     SessionID
	Position    int // in the plan, from 0
	ID          string
	Name        string
	PromptPath  string // relative to the repository; empty when the prompt came from no file
	Wave        int    // from 1; 0 is in none
	Status      AgentStatus
	StartedAt   *time.Time
	CompletedAt *time.Time
	ExitCode    *int
	PID         *int
	LogFile     string // relative to the repository
	Model       string
	Error       string

	// Run is the newest run of the agent. It is drawn before the run is made, so that a crash cannot make a second one. Empty
	// until the agent starts, and for an outside agent for ever.
	Run RunID
	// Tries counts the attempts that ended and were the agent's own fault: what retries are spent on.
	Tries int
	// Losses counts the attempts that ended by no fault of the agent's: a reboot, a rate limit.
	Losses int
	// Attempt is the number of the newest attempt of Run whose end was taken note of.
	Attempt int
	// NotBefore puts the next attempt off; nil is at once.
	NotBefore *time.Time
	// Waits counts the starts in a row that failed by no fault of the agent's.
	Waits int
	// Stopping is the number of the attempt of Run that the session itself ends, 0 none, and StopReason why; empty is that the
	// agent is ready.
	Stopping   int
	StopReason string
	// Extra are the members of the status file that agency does not know, likewise.
	Extra json.RawMessage
	// Absent names the members of the status file that an outside executor left out and that are left out again.
	Absent []string
}

// Duration is how long the agent took; false until it has begun and ended.
func (a *SessionAgent) Duration() (time.Duration, bool) {
	if a.StartedAt == nil || a.CompletedAt == nil {
		return 0, false
	}
	return a.CompletedAt.Sub(*a.StartedAt), true
}

// NeedsPerson says that the agent goes no further until somebody acts: it cannot start, or its run, with its newest attempt and the
// label of that, waits. An attempt whose end was taken note of waits for nobody: another one follows.
func (a *SessionAgent) NeedsPerson(attempt int, label Label) bool {
	switch a.Status {
	case AgentQueued:
		return a.waits() != ""
	case AgentRunning:
		return attempt > a.Attempt && label.NeedsPerson()
	default:
		return false
	}
}

// Settle ends the session at a time when nothing is before any of its agents, and says whether it did: cancelled when somebody
// asked for that, failed when an agent failed, else complete.
func (s *Session) Settle(at time.Time) bool {
	if s.Status.Final() || !s.Tally.Settled() {
		return false
	}
	switch {
	case s.CancelAt != nil:
		s.Status = SessionCancelled
	case s.Tally.Failed > 0:
		s.Status = SessionFailed
	default:
		s.Status = SessionComplete
	}
	s.CompletedAt = &at
	return true
}

// sessionNews is what events tell of a session and its agents. Texts are untrusted.
type sessionNews struct {
	Session  SessionID `json:"session"`
	Name     string    `json:"name,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Status   string    `json:"status"`
	Paused   string    `json:"paused,omitempty"`
	Run      RunID     `json:"run,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// News tells how the session stands.
func (s *Session) News(t EventType) News {
	return News{Type: t, Data: sessionNews{Session: s.ID, Name: s.Name, Status: string(s.Status), Paused: s.Paused}}
}

// News tells how the agent stands.
func (a *SessionAgent) News() News {
	return News{Type: SessionAgentNews, Data: sessionNews{
		Session: a.Session, Agent: a.ID, Status: string(a.Status), Run: a.Run, ExitCode: a.ExitCode, Error: a.Error,
	}}
}

// AgentReport is what an outside executor reports of one agent.
type AgentReport struct {
	Session SessionID
	Agent   string
	// Apply edits the agent, or refuses. The session is as it was before, and only to be looked at. That the transition is one, the
	// store checks.
	Apply func(s *Session, a *SessionAgent, now time.Time) error
}

// SessionFilter chooses sessions.
type SessionFilter struct {
	Repo  string // fingerprint; empty is every repository
	Live  bool   // only those that are running
	Limit int    // the newest so many; 0 is all
}

// SetStatusDir has the status files of the session lie in a folder, which is absolute or relative to the root of the repository.
func (s *Session) SetStatusDir(statusDir string) {
	if !filepath.IsAbs(statusDir) {
		statusDir = filepath.Join(s.Repo.Root, statusDir)
	}
	s.StatusDir = filepath.Clean(statusDir)
	s.Dir = filepath.Join(s.StatusDir, "sessions", string(s.ID))
}

// LogFile is where the log of an agent lies: relative to the root of the repository when it lies in there.
func (s *Session) LogFile(agent string) string {
	path := filepath.Join(s.Dir, agent+".log")
	if rel, err := filepath.Rel(s.Repo.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// WaitingWord begins the Error of an agent whose start waits. One that is queued waits for a person.
const WaitingWord = "waiting: "
