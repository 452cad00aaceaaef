package agency

import (
	"fmt"
	"time"
)

// State is where an attempt stands. A run's state is its newest attempt's.
type State string

// The states of an attempt. The last three are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed" // the runner ended with exit status 0
	Failed    State = "failed"    // it ended in any other way, was lost, or never started
	Killed    State = "killed"    // somebody asked for its end
)

// Final says that nothing can happen to the attempt any more.
func (s State) Final() bool { return s == Completed || s == Failed || s == Killed }

// Attempt is one execution of a run's agent.
type Attempt struct {
	Number         int        `json:"number"` // from 1
	State          State      `json:"state"`
	Headless       bool       `json:"headless"`
	ConversationID string     `json:"conversation_id"` // the harness's own id of the conversation; empty when unknown
	CreatedAt      time.Time  `json:"created_at"`
	StartedAt      *time.Time `json:"started_at"`
	EndedAt        *time.Time `json:"ended_at"`
	// StopRequestedAt is set before the first signal of a stop.
	StopRequestedAt *time.Time `json:"stop_requested_at"`
	// Restarting says that the stop makes place for the next attempt.
	Restarting bool `json:"-"`
	// InputAt is when a message was last sent to the agent: what it asked before that is answered.
	InputAt       *time.Time `json:"input_at"`
	ExitCode      *int       `json:"exit_code"`  // null when it never exited by itself
	Signal        string     `json:"signal"`     // SIGKILL and the like; empty when none ended it
	EndedBy       EndedBy    `json:"ended_by"`   // empty until it has ended
	ErrorCode     Code       `json:"error_code"` // empty unless it failed
	Error         string     `json:"error"`
	LogLost       int64      `json:"log_lost"`  // bytes that are missing in its log, because the disk did not take them
	Pane          string     `json:"tmux_pane"` // tmux pane id, such as %3
	Wrapper       *Process   `json:"wrapper"`
	RunnerProcess *Process   `json:"runner_process"`
	// ReportedStatus is the newest reading of the runner's contract in this attempt.
	Word Observed `json:"-"`
	// AgentState is what the evidence of this attempt comes to.
	AgentState AgentState `json:"-"`
}

// EndedBy says what made a runner end.
type EndedBy string

// The causes of an end, as the wrapper saw them.
const (
	EndedByRunner      EndedBy = "runner"       // it exited, or a signal from elsewhere hit it
	EndedByStop        EndedBy = "stop"         // agency stop, over the daemon's connection
	EndedBySignal      EndedBy = "signal"       // the wrapper got SIGTERM: from a daemon without a connection, or when the system goes down
	EndedByTimeLimit   EndedBy = "time_limit"   // --max-minutes
	EndedBySessionLost EndedBy = "session_lost" // somebody killed the tmux session
	EndedByStartFailed EndedBy = "start_failed" // the program could not be started
	EndedBySetupFailed EndedBy = "setup_failed" // the repository's setup failed, so the program was not started
)

// Process identifies one process for good: a bare pid proves nothing, because pids are used again.
type Process struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"` // since boot, in the kernel's own unit
	BootID     string `json:"boot_id"`
}

// FactKind is a kind of news about an attempt.
type FactKind string

// The facts that move an attempt on.
const (
	FactStarted     FactKind = "started"      // the wrapper started the runner
	FactStartFailed FactKind = "start_failed" // creation did not get as far as a runner
	FactExited      FactKind = "exited"       // the wrapper recorded the runner's end
	FactLost        FactKind = "lost"         // no wrapper lives and no end was recorded
)

// Fact is one piece of news about an attempt, with what decides the state it leads to.
type Fact struct {
	Kind          FactKind
	ExitCode      int    // of FactExited, meaningful when Signal is empty
	Signal        string // of FactExited
	EndedBy       EndedBy
	StopRequested bool // a stop was asked for and recorded before
}

// Next is the one transition function: the state that a fact leads to. A final state takes no fact, and a fact that
// cannot happen in a state is E_INVALID_STATE; the state then stays as it is.
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

