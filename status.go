package agency

import (
	"strings"
	"time"
)

// StallThreshold is the default time without a sign after which a working agent counts as stalled.
const StallThreshold = 15 * time.Minute

// Status is a derived label with its explanatory texts.
type Status struct {
	Label   Label     `json:"label"`      // the word that agency ls shows
	Summary string    `json:"summary"`    // the question, the blocker, the summary, or the reason; untrusted text
	Since   time.Time `json:"since"`      // when the deciding evidence was observed
	Problem string    `json:"problem"`    // "invalid status file: why", or that the wrapper does not answer; empty when all is fine
	Decided DecidedBy `json:"decided_by"` // what decided it
	// Request is what the agent waits for; null unless its own evidence contains the request.
	Request *Request `json:"request"`
}

// DecidedBy is what decided a status: what agency itself knows, or a source of evidence.
type DecidedBy string

// What can decide in addition to the sources of evidence.
const (
	ByRecord   DecidedBy = "record"   // the record of the run: merged, abandoned, flagged
	ByProcess  DecidedBy = "process"  // what the kernel reports about the runner, its wrapper and its terminal
	ByContract DecidedBy = "contract" // the runner's status file
	ByMessage  DecidedBy = "message"  // an input that was sent to the agent
	ByClock    DecidedBy = "clock"    // too much time without a sign
)

// Trust is how reliable a finding is.
type Trust string

// The degrees of trust, the highest first.
const (
	TrustRecord     Trust = "record" // agency's own record and clock
	TrustKernel     Trust = "kernel" // what the operating system reports about processes, locks and terminals
	TrustAgent      Trust = "agent"  // what the agent's program reports by itself: hooks, streams, its own files
	TrustSelfReport Trust = "word"   // what the model wrote
	TrustScreen     Trust = "looks"  // what the agent's terminal shows
)

// Finding is one known fact about a run. Says and Ignored can quote the agent, so they are
// untrusted.
type Finding struct {
	Source     DecidedBy `json:"source"`     // where it comes from
	Trust      Trust     `json:"trust"`      // how reliable it is
	Confidence float64   `json:"confidence"` // from 0 to 1; below 1 only for readings of a screen
	At         time.Time `json:"at"`         // when it was observed
	AgeMS      int64     `json:"age_ms"`     // how long ago it was observed, in milliseconds; 0 when that is unknown
	Attempt    int       `json:"attempt"`    // the attempt that it is about
	Says       string    `json:"says"`       // the fact, in words
	Decided    bool      `json:"decided"`    // it decided the status
	Ignored    string    `json:"ignored"`    // why it has no effect; empty when it was considered
}

// UnknownEvent is an event of an agent that this version does not know.
type UnknownEvent struct {
	Name  string `json:"name"`  // the agent's own name for it; untrusted
	Count int    `json:"count"` // how often it came in the newest attempt
}

// Explanation is why a run has its status.
type Explanation struct {
	Status   Status         `json:"status"`         // the status that is explained
	Rule     int            `json:"rule"`           // the number of the rule in the table of docs/state-machine.md
	When     string         `json:"when"`           // the condition of the rule, in words
	Findings []Finding      `json:"evidence"`       // the most trusted first; never null
	Unknown  []UnknownEvent `json:"unknown_events"` // events of the agent that this version does not know
}

// Label is the status that users see. It is derived from stored facts each time it is shown, never
// stored. docs/state-machine.md has the rule of each. The label killed is shown as stopped.
type Label string

// The labels.
const (
	Broken         Label = "broken"
	LabelRemoving  Label = "removing"
	Merged         Label = "merged"
	Abandoned      Label = "abandoned"
	LabelFailed    Label = "failed"
	NeedsAttention Label = "needs attention"
	LabelQueued    Label = "queued"
	NeedsInput     Label = "needs input"
	ReadyForReview Label = "ready for review"
	Blocked        Label = "blocked"
	LabelCompleted Label = "completed"
	LabelKilled    Label = "killed"
	Stalled        Label = "stalled"
	Waiting        Label = "waiting"
	Working        Label = "working"
	Active         Label = "active"
	Idle           Label = "idle"
)

// Labels returns all labels, in the order in which they are decided.
func Labels() []Label {
	return []Label{
		Broken, LabelRemoving, Merged, Abandoned, LabelFailed, NeedsAttention, LabelQueued, NeedsInput, ReadyForReview, Blocked,
		LabelCompleted, LabelKilled, Stalled, Waiting, Working, Active, Idle,
	}
}

// String returns the word that users see. JSON has the label itself, which differs for killed only:
// nothing but a stop leads there, so users see stopped.
func (l Label) String() string {
	if l == LabelKilled {
		return shownKilled
	}
	return string(l)
}

// shownKilled is the word that users see for [Killed] and [LabelKilled].
const shownKilled = "stopped"

// LabelWords returns all labels as users type them.
func LabelWords() []string {
	words := make([]string, 0, len(Labels()))
	for _, l := range Labels() {
		words = append(words, strings.ReplaceAll(l.String(), " ", "-"))
	}
	return words
}

// ParseLabel reads a label as users type it or as JSON has it: "needs-input", "needs_input" and
// "needs input" are the same.
func ParseLabel(s string) (Label, error) {
	want := strings.NewReplacer("-", " ", "_", " ").Replace(strings.ToLower(s))
	for _, l := range Labels() {
		if string(l) == want || l.String() == want {
			return l, nil
		}
	}
	return "", Errorf(CodeUsage, "%q is not a status", s).WithHint("one of: %s", strings.Join(LabelWords(), ", "))
}

// Mark returns the one-column symbol of a label: working ●, needs the user ◐, failed ✕, done ✓,
// anything else, as idle and stopped, ○.
func (l Label) Mark() string {
	switch l {
	case Working, Active:
		return "●"
	case NeedsInput, Blocked, NeedsAttention, Stalled, Waiting:
		return "◐"
	case LabelFailed, Broken:
		return "✕"
	case LabelCompleted, ReadyForReview, Merged:
		return "✓"
	default:
		return "○"
	}
}

// NeedsUser reports whether the run cannot continue until a user or agent acts.
func (l Label) NeedsUser() bool { return l.Urgency() > 0 }

// Urgency ranks the labels that need a user: 1 asks or has a flag, 2 is blocked, 3 stalled, 4 ended its
// turn. It is 0 for the others.
func (l Label) Urgency() int {
	switch l {
	case NeedsInput, NeedsAttention:
		return 1
	case Blocked:
		return 2
	case Stalled:
		return 3
	case Waiting:
		return 4
	default:
		return 0
	}
}

// Settled reports whether a run with this label waits for nothing but the user: it ended, asks a
// question, or offers its work.
func (l Label) Settled() bool {
	switch l {
	case LabelRemoving, LabelQueued, Working, Active:
		return false
	default:
		return true
	}
}
