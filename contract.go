package agency

import "time"

// Where agency keeps its files in a worktree, relative to it.
const (
	DotDir           = ".agency"
	PromptFile       = ".agency/prompt.md"
	InstructionsFile = ".agency/INSTRUCTIONS.md"
	ReportFile       = ".agency/report.md"
	FilesDir         = ".agency/files" // what the user attached to messages
	StateDir         = ".agency/state"
	ContractFile     = ".agency/state/runner_status.json"
	ReportsFile      = ".agency/state/reports.jsonl" // what agency report adds to the contract, one line each
	AttemptFile      = ".agency/state/attempt"       // number of the attempt that works here; the first attempt has no such file
)

// ContractLimit is the largest contract file that is read, in bytes.
const ContractLimit = 64 << 10

// ReportsLimit is the largest file of reports that is read, in bytes.
const ReportsLimit = 1 << 20

// MaxQuiet is the longest time without signs that an agent may declare.
const MaxQuiet = 24 * time.Hour

// ContractVersion is the schema_version of the contract.
const ContractVersion = "1.0"

// ReportedStatus is the status that a runner reports of itself.
type ReportedStatus string

// The values of ReportedStatus.
const (
	ReportedWorking        ReportedStatus = "working"          // the agent is working
	ReportedNeedsInput     ReportedStatus = "needs_input"      // it cannot continue without an answer
	ReportedBlocked        ReportedStatus = "blocked"          // something outside of the task stops it
	ReportedReadyForReview ReportedStatus = "ready_for_review" // its work is done and checked
)

// Words returns all values of ReportedStatus.
func Words() []ReportedStatus {
	return []ReportedStatus{ReportedWorking, ReportedNeedsInput, ReportedBlocked, ReportedReadyForReview}
}

// Contract is the content of runner_status.json, in which the runner reports its status. It is
// untrusted text; a caller that shows it must make it safe for a terminal first.
type Contract struct {
	SchemaVersion string         `json:"schema_version"` // 1.0
	Status        ReportedStatus `json:"status"`         // what the agent reports of itself
	UpdatedAt     string         `json:"updated_at"`     // as the runner wrote it; it decides nothing
	Summary       string         `json:"summary"`        // what it does, or has done, in a sentence
	Questions     []string       `json:"questions"`      // what it wants to know; of needs_input at least one
	Blockers      []string       `json:"blockers"`       // what stops it; of blocked at least one
	HowToTest     string         `json:"how_to_test"`    // how to check the work; of ready_for_review never empty
	Risks         []string       `json:"risks"`          // what may go wrong with the work
}

// Asks reports whether the agent waits for an answer or for help, as it reported.
func (c *Contract) Asks() bool {
	return c.Status == ReportedNeedsInput || c.Status == ReportedBlocked
}

// startingWork is the summary that agency itself writes before the agent has reported anything.
const startingWork = "Starting work"

// OwnReport returns the newest contract that the agent of an attempt wrote itself; nil when it
// wrote none, or none that is readable. The contract that agency writes before the start does not
// count.
func (a *Attempt) OwnReport() *Contract {
	c := a.Reported.Contract
	if c != nil && c.Status == ReportedWorking && c.Summary == startingWork && c.UpdatedAt == NewContract(a.CreatedAt).UpdatedAt {
		return nil
	}
	return c
}

// NewContract returns the first contract of an attempt, which agency writes before the runner
// starts.
func NewContract(at time.Time) Contract {
	return Contract{
		SchemaVersion: ContractVersion,
		Status:        ReportedWorking,
		UpdatedAt:     at.UTC().Format(time.RFC3339),
		Summary:       startingWork,
		Questions:     []string{},
		Blockers:      []string{},
		Risks:         []string{},
	}
}
