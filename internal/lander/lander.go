// Package lander carries out what package landing decides: it reviews the work of runs, brings it
// into branches and takes it back. Everything is recorded and pinned before a branch moves, so that
// an interrupted landing can be settled from git's data.
package lander

import (
	"context"
	"log/slog"
	"time"

	"agency"
	"agency/internal/service"
	"agency/internal/supervisor/keyed"
)

// Store is the record of landings.
type Store interface {
	CreateLanding(ctx context.Context, l *agency.Landing) error
	SettleLanding(ctx context.Context, id agency.LandingID, state agency.LandingState, reason string, event agency.EventType) (*agency.Landing, error)
	Landing(ctx context.Context, id agency.LandingID) (*agency.Landing, error)
	Landings(ctx context.Context, run agency.RunID) ([]agency.Landing, error)
	OpenLandings(ctx context.Context) ([]agency.Landing, error)
	// LandingsToCleanUp returns those that landed and whose runs are still to be removed.
	LandingsToCleanUp(ctx context.Context) ([]agency.Landing, error)
	CleanedUp(ctx context.Context, id agency.LandingID) error
	// LandedIn returns the newest landings in a repository that were not taken back, the newest first.
	LandedIn(ctx context.Context, fingerprint string, most int) ([]agency.Landing, error)
	Comments(ctx context.Context, run agency.RunID) ([]agency.LineComment, error)
	AddComments(ctx context.Context, run agency.RunID, comments []agency.LineComment) error
	MoveComments(ctx context.Context, run agency.RunID, numbers []int, from []agency.CommentState, to agency.CommentState) ([]agency.LineComment, error)
	MarkReviewed(ctx context.Context, run agency.RunID, files []agency.ReviewedFile, reviewed bool) error
	Reviewed(ctx context.Context, run agency.RunID) ([]agency.ReviewedFile, error)
	Pushes(ctx context.Context, run agency.RunID) ([]agency.Push, error)
}

// Runs is the record of runs.
type Runs interface {
	// Hold finds a run and excludes other operations on it until release is called.
	Hold(ctx context.Context, ref string) (r *agency.Run, release func(), err error)
	Resolve(ctx context.Context, ref string) (*agency.Run, error)
	Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error)
}

// Marks sets whether a run is merged, and its pull request.
type Marks interface {
	Merge(ctx context.Context, id agency.RunID, merged bool) (*agency.Run, error)
	RecordPR(ctx context.Context, ref string, pr *agency.PullRequest) (*agency.Run, error)
}

// Repos knows the repositories of runs.
type Repos interface {
	Of(ctx context.Context, r *agency.Run) (agency.Repo, error)
	// Lock serialises changes to the branches and worktrees of a repository.
	Lock(ctx context.Context, fingerprint string) (unlock func(), err error)
}

