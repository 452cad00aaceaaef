package agency

import (
	"fmt"
	"strings"
	"time"
)

// Label is the status that people see. It is derived from stored facts each time it is shown, never stored.
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

// Labels are all labels, in the order in which they are decided.
func Labels() []Label {
	return []Label{
		Broken, LabelRemoving, Merged, Abandoned, LabelFailed, NeedsAttention, LabelQueued, NeedsInput, ReadyForReview, Blocked,
		LabelCompleted, LabelKilled, Stalled, Waiting, Working, Active, Idle,
	}
}

// ParseLabel reads a label as people type it: "needs-input", "needs_input" and "needs input" are one.
func ParseLabel(s string) (Label, error) {
	want := strings.NewReplacer("-", " ", "_", " ").Replace(strings.ToLower(s))
	for _, l := range Labels() {
		if string(l) == want {
			return l, nil
		}
	}
	names := make([]string, 0, len(Labels()))
	for _, l := range Labels() {
		names = append(names, strings.ReplaceAll(string(l), " ", "-"))
	}
	return "", Errorf(CodeUsage, "%q is not a status", s).WithHint("one of: %s", strings.Join(names, ", "))
}

// Mark is the one-column sign of a label: working ●, needs a person ◐, idle ○, failed ✕, done ✓.
func (l Label) Mark() string {
	switch l {
	case Working, Active:
		return "●"
	case NeedsInput, Blocked, NeedsAttention, Stalled, Waiting:
		return "◐"
	case LabelFailed, Broken, LabelKilled:
		return "✕"
	case LabelCompleted, ReadyForReview, Merged:
		return "✓"
	default:
		return "○"
	}
}

// NeedsPerson says that the run goes no further until somebody acts.
func (l Label) NeedsPerson() bool {
	return l == NeedsInput || l == Blocked || l == NeedsAttention || l == Stalled || l == Waiting
}

// Settled says that a run with this label waits for nothing but a person: it ended, or asks, or offers its work.
func (l Label) Settled() bool {
	switch l {
	case LabelRemoving, LabelQueued, Working, Active:
		return false
	default:
		return true
	}
}

// StallThreshold is the default time without a sign of status after which a working agent is called stalled.
const StallThreshold = 15 * time.Minute

// Observed is the newest reading of a run's contract file in one attempt.
type Observed struct {
	Contract *Contract // nil when the file is missing or invalid
	Problem  string    // why it is invalid; empty when it is fine or missing
	At       time.Time // when this content was first seen
}

// Facts are everything that a status is derived from.
type Facts struct {
	RecordProblem  string // the record cannot be read, or disagrees with its snapshot
	Run            *Run
	StallThreshold time.Duration // of runs that have none of their own; 0 is none
	SessionGone    bool          // no tmux session and no wrapper can be seen of a run that has not ended
	SilentSince    time.Time     // when a wrapper that lives last moved, if that is too long ago
	Earlier        []Attempt     // for Explain: the attempts before the newest, which decide nothing
}

// Status is a derived label with the words that go with it.
type Status struct {
	Label   Label     `json:"label"`
	Summary string    `json:"summary"` // the question, the blocker, the summary, or the reason; untrusted text
	Since   time.Time `json:"since"`   // when the deciding evidence was observed
	Problem string    `json:"problem"` // "invalid status file: why", or that the wrapper does not answer; empty when all is fine
	Decided By        `json:"decided_by"`
	// Request is what the agent waits for; null unless evidence of its own says so.
	Request *Request `json:"request"`
}

// By is what decided a status: a source of evidence, or one of those below.
type By string

// What decides beside the sources of evidence.
const (
	ByRecord   By = "record"   // what was done to the run: merged, abandoned, flagged
	ByProcess  By = "process"  // what the kernel knows of the runner, its wrapper and its terminal
	ByContract By = "contract" // the runner's status file
	ByMessage  By = "message"  // what was sent to the agent
	ByClock    By = "clock"    // that nothing came for too long
)

// Derive is the one derivation of a status, pure and total: process truth first, then the agent's situation, then the
// label; the first rule that holds wins. The rules and their order are those of docs/state-machine.md.
func Derive(f Facts, now time.Time) Status {
	v := newView(f, now)
	for i := range rules {
		if found, holds := rules[i].holds(&v); holds {
			return v.status(&rules[i], found)
		}
	}
	return Status{} // the last rule always holds
}

// Summary is a request in a few words. They are the agent's, so they are untrusted.
func (r *Request) Summary() string {
	if r.Kind != AsksPermission || r.Tool == "" {
		return r.Text
	}
	if r.Text == "" {
		return "may it use " + r.Tool + "?"
	}
	return "may it use " + r.Tool + "? " + r.Text
}

// progress is what an agent at work says that it does. A question that was answered is no longer it.
func progress(c *Contract) string {
	switch {
	case c == nil:
		return ""
	case c.Status == SaysWorking:
		return c.Summary
	default:
		return "(working on your message)"
	}
}

func waitingSummary(a *Attempt) string {
	switch s := &a.Situation; {
	case s.Failure != nil:
		return "(" + s.Failure.words() + ")"
	case s.Interrupted:
		return "(interrupted)"
	default:
		if word := lastWord(a.OwnWord()); word != "" {
			return word
		}
		return "(its turn ended)"
	}
}

// lastWord is the summary of a run that is over.
func lastWord(c *Contract) string {
	if c == nil {
		return ""
	}
	return c.Summary
}

func failureSummary(a *Attempt) string {
	switch {
	case a.Error != "":
		return "(" + a.Error + ")"
	case a.ExitCode != nil:
		return fmt.Sprintf("(exit %d)", *a.ExitCode)
	default:
		return "(" + string(a.ErrorCode) + ")"
	}
}

func first(list []string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// ShortDuration writes a duration as people read it in a table: 45s, 5m, 2h, 2h5m, 3d.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		if m := int(d.Minutes()) % 60; m != 0 {
			return fmt.Sprintf("%dh%dm", int(d.Hours()), m)
		}
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}
