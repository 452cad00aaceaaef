package api

import (
	"time"

	"agency"
)

// ExplainRunResponse explains why a run has its status.
type ExplainRunResponse struct {
	Run         Run                `json:"run"`
	Explanation agency.Explanation `json:"explanation"`
	Newest      []EvidenceLine     `json:"newest"` // the last lines of the attempt's evidence, the newest last
}

// EvidenceLine is the content of one line of an attempt's evidence. Its texts are the agent's.
type EvidenceLine struct {
	At       time.Time     `json:"at"`
	Source   agency.Source `json:"source"`
	Signal   agency.Signal `json:"signal"`
	Event    string        `json:"event"` // the agent's own name for it
	Tool     string        `json:"tool"`
	Text     string        `json:"text"`
	Subagent string        `json:"subagent"` // empty means the agent itself
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
