// Package status holds the rules of a status: the state that the evidence of an attempt adds up to
// ([Observe]), the status that users see of a run ([Derive]), and its reasons ([Explain]). It is
// pure.
package status

import (
	"fmt"
	"strings"
	"time"

	"agency"
)

// Facts are the inputs from which a status is derived.
type Facts struct {
	RecordProblem     string // the record is unreadable, or disagrees with its snapshot
	Run               *agency.Run
	StallThreshold    time.Duration    // for runs that set none; 0 is none
	SessionGone       bool             // a run that has not ended has no visible tmux session and no wrapper
	UnresponsiveSince time.Time        // when a live wrapper last responded, if that is too long ago
	Earlier           []agency.Attempt // for Explain: the attempts before the newest; they decide nothing
}

// Derive returns the status of a run; it is pure and total, and the only derivation. Process facts
// come first, then the agent's state, then the label; the first rule that holds wins. The rules and
// their order are those of docs/state-machine.md.
func Derive(f Facts, now time.Time) agency.Status {
	v := newView(f, now)
	for i := range rules {
		if found, holds := rules[i].holds(&v); holds {
			return v.status(&rules[i], found)
		}
	}
	return agency.Status{} // the last rule always holds
}

// progress returns what a working agent reports about its work. An answered question does not
// count.
func progress(c *agency.Contract) string {
	switch {
	case c == nil:
		return ""
	case c.Status == agency.ReportedWorking:
		return c.Summary
	default:
		return "(working on your message)"
	}
}

func waitingSummary(a *agency.Attempt) string {
	switch s := &a.AgentState; {
	case s.Failure != nil:
		return "(" + s.Failure.Words() + ")"
	case s.Interrupted:
		return "(interrupted)"
	default:
		if word := lastReported(a.OwnReport()); word != "" {
			return word
		}
		return "(its turn ended)"
	}
}

// lastReported returns the summary of a run that is over.
func lastReported(c *agency.Contract) string {
	if c == nil {
		return ""
	}
	return c.Summary
}

func failureSummary(a *agency.Attempt) string {
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
