package watchdog

import (
	"fmt"
	"slices"
	"time"

	"agency"
	"agency/internal/status"
)

// TurnEndedTimeout is how long an agent may rest after a turn without a report before an alert
// opens: a user in a conversation with it answers sooner.
const TurnEndedTimeout = time.Minute

// Condition is why a user or an agent must act on a worker now. Two conditions with the same kind
// and cause are one episode.
type Condition struct {
	Kind       agency.AlertKind
	Cause      string // distinguishes this episode from a later one of the same kind
	Since      time.Time
	PromptType agency.PromptType
	PromptID   string            // of the request that can be answered; empty when there is none
	Class      agency.ErrorClass // of a model error or an error line
	Text       string            // the question, the error or the last message; untrusted
	// FirmAt is until when better words for a request, or an earlier request, may come; zero is
	// now.
	FirmAt time.Time
}

// DetailTimeout is how long an alert about a request waits for the text of the request.
const DetailTimeout = 300 * time.Millisecond

// Alarm returns the condition of a worker, from the same status that users see; its kind is empty
// while no action is needed. active is the newest sign of life. Stuck is not among the conditions:
// it needs the memory of the Watchdog.
func Alarm(r *agency.Run, s agency.Status, active, now time.Time) Condition {
	a := &r.Attempt
	is := func(kind agency.AlertKind, cause string) Condition {
		return Condition{Kind: kind, Cause: cause, Since: s.Since, Text: s.Summary}
	}
	switch s.Label {
	case agency.LabelFailed:
		if f := r.Flag; f != nil && f.At.After(s.Since) {
			return flagCondition(f, "") // the recipient of the failure's alert may have flagged it for another reader
		}
		if a.ErrorCode == agency.CodeRunnerDisappeared || a.EndedBy == agency.EndedByStartFailed || a.StartedAt == nil {
			return is(agency.AlertLost, "lost")
		}
		return is(agency.AlertError, "ended")
	case agency.NeedsAttention:
		return flagCondition(r.Flag, s.PromptID())
	case agency.NeedsInput:
		return asks(a, &s)
	case agency.Blocked:
		if rep := a.AgentState.Reported; s.Decided == agency.DecidedBy(agency.FromReport) && rep != nil && rep.Report == agency.ReportsError {
			return is(agency.AlertError, "reported "+stamp(s.Since))
		}
		c := is(agency.AlertNeedsInput, "blocked "+stamp(s.Since))
		c.PromptType, c.PromptID = agency.PromptBlocked, s.PromptID()
		return c
	case agency.ReadyForReview:
		if a.State == agency.Killed {
			return Condition{} // the user or agent who stopped it knows
		}
		return is(agency.AlertComplete, "offered "+stamp(s.Since))
	case agency.LabelCompleted:
		return is(agency.AlertComplete, "ended")
	case agency.Waiting:
		if f := a.AgentState.Failure; f != nil {
			c := is(agency.AlertError, "model "+string(f.Class)+" "+stamp(f.At))
			c.Class, c.Text = f.Class, f.Words()
			return c
		}
		if c := printedError(a, active); c.Kind != "" {
			return c
		}
		if now.Sub(s.Since) >= TurnEndedTimeout {
			c := is(agency.AlertNeedsInput, "rests "+stamp(s.Since))
			c.PromptType, c.PromptID = agency.PromptTurnEnded, s.PromptID()
			return c
		}
	case agency.Working, agency.Active, agency.Stalled:
		return printedError(a, active)
	default: // no action is needed
	}
	return Condition{}
}

// asks returns the condition of an agent that waits for an answer.
func asks(a *agency.Attempt, s *agency.Status) Condition {
	c := Condition{Kind: agency.AlertNeedsInput, Cause: "asks " + stamp(s.Since), Since: s.Since, Text: s.Summary}
	c.PromptType, c.PromptID = agency.PromptInput, s.PromptID()
	if s.Request != nil {
		// Without its id, which a source with more detail may report later; that is not a new
		// episode.
		c.Cause, c.PromptType = "request "+stamp(s.Request.At), promptType(s.Request)
		if !firm(&a.AgentState, s.Request) {
			c.FirmAt = s.Request.At.Add(DetailTimeout)
		}
	}
	return c
}

// printedError returns the condition of an agent that printed an error. Everything that the agent
// reports by other means comes first.
func printedError(a *agency.Attempt, active time.Time) Condition {
	if !status.ErrorStands(a, active) {
		return Condition{}
	}
	p := a.AgentState.Printed
	return Condition{Kind: agency.AlertError, Cause: "output " + stamp(p.At), Since: p.At, Class: p.Class, Text: p.Text}
}

// NextLook returns when a condition may begin by time alone; zero is never.
func NextLook(s agency.Status) time.Time {
	if s.Label == agency.Waiting {
		return s.Since.Add(TurnEndedTimeout)
	}
	return time.Time{}
}

// promptType returns the type of input that a worker with this request waits for.
func promptType(r *agency.Request) agency.PromptType {
	switch r.Kind {
	case agency.AsksPermission:
		return agency.PromptPermission
	case agency.AsksDialog:
		return agency.PromptConfirmation
	case agency.AsksQuestion:
	}
	return agency.PromptInput
}

// Watchable reports whether a run with this status could be stuck: its status is one of work.
func Watchable(l agency.Label) bool {
	return l == agency.Working || l == agency.Active || l == agency.Stalled
}

// flagCondition returns the condition of a flagged worker.
func flagCondition(f *agency.Flag, promptID string) Condition {
	return Condition{Kind: agency.AlertNeedsInput, Cause: f.Cause(), Since: f.At, PromptType: agency.PromptAttention, PromptID: promptID, Text: f.Reason}
}

// firm reports whether no more detail about a request is expected soon: it is named, and a program
// that shows when it waits was seen waiting.
func firm(s *agency.AgentState, r *agency.Request) bool {
	views := slices.ContainsFunc([]agency.Source{agency.FromSession, agency.FromTitle}, func(view agency.Source) bool { return s.Sources[view].Count > 0 })
	return r.ID != "" && (r.Shown || !views) || r.Source == agency.FromScreen
}

// stamp formats a time for the cause of an episode.
func stamp(t time.Time) string { return fmt.Sprint(t.UnixMilli()) }
