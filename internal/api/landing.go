package api

import "agency"

// MergeRunRequest brings the work of a run into a branch, or with Undo takes a landing back.
type MergeRunRequest struct {
	Run                string `json:"run,omitempty"`                 // its name, handle or id; empty with undo
	Into               string `json:"into,omitempty"`                // the target, a branch; default: [landing] target, the run's base, or what is checked out
	Method             string `json:"method,omitempty"`              // a LandingMethod: squash, ff, merge or rebase; default: [landing] method
	Message            string `json:"message,omitempty"`             // of the commit that holds all; default: made from the run's
	IncludeUncommitted bool   `json:"include_uncommitted,omitempty"` // land what is not committed too
	DryRun             bool   `json:"dry_run,omitempty"`             // make and check the commit, and move nothing
	NoVerify           bool   `json:"no_verify,omitempty"`           // do not run the target's checks
	Approve            bool   `json:"approve,omitempty"`             // even if the work changes what the checks run
	Undo               string `json:"undo,omitempty"`                // the id of a landing to take back
	Landed             bool   `json:"landed,omitempty"`              // return the landing by which the target already has the work, instead of an error

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the checks
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// MergeRunResponse describes a landing.
type MergeRunResponse struct {
	Run      Run                 `json:"run"`      // as it is afterwards
	Landing  agency.Landing      `json:"landing"`  // what was recorded; of a dry run the id is empty, and nothing moved
	Commits  []agency.Commit     `json:"commits"`  // that the target got, the newest first
	Files    []agency.FileChange `json:"files"`    // in which the target changed
	Branch   string              `json:"branch"`   // the run's branch; empty when it was deleted
	Removed  bool                `json:"removed"`  // the run was removed once it had landed
	Already  bool                `json:"already"`  // it had landed, or with undo had been taken back, before; nothing changed
	Warnings []string            `json:"warnings"` // what did not go as asked, though the work landed
}

// ReviewRunRequest asks what a run would bring into a branch.
type ReviewRunRequest struct {
	Run  string `json:"run" jsonschema:"its name, handle or id"`
	Into string `json:"into,omitempty" jsonschema:"the branch that it would land in; default: as for a landing"`

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment: verdicts of checks hold for one
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// ReviewRunResponse is what a run would bring into a branch. Its texts are untrusted.
type ReviewRunResponse struct {
	Run         Run                  `json:"run"`         // whose work it is
	Target      string               `json:"target"`      // the branch that it would land in; empty when it cannot be tried
	Method      agency.LandingMethod `json:"method"`      // how its commits would become commits of the target; empty when it cannot be tried
	Commits     []agency.Commit      `json:"commits"`     // that the target does not have, the newest first
	Files       []agency.FileChange  `json:"files"`       // that would change in the target, with uncommitted changes
	Uncommitted []agency.FileChange  `json:"uncommitted"` // those of files that are not committed
	Nested      []string             `json:"nested"`      // repositories in the worktree with work of their own, which cannot land
	Conflicts   []string             `json:"conflicts"`   // files that conflict with the target
	Obstacle    string               `json:"obstacle"`    // why it cannot land now; empty when nothing is in the way
	Code        agency.Code          `json:"code"`        // the kind of the obstacle; empty for none
	Hint        string               `json:"hint"`        // what helps against the obstacle
	Checkout    string               `json:"checkout"`    // the worktree that has the target checked out; empty for none
	Summary     string               `json:"summary"`     // what the agent reports of its work
	HowToTest   string               `json:"how_to_test"` // what the agent reports: how to check its work
	Risks       []string             `json:"risks"`       // what the agent reports: what may go wrong with it
	Landings    []agency.Landing     `json:"landings"`    // of the run so far, the oldest first
	Comments    []agency.LineComment `json:"comments"`    // on the work, without discarded ones
	Reviewed    []string             `json:"reviewed"`    // the files that the user marked as reviewed and that did not change since
	Message     string               `json:"message"`     // what comment.send would send now; empty when there is nothing to send
	Checks      []agency.KnownCheck  `json:"checks"`      // of the target, and what is known of them for what would land
}

// AbandonRunRequest gives a run up, or takes that back.
type AbandonRunRequest struct {
	Run  string `json:"run"`            // its name, handle or id
	Undo bool   `json:"undo,omitempty"` // take the mark away
}

// CommentRequest is a comment on lines of a run's work.
type CommentRequest struct {
	File string `json:"file"`           // as the review shows it
	Line int    `json:"line"`           // the first line, from 1
	Last int    `json:"last,omitempty"` // the last line; default: line
	Old  bool   `json:"old,omitempty"`  // lines that the run deleted, as they were counted before it
	Text string `json:"text"`           // the comment, at most 8 KiB
}

// AddCommentsRequest records comments on lines of a run's work, which the agent gets by
// comment.send.
type AddCommentsRequest struct {
	Run      string           `json:"run"`            // its name, handle or id
	Into     string           `json:"into,omitempty"` // the branch that it would land in; default: as for a landing
	Comments []CommentRequest `json:"comments"`       // one or more
}

// DiscardCommentsRequest takes comments back that the agent does not have.
type DiscardCommentsRequest struct {
	Run     string `json:"run"`               // its name, handle or id
	Numbers []int  `json:"numbers,omitempty"` // default: all
}

// MarkReviewedRequest marks files of a run's work as reviewed by the user, or removes the marks. A
// file is reviewed until it changes.
type MarkReviewedRequest struct {
	Run   string                `json:"run"`            // its name, handle or id
	Files []agency.ReviewedFile `json:"files"`          // one or more, as the list of run.diff has them
	Undo  bool                  `json:"undo,omitempty"` // take the marks away
}

// SendCommentsRequest brings the comments that the agent of a run does not have to it, as one
// message.
type SendCommentsRequest struct {
	Run   string `json:"run"`             // its name, handle or id
	Into  string `json:"into,omitempty"`  // the branch that it would land in; default: as for a landing
	Again bool   `json:"again,omitempty"` // also those that may have reached the agent, because sending was cut off
}

// CommentsResponse holds the comments that were changed. Their texts are untrusted.
type CommentsResponse struct {
	Run      Run                  `json:"run"`      // whose work it is
	Comments []agency.LineComment `json:"comments"` // those that were added or taken back
}

// SendCommentsResponse is how far the message got, as SendInputResponse does. Comments of a message
// that is still in the input box keep the state sending.
type SendCommentsResponse struct {
	Run       Run                  `json:"run"`       // whose agent got them
	Comments  []agency.LineComment `json:"comments"`  // those of the message
	Confirmed bool                 `json:"confirmed"` // agency saw the agent accept the message
	Effect    string               `json:"effect"`    // what agency saw of the message; the response of run.send has the values
	Composer  string               `json:"composer"`  // with composer: the text in the agent's input box
}

// SessionPart is an agent whose work is a part of that of others.
type SessionPart struct {
	Agent string       `json:"agent"`  // its id
	RunID agency.RunID `json:"run_id"` // the id of its run
	Of    []string     `json:"of"`     // the agents that have its work
}

// ReviewSessionRequest asks what a session would bring into a branch.
type ReviewSessionRequest struct {
	Session string         `json:"session"`          // its id, its name, active or latest
	Dir     string         `json:"dir,omitempty"`    // the client's folder, for active and latest
	Into    string         `json:"into,omitempty"`   // the target, a branch; default: as for a landing
	Env     agency.Environ `json:"env,omitempty"`    // the caller's environment: verdicts of checks hold for one
	Config  string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// ReviewSessionResponse holds a review of each completed agent whose work no other agent has.
type ReviewSessionResponse struct {
	SessionID agency.SessionID    `json:"session_id"` // the id of the session
	Reviews   []ReviewRunResponse `json:"reviews"`    // in the order in which they would land
	Parts     []SessionPart       `json:"parts"`      // the other completed agents, whose work lands with those
}

// MergeSessionRequest brings the work of a session that has settled into a branch.
type MergeSessionRequest struct {
	Session            string `json:"session"`                       // its id, its name, active or latest
	Dir                string `json:"dir,omitempty"`                 // the client's folder, for active and latest
	Into               string `json:"into,omitempty"`                // the target, a branch; default: as for the landing of a run
	Method             string `json:"method,omitempty"`              // a LandingMethod: squash, ff, merge or rebase; default: [landing] method
	IncludeUncommitted bool   `json:"include_uncommitted,omitempty"` // land what is not committed too
	DryRun             bool   `json:"dry_run,omitempty"`             // make and check each commit on the target as it is, and move nothing
	NoVerify           bool   `json:"no_verify,omitempty"`           // do not run the target's checks
	Approve            bool   `json:"approve,omitempty"`             // even if the work changes what the checks run
	Landed             bool   `json:"landed,omitempty"`              // list earlier landings too, of work that the target has already

	Env    agency.Environ `json:"env,omitempty"`    // the caller's environment, for the checks
	Config string         `json:"config,omitempty"` // the caller's configuration file; empty means the default one
}

// MergeSessionResponse describes the landings of a session.
type MergeSessionResponse struct {
	SessionID agency.SessionID   `json:"session_id"` // the id of the session
	Landings  []MergeRunResponse `json:"landings"`   // in their order
	Parts     []SessionPart      `json:"parts"`      // agents whose work landed with that of others
}
