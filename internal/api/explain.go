package api

import (
	"time"

	"agency"
)

// ExplainRunResponse explains why a run has its status.
type ExplainRunResponse struct {
	Run         Run                `json:"run"`         // as it is now
	Explanation agency.Explanation `json:"explanation"` // the rule that decided, and all evidence
	Newest      []EvidenceLine     `json:"newest"`      // the last lines of the attempt's evidence, the newest last
}

// EvidenceLine is the content of one line of an attempt's evidence. Its texts are the agent's.
type EvidenceLine struct {
	At       time.Time     `json:"at"`       // when agency observed it
	Source   agency.Source `json:"source"`   // where it comes from
	Signal   agency.Signal `json:"signal"`   // what it shows
	Event    string        `json:"event"`    // the agent's own name for it
	Tool     string        `json:"tool"`     // the tool that it is about; empty for none
	Text     string        `json:"text"`     // the question, the command or the message; untrusted
	Subagent string        `json:"subagent"` // the subagent that it is about; empty means the agent itself
}

// NewEvidenceLines returns the view of lines of evidence.
func NewEvidenceLines(evidence []agency.Evidence) []EvidenceLine {
	lines := make([]EvidenceLine, 0, len(evidence))
	for i := range evidence {
		e := &evidence[i]
		lines = append(lines, EvidenceLine{e.At, e.Source, e.Signal, e.Event, e.Tool, e.Text, e.Subagent})
	}
	return lines
}
