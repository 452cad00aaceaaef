package agency

import (
	"fmt"
	"maps"
	"time"
)

// State is the state of an attempt. A run's state is that of its newest attempt.
type State string

// The states of an attempt. The last three are final.
const (
	Queued    State = "queued"    // the runner has not started
	Running   State = "running"   // the runner has started and not ended
	Completed State = "completed" // the runner ended with exit status 0
	Failed    State = "failed"    // it ended in any other way, was lost, or never started
	Killed    State = "killed"    // a user or agent stopped it
)

// Final reports whether the state can no longer change.
func (s State) Final() bool { return s == Completed || s == Failed || s == Killed }

// String returns the word that users see, as [Label.String] does.
func (s State) String() string {
	if s == Killed {
		return shownKilled
	}
	return string(s)
}

// Attempt is one execution of a run's agent.
type Attempt struct {
	Number         int        `json:"number"`          // from 1
	State          State      `json:"state"`           // what its process does
	Headless       bool       `json:"headless"`        // its mode is headless
	Mode           Mode       `json:"mode"`            // how agency speaks with the agent
	ConversationID string     `json:"conversation_id"` // the harness's own id of the conversation; empty when unknown
	CreatedAt      time.Time  `json:"created_at"`      // when the daemon recorded it, before anything was started
	StartedAt      *time.Time `json:"started_at"`      // when its runner started; null before, and when it never started
	EndedAt        *time.Time `json:"ended_at"`        // when it ended; null before
	// StopRequestedAt is set before the first signal of a stop.
	StopRequestedAt *time.Time `json:"stop_requested_at"`
	// Restarting reports whether the stop is part of a restart: another attempt follows.
	Restarting bool `json:"-"`
	// InputAt is when a message was last sent to the agent. Requests from before are answered.
	InputAt       *time.Time `json:"input_at"`
	ExitCode      *int       `json:"exit_code"`      // of its runner; null until that has exited by itself
	Signal        string     `json:"signal"`         // the signal that ended it, such as SIGKILL; empty when none did
	EndedBy       EndedBy    `json:"ended_by"`       // what made its runner end; empty until it has ended
	ErrorCode     Code       `json:"error_code"`     // the kind of its failure; empty unless it failed, and for a runner that failed by itself
	Error         string     `json:"error"`          // why it failed, in words; empty unless it failed; may quote another program: untrusted
	LogLost       int64      `json:"log_lost"`       // bytes missing in its log because the disk was full
	Pane          string     `json:"tmux_pane"`      // tmux pane id, such as %3
	Wrapper       *Process   `json:"wrapper"`        // the process that owns the agent's terminal and logs; null until it has reported the start of the runner
	RunnerProcess *Process   `json:"runner_process"` // the agent's process; null until it has started
	// Network is what its agent did with the network allow; null with another network.
	Network *NetworkUse `json:"network"`
	// Limits is how its limits are enforced and which it reached; null without limits.
	Limits *LimitUse `json:"limits"`
	// Image is what its container was made of; null without a container.
	Image *Image `json:"image"`
	// Ports are those of its container that the machine reaches; null when there are none.
	Ports *Ports `json:"ports"`
	// ReportedStatus is the newest reading of the runner's contract in this attempt.
	Reported Observed `json:"-"`
	// AgentState is the sum of this attempt's evidence.
	AgentState AgentState `json:"-"`
}

// EndedBy is what made a runner end.
type EndedBy string

// The causes of an end, as the wrapper observed them.
const (
	EndedByRunner      EndedBy = "runner"       // it exited, or a signal from elsewhere hit it
	EndedByStop        EndedBy = "stop"         // agency stop, over the daemon's connection
	EndedBySignal      EndedBy = "signal"       // the wrapper got SIGTERM: from a daemon without a connection, or at system shutdown
	EndedByTimeLimit   EndedBy = "time_limit"   // the attempt took longer than max_minutes
	EndedByLimit       EndedBy = "limit"        // it has written more than its limit of the disk
	EndedByProtocol    EndedBy = "protocol"     // no conversation in its own protocol could begin
	EndedBySessionLost EndedBy = "session_lost" // the tmux session was killed
	EndedByStartFailed EndedBy = "start_failed" // the program could not be started
	EndedBySetupFailed EndedBy = "setup_failed" // the repository's setup failed, so the program was not started
)

