package agency

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Check is a program of a repository that decides whether work may land. ProjectFile lists them.
type Check struct {
	Name    string
	Run     []string      // a program and its arguments, as in Project.Setup
	Timeout time.Duration // of one execution
	Retries int           // how often a program that fails is run again
	Files   []string      // git's glob patterns of more files that decide the verdict, besides those that Run names
}

// FlaggedByChecks is Flag.By of a run whose checks did not pass.
const FlaggedByChecks = "checks"

// FlaggedByLanding is Flag.By of a run whose landing was refused by a conflict.
const FlaggedByLanding = "landing"

// DefaultCheckTimeout is the timeout of a check whose configuration has none.
const DefaultCheckTimeout = 20 * time.Minute

// Hash returns the hash of what agency does for the check: it depends on the check itself and on
// how the repository prepares a worktree.
func (c *Check) Hash(p *Project) string {
	data, err := json.Marshal([]any{c.Name, c.Run, c.Timeout, c.Retries, p.Setup, p.SetupTimeout, p.Copy, p.Link})
	if err != nil {
		panic(err) // texts and numbers can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	CheckPassed   Verdict = "pass"    // the program ended with exit status 0
	CheckFailed   Verdict = "fail"    // it ended by itself in any other way
	CheckTimedOut Verdict = "timeout" // it took longer than it may
	CheckBroken   Verdict = "broken"  // the program could not be started, something ended it, or the worktree could not be prepared
)

// Lasts reports whether the same check of the same files gives the verdict again, so that it need
// not run. A timeout can be the fault of a busy machine, and a broken check that of a missing
// program or of a kernel that is short of memory.
func (v Verdict) Lasts() bool { return v == CheckPassed || v == CheckFailed }

// CheckResult is the verdict of one check on one tree, and the work of a run for which it was
// found.
type CheckResult struct {
	ID      string    `json:"id"`       // c_ and a ULID
	Name    string    `json:"name"`     // of the check, as agency.toml has it
	Verdict Verdict   `json:"verdict"`  // the result
	Reason  string    `json:"reason"`   // why it is not a pass: "failed with exit 2"; empty for a pass
	Runs    int       `json:"runs"`     // how often the program ran; a pass after more than one is flaky
	Commit  string    `json:"commit"`   // the commit that was checked first
	Tree    string    `json:"tree"`     // git's name of the files that were checked: a verdict holds for the same files in another commit
	Began   time.Time `json:"began_at"` // when the first execution began
	Ended   time.Time `json:"ended_at"` // when the last execution ended
	Log     string    `json:"log"`      // path of its output

	Source string    `json:"source"`      // the commit of the run's work
	Target string    `json:"target"`      // the branch whose configuration names the check
	Merged bool      `json:"merged"`      // the work was checked as merged with the target
	Cached bool      `json:"cached"`      // the verdict was known before
	At     time.Time `json:"verified_at"` // when it was found for the run
}

// CheckState is what is known of a check for work that is to land: the verdict, or why there is
// none.
type CheckState string

// The states besides the verdicts.
const (
	CheckNotRun  CheckState = "not run" // agency has no verdict on this work, and the check is not running
	CheckRunning CheckState = "running" // it runs now
	CheckHeld    CheckState = "held"    // the work changes files that decide what the checks run
)

// KnownCheck is what is known of a check for work that is to land.
type KnownCheck struct {
	Name   string     `json:"name"`     // of the check, as agency.toml has it
	State  CheckState `json:"state"`    // pass, fail, timeout, broken, running, held or not run
	Reason string     `json:"reason"`   // why it is not a pass; empty for a pass, and when it did not run
	Runs   int        `json:"runs"`     // how often the program ran; a pass after more than one is flaky; 0 without a verdict
	Ended  *time.Time `json:"ended_at"` // when the last execution ended; null without a verdict
}

// CheckKey identifies what a verdict holds for: nothing identical is checked twice.
type CheckKey struct {
	Repo  string // fingerprint
	Tree  string
	Check string // Check.Hash
	Env   string // hash of the environment of the check, and of the machine
}