// Exit is the record of a runner's end, in the form of runner_done.json. The wrapper writes it once, durably, and
// from then on it decides what the attempt came to.
type Exit struct {
	SchemaVersion int        `json:"schema_version"` // 1
	RunID         RunID      `json:"run_id"`
	Attempt       int        `json:"attempt"`
	RunnerKind    RunnerKind `json:"runner_kind"`
	StartedAt     time.Time  `json:"started_at"`
	EndedAt       time.Time  `json:"ended_at"`
	ExitCode      int        `json:"exit_code"` // 128 + signal number when a signal ended it, as shells say
	PID           int        `json:"pid,omitempty"`
	Signal        string     `json:"signal,omitempty"`
	Error         string     `json:"error,omitempty"`
	EndedBy       EndedBy    `json:"ended_by"`
	// LeftBehind counts processes that the runner left and the wrapper ended.
	LeftBehind int `json:"left_behind,omitempty"`
	// LogLost is how many bytes of the runner's output are not in its log, because the disk did not take them.
	LogLost int64 `json:"log_lost,omitempty"`
}

// Fact is what the record means for its attempt. It proves a stop of agency's by itself, too: the disk may have been full.
func (e *Exit) Fact(stopRequested bool) Fact {
	return Fact{Kind: FactExited, ExitCode: e.ExitCode, Signal: e.Signal, EndedBy: e.EndedBy, StopRequested: stopRequested || e.EndedBy == EndedByStop}
}

// Failure is the code and the sentence for an attempt that ended as recorded and was not asked to; both are empty
// for a clean end.
func (e *Exit) Failure() (Code, string) {
	switch {
	case e.EndedBy == EndedBySessionLost:
		return CodeRunnerDisappeared, "the tmux session was killed from outside"
	case e.EndedBy == EndedByTimeLimit:
		return CodeTimeLimit, "stopped at its time limit"
	case e.EndedBy == EndedByStartFailed:
		return CodeRunnerStartFailed, e.Error
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
	Wrapper   Process   `json:"wrapper"`
	Runner    Process   `json:"runner"`
	// Grace is how long a stop waits for the runner, in nanoseconds. Records of older wrappers do not have it.
	Grace time.Duration `json:"grace,omitempty"`
	// Pane is the tmux pane of the wrapper, such as "%3". Records of older wrappers do not have it.
	Pane string `json:"pane,omitempty"`
	// TokenHash is the hash of the attempt's token, by which a record that is made anew knows its wrapper.
	TokenHash string `json:"token_hash,omitempty"`
}

// Effect is what was seen to come of an input.
type Effect string

// The effects. The first four prove that the agent took the input.
const (
	EffectPrompt   Effect = "prompt"   // the agent told that it was given a prompt
	EffectTurn     Effect = "turn"     // the text went out of its input box, and it is at work
	EffectRead     Effect = "read"     // the program, which reads lines, has read them
	EffectEnded    Effect = "ended"    // the program has ended
	EffectComposer Effect = "composer" // the text stands in its input box
	EffectOutput   Effect = "output"   // something was printed, whatever it means
	EffectNone     Effect = "none"
)

// Delivery is how far an input to a runner got.
type Delivery struct {
	// Confirmed is true when the agent was seen to take the input; false means that it was written to the terminal, and
	// nothing more is known.
	Confirmed bool   `json:"confirmed"`
	Effect    Effect `json:"effect"`
	Composer  string `json:"composer"` // what stands in the agent's input box; empty when nothing does, or none is to be seen
}

// Step is one recorded step of making or removing a run. Steps without DoneAt are finished or undone after a crash.
type Step struct {
	Name   string     `json:"name"`
	DoneAt *time.Time `json:"done_at"`
}

// Observed is the newest reading of a run's contract file in one attempt.
type Observed struct {
	Contract *Contract // nil when the file is missing or invalid
	Problem  string    // why it is invalid; empty when it is fine or missing
	At       time.Time // when this content was first seen
}