// Git is what the lander needs from git.
type Git interface {
	Inspect(ctx context.Context, repo agency.Repo, worktree, baseCommit string) (agency.GitFacts, error)
	Seal(ctx context.Context, repo agency.Repo, worktree, message string) (commit string, nested []string, err error)
	Snapshots(ctx context.Context, repo agency.Repo, id agency.RunID) ([]agency.Snapshot, error)
	Head(ctx context.Context, repo agency.Repo) (string, error)
	Alias(ctx context.Context, repo agency.Repo, branch string) (string, error)
	CheckBranch(ctx context.Context, repo agency.Repo, branch string) error
	HasBranch(ctx context.Context, repo agency.Repo, branch string) (bool, error)
	CommitOf(ctx context.Context, repo agency.Repo, branch string) (string, error)
	ResolveCommit(ctx context.Context, dir, ref string) (string, error)
	Descends(ctx context.Context, repo agency.Repo, commit, from string) (bool, error)
	Commits(ctx context.Context, repo agency.Repo, from, to string) ([]agency.Commit, error)
	Messages(ctx context.Context, repo agency.Repo, from, to string) ([]string, error)
	Bases(ctx context.Context, repo agency.Repo, a, b string) ([]string, error)
	Covered(ctx context.Context, repo agency.Repo, target, source string, others []string) ([]string, error)
	Unmatched(ctx context.Context, repo agency.Repo, candidate, source string, others ...string) ([]string, error)
	Missing(ctx context.Context, repo agency.Repo, target string, commits []string) ([]string, error)
	Merge(ctx context.Context, repo agency.Repo, commits []string, message string) (string, error)
	Tree(ctx context.Context, repo agency.Repo, commit string) (string, error)
	Changed(ctx context.Context, repo agency.Repo, from, to string) ([]agency.ChangedFile, error)
	Changes(ctx context.Context, repo agency.Repo, from, to string) ([]agency.FileChange, error)
	MergeTree(ctx context.Context, repo agency.Repo, ours, theirs string) (string, error)
	OnTop(ctx context.Context, repo agency.Repo, env agency.Environ, parent, tree, message string) (string, error)
	Squash(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string, message func() (string, error)) (string, error)
	Join(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base, message string) (string, error)
	Rebase(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string, change func(message string) string) (tip string, dropped int, err error)
	Checkout(ctx context.Context, repo agency.Repo, branch string) (string, error)
	Clean(ctx context.Context, repo agency.Repo, worktree string) (bool, error)
	Pin(ctx context.Context, repo agency.Repo, ref, commit string) error
	Unpin(ctx context.Context, repo agency.Repo, refs ...string) error
	MoveBranch(ctx context.Context, repo agency.Repo, branch, from, to, reason string) error
	FastForward(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error
	Back(ctx context.Context, repo agency.Repo, worktree, branch, from, to, reason string) error
	SettleMove(ctx context.Context, repo agency.Repo, worktree, branch, from, to string, since time.Time) (moved bool, err error)
	DeleteBranchIn(ctx context.Context, repo agency.Repo, branch, commit string) error
	CreateBranch(ctx context.Context, repo agency.Repo, branch, commit string) error
	File(ctx context.Context, repo agency.Repo, commit, path string, limit int) (data []byte, found bool, err error)
	Remote(ctx context.Context, repo agency.Repo, name string) (url string, err error)
}

// Deps are the parts that a lander works with.
type Deps struct {
	Store Store
	Runs  Runs
	Marks Marks
	Repos Repos
	Git   Git
	// Status derives the status of a run.
	Status func(r *agency.Run) agency.Status
	// Remove removes an ended run whose work has landed.
	Remove func(ctx context.Context, id agency.RunID) error
	// Send types a message into the agent of a run, after a look at its terminal.
	Send func(ctx context.Context, id agency.RunID, text string) (agency.Delivery, error)
	// Parse reads the agency.toml of a commit, which error messages call path.
	Parse func(path string, data []byte) (agency.Project, error)
	// Settings are those of the user's configuration.
	Settings func() agency.LandingSettings
	NewID    func() agency.LandingID
	Log      *slog.Logger
}

// Lander lands runs. All methods may be called from several goroutines. As a service it settles the
// landings that an earlier daemon left open.
type Lander struct {
	*planner
	Comments *Comments
	Pushes   *Pushes
	work     service.Background
}

// planner reads the work of runs and makes the commit that would land. It moves nothing.
type planner struct{ Deps }

// Comments keeps the comments on the lines of a run's work, and brings them to its agent.
type Comments struct {
	*planner
	sending keyed.Locks // on the comments of runs, by id
}

// Pushes decides what a client pushes, and where, and the content of a pull request. It records
// pull requests, and pushes nothing itself.
type Pushes struct{ *planner }

// New returns a lander that does nothing until it is asked.
func New(deps Deps) *Lander {
	pl := &planner{deps}
	return &Lander{planner: pl, Comments: &Comments{planner: pl}, Pushes: &Pushes{pl}}
}

// Start settles interrupted landings in the background.
func (l *Lander) Start(ctx context.Context) error {
	return l.work.Start(ctx, func(ctx context.Context) error {
		l.work.Go(func() { l.settleAll(ctx) })
		return nil
	})
}

// Stop ends the settling and waits for it.
func (l *Lander) Stop() { l.work.Stop() }

// moveTimeout limits how long a landing continues after its client has gone away.
const moveTimeout = 10 * time.Minute

// Request asks for a landing, or for a look at one.
type Request struct {
	Ref     string
	Asked   agency.LandingSettings
	Message string // of a single commit with all the work; empty means made from the run's
	DryRun  bool   // make and check the commit, and move nothing
	Landed  bool   // for a run without more to land, return its last landing
	// Env is the environment of the user for whom the run lands, in which git finds the name for
	// the commits. Without it only git's configuration counts.
	Env agency.Environ
	// Check returns an error unless the target's checks pass on the commit that is to land. It may
	// take long, and no lock is held meanwhile. Nil means no checks.
	Check func(ctx context.Context, repo agency.Repo, l *agency.Landing) error
}

// Result is a landing, or in a dry run what it would be.
type Result struct {
	Run      *agency.Run
	Landing  agency.Landing // without an id in a dry run
	Commits  []agency.Commit
	Files    []agency.FileChange
	Warnings []string
	Branch   string // the run's branch that stays; empty when it was deleted
	Removed  bool   // the run was removed after it landed
	Already  bool   // it had landed, or was taken back, before
}
