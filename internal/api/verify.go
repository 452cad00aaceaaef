package api

import (
	"time"

	"agency"
)

// VerifyRunRequest runs the checks of a branch on the work of a run.
type VerifyRunRequest struct {
	Run                string `json:"run" jsonschema:"its name, handle or id; your own name for yourself"`
	Into               string `json:"into,omitempty" jsonschema:"the branch whose checks count; default: as for a landing"`
	Merged             bool   `json:"merged,omitempty" jsonschema:"check the work as merged with that branch"`
	IncludeUncommitted bool   `json:"include_uncommitted,omitempty" jsonschema:"also check what is not committed"`
	// Check is the name of the only check to run; empty means all.
	Check   string         `json:"check,omitempty" jsonschema:"only the check of this name"`
	NoCache bool           `json:"no_cache,omitempty"` // run also the checks whose verdicts are known
	Approve bool           `json:"approve,omitempty"`  // even if the work changes what the checks run; for users only
	Env     agency.Environ `json:"env,omitempty"`      // the caller's environment, for the checks
	Config  string         `json:"config,omitempty"`   // the caller's configuration file; empty means the default one
}

// A verification has no time limit of its own: each check has one, and may be repeated.
func (r VerifyRunRequest) time() time.Duration { return 0 }

func (r VerifyRunRequest) after(time.Duration) any { return r }

// VerifyRunResponse holds the verdicts.
type VerifyRunResponse struct {
	Run      Run                  `json:"run"`      // as it is afterwards
	Target   string               `json:"target"`   // the branch whose checks they are
	Source   string               `json:"source"`   // the commit of the run's work
	Commit   string               `json:"commit"`   // what was checked: the source, or its merge with the target
	Merged   bool                 `json:"merged"`   // the work was checked as merged with the target
	Passed   bool                 `json:"passed"`   // every check passed
	Checks   []agency.CheckResult `json:"checks"`   // in the order of agency.toml
	Warnings []string             `json:"warnings"` // what did not go as asked, though the checks ran
}

// ShowCheckRequest reads the output of the newest execution of a check on the work of a run.
type ShowCheckRequest struct {
	Run      string `json:"run" jsonschema:"its name, handle or id"`
	Check    string `json:"check" jsonschema:"the name of the check"`
	MaxBytes int    `json:"max_bytes,omitempty"` // of the end of the output; 0 means 1 MiB, the most
}

// ShowCheckResponse holds the end of the output of a check.
type ShowCheckResponse struct {
	RunID     agency.RunID       `json:"run_id"`    // the id of the run
	Check     agency.CheckResult `json:"check"`     // its newest verdict on the work
	Output    string             `json:"output"`    // untrusted; safe for a terminal
	Truncated bool               `json:"truncated"` // the output is longer
}
