package agency

import "time"

// LandingID names one landing: "l_" and a ULID.
type LandingID string

// LandingPrefix begins every LandingID.
const LandingPrefix = "l_"

// LandingMethod is how the commits of a run become commits of the target.
type LandingMethod string

// The methods.
const (
	LandSquash LandingMethod = "squash" // one new commit with everything
	LandFF     LandingMethod = "ff"     // the commits as they are, on top of the target
	LandMerge  LandingMethod = "merge"  // the commits as they are, and a merge commit
	LandRebase LandingMethod = "rebase" // each commit again, on top of the target
)

// LandingMethods returns all methods, the default first.
func LandingMethods() []LandingMethod {
	return []LandingMethod{LandSquash, LandFF, LandMerge, LandRebase}
}

// LandingState is how far a landing is. What git has decides where the two disagree.
type LandingState string

// The states. A landing that was cut off while it is moving or undoing is settled by the next
// daemon.
const (
	LandingMoving  LandingState = "moving"  // recorded and pinned; the target may have moved
	LandingLanded  LandingState = "landed"  // the target has the candidate
	LandingFailed  LandingState = "failed"  // the target was not moved
	LandingUndoing LandingState = "undoing" // the target may have been taken back
	LandingUndone  LandingState = "undone"  // the target was taken back to where it stood
)

// Landing is the record of bringing the work of a run into a branch.
type Landing struct {
	ID        LandingID     `json:"id"`         // l_ and a ULID; of a dry run empty
	Seq       int64         `json:"seq"`        // order of creation
	RunID     RunID         `json:"run_id"`     // the run whose work it brings in
	Target    string        `json:"target"`     // a branch, without refs/heads/
	Method    LandingMethod `json:"method"`     // how the commits become commits of the target
	Source    string        `json:"source"`     // the commit that was brought in
	TargetOld string        `json:"target_old"` // where the target stood
	Candidate string        `json:"candidate"`  // the new commit of the target
	// The target moves from MoveFrom to MoveTo, in one step with other landings of a queue: theirs are
	// the commits between. Alone, these are TargetOld and Candidate.
	MoveFrom  string       `json:"-"`
	MoveTo    string       `json:"-"`
	Worktree  string       `json:"worktree"`   // the path of the one that has the target checked out; empty when none has
	State     LandingState `json:"state"`      // how far it is
	Error     string       `json:"error"`      // why it failed; empty for the other states
	Cleanup   bool         `json:"-"`          // the run is still to be removed, once it landed
	CreatedAt time.Time    `json:"created_at"` // when it was recorded, before the target moved
	EndedAt   *time.Time   `json:"ended_at"`   // when it came to its state; null while it is moving
}

// LandingRef returns the ref by which git keeps a commit of a landing: "source", "target-old" or
// "candidate".
func LandingRef(id LandingID, part string) string {
	return "refs/agency/landings/" + string(id) + "/" + part
}

// ChangedFile is a file in which two commits differ, with its mode and object in each; a file that
// one of them does not have has the object "".
type ChangedFile struct {
	Path     string
	Status   string // a letter, as git writes it
	From, To string
}

// Commit is one commit as a review lists it. Its texts are untrusted.
type Commit struct {
	ID      string    `json:"id"`      // its full name in git
	Author  string    `json:"author"`  // the name of its author, without the address
	At      time.Time `json:"at"`      // when its author wrote it
	Subject string    `json:"subject"` // the first line of its message
}

// LandingSettings are the choices of a landing, as [landing] and [forge] of the configuration and
// of agency.toml have them. An empty text leaves the choice open.
type LandingSettings struct {
	Target      string        // a branch
	Method      LandingMethod // how the commits of the run become commits of the target
	Uncommitted string        // RefuseUncommitted or IncludeUncommitted
	Checkout    string        // CheckoutDisjoint, CheckoutClean or CheckoutNever
	After       string        // AfterKeep or AfterGC
	Remote      string        // the name of the remote to push to
	Forge       ForgeKind     // of that remote
}

// The values of LandingSettings.
const (
	RefuseUncommitted  = "refuse"
	IncludeUncommitted = "include"  // in a commit of its own
	CheckoutDisjoint   = "disjoint" // a checkout of the target may have changes in other files
	CheckoutClean      = "clean"    // a checkout of the target must have no changes of tracked files
	CheckoutNever      = "never"    // a target that is checked out is not moved
	AfterKeep          = "keep"
	AfterGC            = "gc" // an ended run is removed once it landed
)

// AgentLanding is what a session did to land the work of one of its complete agents, once.
type AgentLanding struct {
	State AgentLandingState `json:"state,omitempty"`
	// Note is why it was refused and what to do, or the agents that have the work; else empty.
	// Untrusted.
	Note string `json:"note,omitempty"`
}

// AgentLandingState is how the session's part in a landing ended.
type AgentLandingState string

// The states. Empty is not done, or not to be done.
const (
	WorkQueued  AgentLandingState = "queued"  // it got a place in the landing queue
	WorkLanded  AgentLandingState = "landed"  // it is in its target
	WorkPart    AgentLandingState = "part"    // it lands with the agents that started from it
	WorkNothing AgentLandingState = "nothing" // there is nothing to land
	WorkRefused AgentLandingState = "refused"
)
