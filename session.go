package agency

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// SessionID names a session: the second of its start in UTC and eight hex digits, as in
// 20260201-143022-abc12345.
type SessionID string

// Membership is the place of a run in a session.
type Membership struct {
	Session SessionID `json:"session_id"`   // the session
	Name    string    `json:"session_name"` // its name; empty without one
	Agent   string    `json:"agent"`        // the id of the agent in its plan
}

var sessionIDRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{8}$`) })

// NewSessionID makes the id of a session that starts at a time from four random bytes.
func NewSessionID(at time.Time, random [4]byte) SessionID {
	return SessionID(at.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:]))
}

// ParseSessionID reads an id strictly. Anything else is E_USAGE.
func ParseSessionID(s string) (SessionID, error) {
	if !sessionIDRule().MatchString(s) {
		return "", Errorf(CodeUsage, "%q is not a session id", s).WithHint("agency session ls")
	}
	return SessionID(s), nil
}

// SessionStatus is the state of a session. It is running until all of its agents are final.
type SessionStatus string

// The statuses of a session. The last three are final.
const (
	SessionRunning   SessionStatus = "running"   // an agent is queued or running
	SessionComplete  SessionStatus = "complete"  // every agent is complete or cancelled
	SessionFailed    SessionStatus = "failed"    // an agent failed
	SessionCancelled SessionStatus = "cancelled" // a user or agent cancelled it
)

// Final reports whether the status can no longer change.
func (s SessionStatus) Final() bool { return s != SessionRunning }

// WaveStatus is the state of one wave of a session. It follows from its agents.
type WaveStatus string

// The statuses of a wave.
const (
	WavePending  WaveStatus = "pending"  // none of its agents has begun
	WaveRunning  WaveStatus = "running"  // some have
	WaveComplete WaveStatus = "complete" // all are final
)

// Counts counts the agents of a session by status.
type Counts struct {
	Total     int `json:"total"`     // all agents of the session
	Queued    int `json:"queued"`    // agents that have not begun
	Running   int `json:"running"`   // agents that have begun and not ended, also between two attempts
	Complete  int `json:"complete"`  // agents that did their work
	Failed    int `json:"failed"`    // agents that failed for good
	Cancelled int `json:"cancelled"` // agents that were given up, or never began
}

// Add counts n more agents of a status, or fewer when n is negative.
func (t *Counts) Add(status AgentStatus, n int) {
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

// CountsOf counts agents by status.
func CountsOf(agents []SessionAgent) Counts {
	var t Counts
	for i := range agents {
		t.Add(agents[i].Status, 1)
	}
	return t
}

// Settled reports whether no agent is queued or running.
func (t *Counts) Settled() bool { return t.Queued == 0 && t.Running == 0 }

// Session is the durable record of one execution of a plan, or of the agents that an external
// executor reports.
type Session struct {
	ID   SessionID
	Seq  int64  // order of creation
	Name string // of the plan; may be empty
	// Source is the kind of executor: orchestrate, execute-phase or run-prompt.
	Source string
	// SourceFile is the plan, relative to the repository when it is inside it; empty when the plan
	// came from flags.
	SourceFile string
	External   bool // an external executor runs the agents and reports them
	Repo       Repo
	Status     SessionStatus
	Counts     Counts

	// StatusDir is the absolute folder of the status files, and Dir is the session's own folder in
	// it.
	StatusDir string
	Dir       string

	PlanPath string // absolute path of the file or folder that the plan was read from; empty when there is none
	PlanHash string // of the plan's whole content at the start, prompts included
	// MaxParallel is how many agents may run at once. It can be changed while the session runs.
	MaxParallel int
	// Paused is why nothing new starts; empty while the session is not paused.
	Paused string
	// CancelAt is when the end of the session was requested.
	CancelAt *time.Time
	RetryOf  SessionID // the session that this one retries; empty when none
	Owner    string    // the starter: the id of a run, or User
	Config   string    // the starter's configuration file; empty for the default one

	StartedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt *time.Time
	// Reported reports whether the session has settled, the results of its agents are known, and
	// its report is written, or cannot be.
	Reported bool
	// Extra holds the members of the status file that agency does not know, in their order, as one
	// JSON object; nil is none. Its member waves holds the unknown members of the waves.
	Extra json.RawMessage
}

// Ref returns what users call the session: its id.
func (s *Session) Ref() string { return string(s.ID) }

// Settle ends the session if none of its agents is queued or running, and reports whether it did.
// The session is then cancelled if that was requested, failed if an agent failed, else complete.
func (s *Session) Settle(at time.Time) bool {
	if s.Status.Final() || !s.Counts.Settled() {
		return false
	}
	switch {
	case s.CancelAt != nil:
		s.Status = SessionCancelled
	case s.Counts.Failed > 0:
		s.Status = SessionFailed
	default:
		s.Status = SessionComplete
	}
	s.CompletedAt = &at
	return true
}

// sessionDraft is the data of events about a session and its agents. Texts are untrusted.
type sessionDraft struct {
	Session  SessionID `json:"session"`
	Name     string    `json:"name,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Status   string    `json:"status"`
	Paused   string    `json:"paused,omitempty"`
	Run      RunID     `json:"run,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Error    string    `json:"error,omitempty"`
}

// EventDraft returns an event with the state of the session.
func (s *Session) EventDraft(t EventType) EventDraft {
	return EventDraft{Type: t, Data: sessionDraft{Session: s.ID, Name: s.Name, Status: string(s.Status), Paused: s.Paused}}
}

// SessionFilter chooses sessions.
type SessionFilter struct {
	Repo  string // fingerprint; empty is every repository
	Live  bool   // only running sessions
	Limit int    // the newest N; 0 is all
}

// SetStatusDir sets the folder of the session's status files, which is absolute or relative to the
// root of the repository.
func (s *Session) SetStatusDir(statusDir string) {
	if !filepath.IsAbs(statusDir) {
		statusDir = filepath.Join(s.Repo.Root, statusDir)
	}
	s.StatusDir = filepath.Clean(statusDir)
	s.Dir = filepath.Join(s.StatusDir, "sessions", string(s.ID))
}

// LogFile returns the path of an agent's log: relative to the root of the repository when it is
// inside it.
func (s *Session) LogFile(agent string) string {
	path := filepath.Join(s.Dir, agent+".log")
	if rel, err := filepath.Rel(s.Repo.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// Ending returns the outcome of a settled session in one line. Of its agents, only the failed ones
// matter, and what the session did to land their work.
func (s *Session) Ending(agents []SessionAgent) string {
	text := s.Counts.String()
	if landed := s.Landed(agents); landed != "" {
		text += "; " + landed
	}
	for i := range agents {
		if a := &agents[i]; a.Status == AgentFailed {
			return fmt.Sprintf("%s; %s: %s", text, a.ID, a.Error)
		}
	}
	return text
}

// ReportPath returns the path of the report of a settled session, a file beside status.json.
func (s *Session) ReportPath() string { return filepath.Join(s.Dir, "report.md") }

// PausedByHand is the reason of a pause that a user or agent requested. It needs no alert.
const PausedByHand = "paused by hand"

// String returns the counts in words.
func (t Counts) String() string {
	words := []string{}
	for _, part := range []struct {
		n    int
		word AgentStatus
	}{
		{t.Complete, AgentComplete}, {t.Failed, AgentFailed}, {t.Cancelled, AgentCancelled}, {t.Running, AgentRunning}, {t.Queued, AgentQueued},
	} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	return strings.Join(words, ", ")
}

// Landed returns what a session did to land the work of its agents; empty when nothing was to
// land.
func (s *Session) Landed(agents []SessionAgent) string {
	count, complete, refused := map[AgentLandingState]int{}, 0, ""
	for i := range agents {
		a := &agents[i]
		count[a.Landing.State]++
		if a.Status == AgentComplete {
			complete++
		}
		if a.Landing.State == WorkRefused && refused == "" {
			refused = a.ID + ": " + a.Landing.Note
		}
	}
	parts := []string{}
	if n := count[WorkLanded]; n > 0 && n+count[WorkPart]+count[WorkNothing] == complete {
		parts = append(parts, "all landed")
	} else if n > 0 {
		parts = append(parts, fmt.Sprintf("%d landed", n))
	}
	if n := count[WorkQueued]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d in the landing queue", n))
	}
	if n := count[WorkRefused]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not landed; %s", n, refused))
	}
	return strings.Join(parts, ", ")
}
