package agency

import (
	"errors"
	"fmt"
	"time"
)

// EventDraft is an event that will be written with a change: its type, and its data, which becomes
// a JSON object.
type EventDraft struct {
	Type EventType
	Data any
}

// StepData is the data of the event run.step.
type StepData struct {
	Step string `json:"step"`
}

// StepDone returns the event of a step that is done.
func StepDone(name string) EventDraft { return EventDraft{Type: RunStep, Data: StepData{name}} }

// Creation is what is stored with a new run in addition to its record.
type Creation struct {
	Spec      []byte   // the complete spec, JSON
	TokenHash string   // of attempt 1
	Steps     []string // the steps to come, in order
}

// Filter chooses runs.
type Filter struct {
	Repo    string // fingerprint; empty is every repository
	Tag     string
	Removed bool // include removed runs
	Live    bool // only runs whose newest attempt is not final, removed or not
	Limit   int  // the newest N; 0 is all
	// Worktree is the path of a worktree; empty is any.
	Worktree string
}

// GitFacts is the state of a worktree according to git.
type GitFacts struct {
	Head      string `json:"head"`      // the commit that is checked out; empty before the first one
	Branch    string `json:"branch"`    // the branch that is checked out, without refs/heads/; empty when none is
	Dirty     bool   `json:"dirty"`     // something is changed or untracked
	Changed   int    `json:"changed"`   // tracked files with changes, staged or not
	Untracked int    `json:"untracked"` // untracked files and folders that git does not ignore
	Ahead     int    `json:"ahead"`     // commits since the base commit
	Behind    int    `json:"behind"`    // commits of the base that the branch lacks
}

// Saved is a snapshot of uncommitted work.
type Saved struct {
	Ref    string   `json:"ref"`    // the ref that keeps it, below refs/agency/snapshots
	Commit string   `json:"commit"` // the commit that the ref names
	Files  int      `json:"files"`  // how many files differ from the commit that was checked out
	Nested []string `json:"nested"` // repositories inside the worktree that could not be saved
}

// Snapshot is saved work of a run: a commit of everything in its worktree that was not ignored, on
// top of a commit of what was staged.
type Snapshot struct {
	Number  int       `json:"number"`  // from 1, in the order in which they were taken
	Ref     string    `json:"ref"`     // the ref that keeps it, below refs/agency/snapshots
	Commit  string    `json:"commit"`  // the commit that the ref names
	At      time.Time `json:"at"`      // when it was taken
	Message string    `json:"message"` // the first line of the commit's message: why it was taken
}

// FileChange is a file in which two commits differ.
type FileChange struct {
	Status string `json:"status"` // A added, D deleted, M modified, T another type, such as a link in the place of a file
	Path   string `json:"path"`   // from the root of the repository; a file that moved is one deleted and one added
}

// FileDiff is a file in which two trees differ. A file that moved is one.
type FileDiff struct {
	Status  string `json:"status"`  // A, M, D, T (another type), R (renamed) or C (copied)
	Path    string `json:"path"`    // where it is now, from the root of the repository
	From    string `json:"from"`    // where it was before; empty unless it was renamed or copied
	Added   int    `json:"added"`   // lines; 0 for a binary file
	Deleted int    `json:"deleted"` // lines; 0 for a binary file
	Binary  bool   `json:"binary"`  // git counts no lines in it
	Object  string `json:"object"`  // git's name of its content now; zeros for a file that is gone
	// Reviewed means that the user marked the file, with this content, as reviewed.
	Reviewed bool `json:"reviewed"`
}

// DiffPart is how much of a difference is read.
type DiffPart struct {
	From  string // the commit, or the tree, that it is compared with
	Limit int    // bytes of the patch
	List  bool   // the files one by one, and no patch
	File  string // the patch of this file alone, by its path now
	// IgnoreSpace leaves lines out of the patch that differ in white space only.
	IgnoreSpace bool
	Context     int // lines of the patch around each change; 0 is git's own number, 3
	// LastTurn compares with the worktree as it was when the agent rested before its present turn, or,
	// while it rests, before its last one; From is not read.
	LastTurn bool
	Objects  string // a folder with the objects of From; empty when the repository has them
}

// Diff is the difference between two commits, or a commit and a worktree. Its texts come from the
// author of the changes: untrusted.
type Diff struct {
	From      string // the commit, or the tree, that it is compared with
	Tree      string // git's name of all that it is compared with
	Files     []FileChange
	List      []FileDiff // only for a part that asks for it
	Patch     string
	Truncated bool // the patch is cut off, or files are left out
	LeftOut   LeftOut
}

// LeftOut describes the files that were left out because there was too much of them.
type LeftOut struct {
	Files int        `json:"files"` // how many
	Bytes int64      `json:"bytes"` // their size together
	Named []LeftFile `json:"named"` // the first of them
}

// LeftFile is one file that was left out.
type LeftFile struct {
	Path  string `json:"path"`  // from the root of the repository
	Bytes int64  `json:"bytes"` // its size
}

// SnapshotRefs returns the prefix of every ref under which a run's work is saved; a number follows.
func SnapshotRefs(id RunID) string { return "refs/agency/snapshots/" + string(id) + "/" }

// ErrHandleTaken means that a new run's handle is in use: draw another hash and try again.
var ErrHandleTaken = errors.New("another run has the handle")

// Disk is the free space of a disk that agency writes to.
type Disk struct {
	Path  string // agency's folder on it
	Free  int64  // bytes that agency may still write
	Least int64  // the minimum of free bytes
}

// Low reports whether the disk has too little room. One that was low stays low until it has a
// quarter more than the minimum, so that small changes do not open an alert each.
func (d *Disk) Low(was bool) bool {
	least := d.Least
	if was {
		least += least / 4
	}
	return d.Free < least
}

// Words returns the free space in words.
func (d *Disk) Words() string {
	return fmt.Sprintf("%d MiB left, and %d MiB must be free, on the disk of %s", d.Free>>20, d.Least>>20, d.Path)
}

// ChangeSize is the size of what a run changed since its base.
type ChangeSize struct {
	Files   int `json:"files"`   // how many files differ
	Added   int `json:"added"`   // lines
	Deleted int `json:"deleted"` // lines
}

// DiffStat is the size of the difference between two commits.
type DiffStat struct {
	Commits int // of the second commit that are not in the first
	Files   int
	Added   int // lines
	Deleted int // lines
	// Nested are the repositories inside the worktree, relative to it, with work of their own. That
	// work is not counted.
	Nested []string
}
