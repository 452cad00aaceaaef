package api

import "agency"

// PlanPushRequest asks what to push for a run, or after a landing.
type PlanPushRequest struct {
	Run     string           `json:"run,omitempty"`     // its name, handle or id; empty with a landing
	Landing agency.LandingID `json:"landing,omitempty"` // push the target of this landing
	Remote  string           `json:"remote,omitempty"`  // its name or URL; default: [landing] remote
	Branch  string           `json:"branch,omitempty"`  // on the remote; default: that of the run
}

// Place is a remote of a repository, and how to reach it.
type Place struct {
	CommonDir string `json:"common_dir"` // the git common directory of the repository
	Settings  string `json:"settings"`   // the file of the recorded settings, in git/ of the data root; empty for none
	Remote    string `json:"remote"`     // its name or URL
	URL       string `json:"url"`        // where the remote is
}

// PlanPushResponse is what to push, and where.
type PlanPushResponse struct {
	Run     Run           `json:"run"`     // whose work it is
	Place   Place         `json:"place"`   // the remote to push to
	Branch  string        `json:"branch"`  // on the remote, without refs/heads/
	Commit  string        `json:"commit"`  // the new commit of the branch
	Known   []agency.Push `json:"known"`   // earlier pushes to the branch, the oldest first
	Rewrite bool          `json:"rewrite"` // the branch may lose what agency itself pushed there
}

// RecordPushRequest records a push: that it begins, or that the remote has the commit.
type RecordPushRequest struct {
	Run     string `json:"run"`               // its name, handle or id
	URL     string `json:"url"`               // of the remote; a password in it is not recorded
	Branch  string `json:"branch"`            // on the remote, without refs/heads/
	Commit  string `json:"commit"`            // the new commit of the branch
	Created bool   `json:"created,omitempty"` // the remote does not have the branch yet
	Done    bool   `json:"done,omitempty"`    // the remote has the commit
}

// PushResponse is one push.
type PushResponse struct {
	Push agency.Push `json:"push"` // as agency recorded it
}

// PlanPRRequest asks what the pull request of a run is to be.
type PlanPRRequest struct {
	Run    string `json:"run"`              // its name, handle or id
	Remote string `json:"remote,omitempty"` // its name or URL; default: [landing] remote
	Base   string `json:"base,omitempty"`   // the branch to merge into; default: as for a landing
}

// PlanPRResponse is what the pull request of a run is to be. Its texts are untrusted.
type PlanPRResponse struct {
	Run    Run                  `json:"run"`    // whose work it is
	Place  Place                `json:"place"`  // the remote with the work
	Kind   agency.ForgeKind     `json:"kind"`   // the kind of server, as configured
	Method agency.LandingMethod `json:"method"` // how it is merged
	Branch string               `json:"branch"` // with the work
	Base   string               `json:"base"`   // the branch to merge into
	Title  string               `json:"title"`  // one line; untrusted
	Body   string               `json:"body"`   // with the marker by which the pull request is found again
}

// RecordPRRequest records what a forge shows of the pull request of a run.
type RecordPRRequest struct {
	Run    string           `json:"run"`              // its name, handle or id
	Forge  agency.ForgeKind `json:"forge"`            // the kind of server that has it
	Number int              `json:"number"`           // its number there, from 1
	URL    string           `json:"url"`              // of its page on the forge; a password in it is not recorded
	State  agency.PRState   `json:"state"`            // its state now
	Branch string           `json:"branch"`           // with the work
	Base   string           `json:"base"`             // the branch to merge into
	Commit string           `json:"commit,omitempty"` // of the branch
	Checks string           `json:"checks,omitempty"` // passing, failing or pending
	Review string           `json:"review,omitempty"` // approved, changes requested or review required
}
