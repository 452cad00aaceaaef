package agency

import "strings"

// Label is the status that users see. It is derived from stored facts each time it is shown, never
// stored.
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
func (l Label) NeedsUser() bool {
	return l == NeedsInput || l == Blocked || l == NeedsAttention || l == Stalled || l == Waiting
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