// Process identifies one process permanently. A pid alone does not, because the kernel reuses pids.
type Process struct {
	PID        int    `json:"pid"`         // its number
	StartTicks uint64 `json:"start_ticks"` // since boot, in clock ticks of the kernel
	BootID     string `json:"boot_id"`     // the boot of the machine that the number belongs to; empty when unknown
}

// FactKind is the kind of a fact about an attempt.
type FactKind string

// The facts that change the state of an attempt.
const (
	FactStarted     FactKind = "started"      // the wrapper started the runner
	FactStartFailed FactKind = "start_failed" // creation failed before a runner started
	FactExited      FactKind = "exited"       // the wrapper recorded the runner's end
	FactLost        FactKind = "lost"         // no wrapper is alive and no end was recorded
)

// Fact is one fact about an attempt, with the details that decide the next state.
type Fact struct {
	Kind          FactKind
	ExitCode      int    // of FactExited, meaningful when Signal is empty
	Signal        string // of FactExited
	EndedBy       EndedBy
	StopRequested bool // a stop was requested and recorded before
}

// Next returns the state that a fact leads to; it is the only transition function. A final state
// accepts no fact. A fact that cannot happen in a state is E_INVALID_STATE, and the state stays as
// it is.
func Next(from State, f Fact) (State, error) {
	switch {
	case from.Final():
	case f.Kind == FactStarted && from == Queued:
		return Running, nil
	case f.Kind == FactStartFailed && from == Queued:
		return Failed, nil
	case f.Kind == FactLost && (from == Queued || from == Running):
		return ended(f, false), nil
	case f.Kind == FactExited && from == Running:
		return ended(f, f.Signal == "" && f.ExitCode == 0 && f.EndedBy == EndedByRunner), nil
	}
	return from, Errorf(CodeInvalidState, "a %s attempt cannot take %q", from, string(f.Kind))
}

func ended(f Fact, clean bool) State {
	switch {
	case f.StopRequested:
		return Killed
	case clean:
		return Completed
	default:
		return Failed
	}
}

// Exit is the record of a runner's end, in the form of runner_done.json. The wrapper writes it
// once, durably; from then on it decides the result of the attempt.
type Exit struct {
	SchemaVersion int        `json:"schema_version"` // 1
	RunID         RunID      `json:"run_id"`
	Attempt       int        `json:"attempt"`
	RunnerKind    RunnerKind `json:"runner_kind"`
	StartedAt     time.Time  `json:"started_at"`
	EndedAt       time.Time  `json:"ended_at"`
	ExitCode      int        `json:"exit_code"` // 128 + signal number when a signal ended it, as in shells
	PID           int        `json:"pid,omitempty"`
	Signal        string     `json:"signal,omitempty"`
	Error         string     `json:"error,omitempty"`
	ErrorCode     Code       `json:"error_code,omitempty"`
	EndedBy       EndedBy    `json:"ended_by"`
	// LeftBehind counts the processes that the runner left running and the wrapper ended.
	LeftBehind int `json:"left_behind,omitempty"`
	// LogLost is how many bytes of the runner's output are missing in its log because the disk was
	// full.
	LogLost int64 `json:"log_lost,omitempty"`
	// Network is what a runner with the network allow did with it.
	Network *NetworkUse `json:"network,omitempty"`
	// Limits is how the limits of a runner were enforced, and which it reached.
	Limits *LimitUse `json:"limits,omitempty"`
}

// EndNote is why an attempt ended, where its exit status does not tell. The process outside of the sandbox
// that stands for the agent writes it into the file EndNoteFile of the attempt's folder.
type EndNote struct {
	Code  Code   `json:"code"`
	Words string `json:"words"`
	// Reached is how often a container reached the limits that its engine keeps.
	Reached map[LimitName]int64 `json:"reached,omitempty"`
}

// EndNoteFile is the name of the file of an EndNote.
const EndNoteFile = "end_note.json"

// Fact returns the fact that the record states about its attempt. The record alone also proves a
// stop by agency: a full disk may have kept the request out of the database.
func (e *Exit) Fact(stopRequested bool) Fact {
	return Fact{Kind: FactExited, ExitCode: e.ExitCode, Signal: e.Signal, EndedBy: e.EndedBy, StopRequested: stopRequested || e.EndedBy == EndedByStop}
}

