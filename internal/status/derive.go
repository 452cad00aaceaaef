// Package status has the rules of a status: what the evidence of an attempt comes to ([Observe]), what people see of a run
// ([Derive]), and why ([Explain]). It is pure.
package status

import (
	"fmt"
	"strings"
	"time"

	"agency"
)

// Facts are everything that a status is derived from.
type Facts struct {
	RecordProblem  string // the record cannot be read, or disagrees with its snapshot
	Run            *agency.Run
	StallThreshold time.Duration    // of runs that have none of their own; 0 is none
	SessionGone    bool             // no tmux session and no wrapper can be seen of a run that has not ended
	SilentSince    time.Time        // when a wrapper that lives last moved, if that is too long ago
	Earlier        []agency.Attempt // for Explain: the attempts before the newest, which decide nothing
}

// Derive is the one derivation of a status, pure and total: process truth first, then the agent's situation, then the
// label; the first rule that holds wins. The rules and their order are those of docs/state-machine.md.
func Derive(f Facts, now time.Time) agency.Status {
	v := newView(f, now)
	for i := range rules {
		if found, holds := rules[i].holds(&v); holds {
			return v.status(&rules[i], found)
		}
	}
	return agency.Status{} // the last rule always holds
}

// progress is what an agent at work says that it does. A question that was answered is no longer it.
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
		if word := lastWord(a.OwnWord()); word != "" {
			return word
		}
		return "(its turn ended)"
	}
}

// lastWord is the summary of a run that is over.
func lastWord(c *agency.Contract) string {
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
