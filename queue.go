package agency

import "time"

// QueueState is how far an entry of a landing queue is.
type QueueState string

// The states. The queue works on the first four by itself, EntryConflict and EntryFixing wait for
// the agent and EntryHeld for the user; the others are final.
const (
	EntryQueued   QueueState = "queued"   // its turn has not come
	EntryChecking QueueState = "checking" // the target's checks run on it, and on those before it
	EntryReady    QueueState = "ready"    // checked; the target cannot be moved now
	EntryLanding  QueueState = "landing"  // the target is moving to it
	EntryConflict QueueState = "conflict" // its work conflicts with the target until it changes
	EntryFixing   QueueState = "fixing"   // a check does not pass because of its work, until that changes
	EntryHeld     QueueState = "held"     // it waits for the user, or for its branch; held_for has which
	EntryLanded   QueueState = "landed"   // its work is in the target
	EntryFailed   QueueState = "failed"   // a check does not pass because of it
	EntryDropped  QueueState = "dropped"  // removed, or there was nothing to land
)

// Asked is how the agent of an entry was asked to solve its conflict, or to fix what a check found.
type Asked string

// The ways to ask.
const (
	AskedNot     Asked = ""        // the queue is about to ask
	AskedMessage Asked = "message" // typed into its terminal, or in its inbox
	AskedResume  Asked = "resume"  // by another attempt of its run
	AskedRun     Asked = "run"     // a new run continues the work of a removed one, and has an entry of its own
	AskedUser    Asked = "user"    // it cannot be asked: the user must act
)

// HeldFor is what a held entry waits for.
type HeldFor string

// What entries wait for.
const (
	HeldByHand      HeldFor = ""         // the user who held it
	HeldForApproval HeldFor = "approval" // the user must approve the work
	HeldForWork     HeldFor = "work"     // it cannot land as it is, such as work that is not committed
	HeldForConflict HeldFor = "conflict" // its agent did not solve the conflict, as often as it was asked
	HeldForTarget   HeldFor = "target"   // its branch is gone; when that is there again, the queue continues
)

// Final reports whether the entry has left the queue.
func (s QueueState) Final() bool {
	return s == EntryLanded || s == EntryFailed || s == EntryDropped
}

// WithAgent reports whether the entry waits for its agent to change its work.
func (s QueueState) WithAgent() bool { return s == EntryConflict || s == EntryFixing }

// Held reports whether the entry waits for the user, and not only for its branch to be there again.
func (e *QueueEntry) Held() bool { return e.State == EntryHeld && e.HeldFor != HeldForTarget }

// Moving reports whether the queue itself works on the entry.
func (s QueueState) Moving() bool {
	return s == EntryQueued || s == EntryChecking || s == EntryReady || s == EntryLanding
}

// QueueEntry is the record of a run whose work is to land in a branch when its turn comes.
type QueueEntry struct {
	Seq       int64      `json:"seq"`        // the order of landing
	RunID     RunID      `json:"run_id"`     // the run whose work is to land
	Run       string     `json:"run"`        // its name, or else its handle
	Repo      string     `json:"repo"`       // the UUID that agency gave the repository
	Target    string     `json:"target"`     // a branch, without refs/heads/
	Source    string     `json:"source"`     // the commit that is to land
	State     QueueState `json:"state"`      // how far it is
	Reason    string     `json:"reason"`     // why it is in this state; empty when the state is reason enough
	Rounds    int        `json:"rounds"`     // how often its work came with a conflict or a failure that its agent is asked to mend
	Asked     Asked      `json:"asked"`      // how its agent was asked to
	HeldFor   HeldFor    `json:"held_for"`   // what it waits for while it is held
	Approved  string     `json:"approved"`   // the source that the user approved; empty for none
	By        string     `json:"by"`         // the id of the run that added it, or user
	InsteadOf RunID      `json:"instead_of"` // the removed run whose work its run continues; empty for none
	Landing   LandingID  `json:"landing"`    // the id of the landing that brought it in; empty before
	AddedAt   time.Time  `json:"added_at"`   // when the run was added to the queue
	ChangedAt time.Time  `json:"changed_at"` // when the entry last changed
}

// Queue is the record of the queue of one branch of a repository.
type Queue struct {
	Repo   string `json:"repo"`   // the UUID that agency gave the repository
	Target string `json:"target"` // its branch, without refs/heads/
	Paused bool   `json:"paused"` // the user paused it
	Note   string `json:"note"`   // why nothing lands now; empty when nothing is in the way
}

// QueueRef names a queue: one branch of a repository.
type QueueRef struct{ Repo, Target string }

// QueueFilter chooses entries of queues. An empty field chooses all.
type QueueFilter struct {
	Repo   string // fingerprint
	Target string
	Run    RunID
	Open   bool // without final ones
}