// Failure returns the code and the message of an attempt that ended as recorded without a stop
// request; both are empty for a clean end.
func (e *Exit) Failure() (Code, string) {
	switch {
	case e.EndedBy == EndedBySessionLost:
		return CodeRunnerDisappeared, "the tmux session was killed from outside"
	case e.EndedBy == EndedByTimeLimit:
		return CodeTimeLimit, "stopped at its time limit"
	case e.EndedBy == EndedByStartFailed:
		return CodeRunnerStartFailed, e.Error
	case e.Limits.Cause(e.EndedBy) != nil && e.ExitCode != 0:
		return CodeLimitReached, e.Limits.Cause(e.EndedBy).String()
	case e.Error != "":
		return e.ErrorCode, e.Error
	case e.Signal != "":
		return "", "ended by " + e.Signal
	case e.ExitCode != 0:
		return "", fmt.Sprintf("exit %d", e.ExitCode)
	default:
		return "", ""
	}
}

// Start is the record of a runner's start, in the form of started.json.
type Start struct {
	RunID     RunID     `json:"run_id"`
	Attempt   int       `json:"attempt"`
	StartedAt time.Time `json:"started_at"`
	TTY       bool      `json:"tty"` // one pty and a merged stream; false is pipes and two streams
	// Mode is empty in records of older wrappers, which knew a terminal or none.
	Mode    Mode    `json:"mode,omitempty"`
	Wrapper Process `json:"wrapper"`
	Runner  Process `json:"runner"`
	// Grace is how long a stop waits for the runner, in nanoseconds. Records of older wrappers lack
	// it.
	Grace time.Duration `json:"grace,omitempty"`
	// Limits is how the limits of the runner are enforced.
	Limits *LimitUse `json:"limits,omitempty"`
	// Ports are those of the runner's container, with their addresses.
	Ports *Ports `json:"ports,omitempty"`
	// Pane is the tmux pane of the wrapper, such as "%3". Records of older wrappers lack it.
	Pane string `json:"pane,omitempty"`
	// TokenHash is the hash of the attempt's token. A rebuilt record recognizes its wrapper by it.
	TokenHash string `json:"token_hash,omitempty"`
}

// Effect is the observed effect of an input.
type Effect string

// The effects. The first four prove that the agent took the input.
const (
	EffectPrompt   Effect = "prompt"   // the agent reported a prompt
	EffectTurn     Effect = "turn"     // the text left its input box, and the agent is working
	EffectRead     Effect = "read"     // the program, which reads lines, has read the input
	EffectEnded    Effect = "ended"    // the program has ended
	EffectComposer Effect = "composer" // the text is in its input box
	EffectOutput   Effect = "output"   // output of any kind was printed
	EffectTaken    Effect = "taken"    // the agent acknowledged it, in its own protocol
	EffectWritten  Effect = "written"  // it was written to the agent, which has not acknowledged it yet
	EffectNone     Effect = "none"
)

// Delivery is how far an input to a runner got.
type Delivery struct {
	// Confirmed is true when agency saw the agent take the input; false means that the input was
	// written to the terminal, and nothing more is known.
	Confirmed bool   `json:"confirmed"`
	Effect    Effect `json:"effect"`
	Queued    int    `json:"queued"`   // messages that the agent begins with after an interruption
	Composer  string `json:"composer"` // the text in the agent's input box; empty when there is none, or no box is visible
}

// typed is the detail of an error of an input whose text, or a part of it, may have been typed.
const typed = "typed"

// TypedPerhaps returns err with the mark that MayHaveTyped looks for.
func TypedPerhaps(err error) error {
	e := *AsError(err)
	e.Details = maps.Clone(e.Details)
	return e.WithDetail(typed, "perhaps")
}

// MayHaveTyped reports whether an input that failed may have reached the agent all the same.
// Without it, nothing was typed.
func MayHaveTyped(err error) bool { return err != nil && AsError(err).Details[typed] != nil }

// Step is one recorded step of making or removing a run. After a crash, steps without DoneAt are
// finished or undone.
type Step struct {
	Name   string     `json:"name"`    // such as worktree, setup or started
	DoneAt *time.Time `json:"done_at"` // when it was done; null while it is not
}

// Observed is the newest reading of a run's contract file in one attempt.
type Observed struct {
	Contract *Contract // nil when the file is missing or invalid
	Problem  string    // why it is invalid; empty when it is valid or missing
	At       time.Time // when this content was first seen
}
