package agency

import "time"

// StallThreshold is the default time without a sign of status after which a working agent is called stalled.
const StallThreshold = 15 * time.Minute

// Status is a derived label with the words that go with it.
type Status struct {
	Label   Label     `json:"label"`
	Summary string    `json:"summary"` // the question, the blocker, the summary, or the reason; untrusted text
	Since   time.Time `json:"since"`   // when the deciding evidence was observed
	Problem string    `json:"problem"` // "invalid status file: why", or that the wrapper does not answer; empty when all is fine
	Decided DecidedBy `json:"decided_by"`
	// Request is what the agent waits for; null unless evidence of its own says so.
	Request *Request `json:"request"`
}

// DecidedBy is what decided a status: a source of evidence, or one of those below.
type DecidedBy string

// What decides beside the sources of evidence.
const (
	ByRecord   DecidedBy = "record"   // what was done to the run: merged, abandoned, flagged
	ByProcess  DecidedBy = "process"  // what the kernel knows of the runner, its wrapper and its terminal
	ByContract DecidedBy = "contract" // the runner's status file
	ByMessage  DecidedBy = "message"  // what was sent to the agent
	ByClock    DecidedBy = "clock"    // that nothing came for too long
)

// Trust is how sure a clue is.
type Trust string

// The degrees of trust, the surest first.
const (
	TrustRecord     Trust = "record" // agency's own record and clock
	TrustKernel     Trust = "kernel" // what the operating system says of processes, locks and terminals
	TrustAgent      Trust = "agent"  // what the agent's program tells by itself: hooks, streams, its own files
	TrustSelfReport Trust = "word"   // what the model wrote
	TrustScreen     Trust = "looks"  // what the agent's terminal shows
)

// Finding is one thing that is known of a run. Says and Ignored can quote the agent, so they are untrusted.
type Finding struct {
	Source     DecidedBy `json:"source"`
	Trust      Trust     `json:"trust"`
	Confidence float64   `json:"confidence"` // below 1 only of what was read from a screen
	At         time.Time `json:"at"`         // when it was observed
	AgeMS      int64     `json:"age_ms"`
	Attempt    int       `json:"attempt"`
	Says       string    `json:"says"`
	Decided    bool      `json:"decided"` // the status rests on it
	Ignored    string    `json:"ignored"` // why it changes nothing; empty when it was weighed
}

// UnknownEvent is something that an agent told and this version does not know.
type UnknownEvent struct {
	Name  string `json:"name"` // the agent's own, untrusted
	Count int    `json:"count"`
}

// Explanation is why a run has the status that it has.
type Explanation struct {
	Status   Status         `json:"status"`
	Rule     int            `json:"rule"`           // its number in the table of docs/state-machine.md
	When     string         `json:"when"`           // the words of the rule
	Findings []Finding      `json:"evidence"`       // the surest first; never nil
	Unknown  []UnknownEvent `json:"unknown_events"` // never nil
}
