package agency

import (
	"time"
)

// Push is one push of a commit to a branch of a remote.
type Push struct {
	RunID   RunID     `json:"run_id"`  // the run whose work was pushed, or the target that its work landed in
	URL     string    `json:"url"`     // of the remote, without a password
	Branch  string    `json:"branch"`  // on the remote, without refs/heads/
	Commit  string    `json:"commit"`  // the new commit of the branch
	Created bool      `json:"created"` // the remote did not have the branch before
	Done    bool      `json:"done"`    // the remote was seen to have the commit; false while it is being pushed
	At      time.Time `json:"at"`      // when agency recorded it
}

// ForgeKind is the kind of server on which a repository has pull requests.
type ForgeKind string

// The kinds. The names of GitLab, where a pull request is a merge request, are not used.
const (
	ForgeAuto   ForgeKind = "auto"   // decided by the host of the remote
	ForgeGitHub ForgeKind = "github" // GitHub
	ForgeGitLab ForgeKind = "gitlab" // GitLab
	ForgeGitea  ForgeKind = "gitea"  // Gitea or Forgejo
	ForgeNone   ForgeKind = "none"   // there are no pull requests
)

// ForgeKinds returns all kinds, the default first.
func ForgeKinds() []ForgeKind {
	return []ForgeKind{ForgeAuto, ForgeGitHub, ForgeGitLab, ForgeGitea, ForgeNone}
}

// PRState is the state of a pull request.
type PRState string

// The states.
const (
	PROpen   PRState = "open"   // it can be merged
	PRDraft  PRState = "draft"  // open, and not to be merged yet
	PRMerged PRState = "merged" // its base has the work
	PRClosed PRState = "closed" // without being merged
)

// Open reports whether the pull request can still be merged.
func (s PRState) Open() bool { return s == PROpen || s == PRDraft }

// PullRequest is the pull request of a run, as it was when agency last looked.
type PullRequest struct {
	Forge  ForgeKind `json:"forge"`  // the kind of server that has it
	Number int       `json:"number"` // its number there, from 1
	URL    string    `json:"url"`    // of its page on the forge; untrusted
	State  PRState   `json:"state"`  // its state when agency last looked
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
