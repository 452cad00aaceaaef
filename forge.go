package agency

import (
	"time"
)

// Push is one push of a commit to a branch of a remote.
type Push struct {
	RunID   RunID     `json:"run_id"`
	URL     string    `json:"url"`    // of the remote, without a password
	Branch  string    `json:"branch"` // on the remote, without refs/heads/
	Commit  string    `json:"commit"`
	Created bool      `json:"created"` // the remote did not have the branch before
	Done    bool      `json:"done"`    // the remote was seen to have the commit; false while it is being pushed
	At      time.Time `json:"at"`
}

// ForgeKind is the kind of server on which a repository has pull requests.
type ForgeKind string

// The kinds. The names of GitLab, where a pull request is a merge request, are not used.
const (
	ForgeAuto   ForgeKind = "auto" // decided by the host of the remote
	ForgeGitHub ForgeKind = "github"
	ForgeGitLab ForgeKind = "gitlab"
	ForgeGitea  ForgeKind = "gitea" // Forgejo too
	ForgeNone   ForgeKind = "none"
)

// ForgeKinds returns all kinds, the default first.
func ForgeKinds() []ForgeKind {
	return []ForgeKind{ForgeAuto, ForgeGitHub, ForgeGitLab, ForgeGitea, ForgeNone}
}

// PRState is the state of a pull request.
type PRState string

// The states.
const (
	PROpen   PRState = "open"
	PRDraft  PRState = "draft" // open, and not to be merged yet
	PRMerged PRState = "merged"
	PRClosed PRState = "closed" // without being merged
)

// Open reports whether the pull request can still be merged.
func (s PRState) Open() bool { return s == PROpen || s == PRDraft }

// PullRequest is the pull request of a run, as it was when agency last looked.
type PullRequest struct {
	Forge  ForgeKind `json:"forge"`
	Number int       `json:"number"`
	URL    string    `json:"url"` // untrusted
	State  PRState   `json:"state"`
	Branch string    `json:"branch"` // with the work
	Base   string    `json:"base"`   // the branch that it would be merged into
	Commit string    `json:"commit"` // of the branch; empty when the forge did not report it
	Checks string    `json:"checks"` // passing, failing or pending; empty for none
	Review string    `json:"review"` // approved, changes requested or review required; empty for none
	At     time.Time `json:"at"`     // when agency looked
}

// The states of the checks and the reviews of a pull request, as a forge reports them.
const (
	ChecksPassing  = "passing"
	ChecksFailing  = "failing"
	ChecksPending  = "pending"
	ReviewApproved = "approved"
	ReviewChanges  = "changes requested"
	ReviewRequired = "review required"
)

// PRMarker returns the line in the body of a pull request by which agency finds the one of a run
// again.
func PRMarker(id RunID) string { return "<!-- agency: " + string(id) + " -->" }
