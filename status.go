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
		Broken, Merged, Abandoned, LabelFailed, NeedsAttention, LabelQueued, NeedsInput, ReadyForReview, Blocked,
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
	case LabelQueued, Working, Active:
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

// Evidence is everything that a status is derived from.
type Evidence struct {
	RecordProblem  string // the record cannot be read, or disagrees with its snapshot
	Run            *Run
	StallThreshold time.Duration
}

// Status is a derived label with the words that go with it.
type Status struct {
	Label   Label     `json:"label"`
	Summary string    `json:"summary"` // the question, the blocker, the summary, or the reason; untrusted text
	Since   time.Time `json:"since"`   // when the deciding evidence was observed
	Problem string    `json:"problem"` // "invalid status file: why"; empty when all is fine
}

// Derive is the one derivation of a status, pure and total: process truth first, then the agent's own word, then the
// label; the first rule that matches wins. The rules and their order are documented in docs/state-machine.md.
func Derive(e Evidence, now time.Time) Status {
	s := Status{}
	is := func(l Label, since time.Time, summary string) Status {
		s.Label, s.Since, s.Summary = l, since, summary
		return s
	}
	if e.RecordProblem != "" || e.Run == nil {
		return is(Broken, time.Time{}, e.RecordProblem)
	}
	r, a := e.Run, &e.Run.Attempt
	word, c := a.Word, a.Word.Contract
	if word.Problem != "" {
		s.Problem = "invalid status file: " + word.Problem
	}
	changed := lastChange(r)
	// A question stands until the agent says something else or somebody answers.
	answered := c != nil && a.InputAt != nil && word.At.Before(*a.InputAt) && (c.Status == SaysNeedsInput || c.Status == SaysBlocked)
	says := func(w Word) bool { return c != nil && c.Status == w && a.State != Killed && !answered }
	switch {
	case r.MergedAt != nil:
		return is(Merged, *r.MergedAt, lastWord(c))
	case r.Abandoned:
		return is(Abandoned, changed, lastWord(c))
	case a.State == Failed:
		return is(LabelFailed, changed, failureSummary(a))
	case r.NeedsAttention != "":
		return is(NeedsAttention, changed, r.NeedsAttention)
	case a.State == Queued:
		return is(LabelQueued, changed, "(starting)")
	case says(SaysNeedsInput):
		return is(NeedsInput, word.At, first(c.Questions))
	case says(SaysReadyForReview):
		return is(ReadyForReview, word.At, c.Summary)
	case says(SaysBlocked):
		return is(Blocked, word.At, first(c.Blockers))
	case a.State == Completed:
		return is(LabelCompleted, changed, lastWord(c))
	case a.State == Killed:
		return is(LabelKilled, changed, "(stopped)")
	}
	// The runner is alive from here on.
	heard := word.At
	if heard.Before(changed) {
		heard = changed
	}
	if answered {
		heard = *a.InputAt
	}
	if quiet := now.Sub(heard); e.StallThreshold > 0 && quiet >= e.StallThreshold {
		return is(Stalled, heard, "(no activity for "+ShortDuration(quiet)+")")
	}
	if c != nil {
		return is(Working, heard, c.Summary)
	}
	return is(Active, changed, s.Problem)
}

// lastChange is when the newest attempt reached the state it is in.
func lastChange(r *Run) time.Time {
	switch a := &r.Attempt; {
	case a.EndedAt != nil:
		return *a.EndedAt
	case a.StartedAt != nil:
		return *a.StartedAt
	default:
		return a.CreatedAt
	}
}

// lastWord is the summary of a run that is over. What agency said for the agent is no word of its own.
func lastWord(c *Contract) string {
	if c == nil || c.Status == SaysWorking && c.Summary == startingWork {
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
