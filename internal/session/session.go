// Package session decides clients' requests about sessions: which plans start, what a retry takes
// over, how a session is shown, and when a wait for it is over. It provides the runs of a session's
// agents to the scheduler.
package session

import (
	"context"
	"log/slog"
	"time"

	"agency"
	"agency/internal/policy"
	"agency/internal/scheduler"
	"agency/internal/supervisor"
)

// Store is the record of sessions and runs.
type Store interface {
	Run(ctx context.Context, id agency.RunID) (*agency.Run, error)
	// ChangedRuns returns the runs with events after seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	// Changed returns a channel that is closed at the next commit.
	Changed() <-chan struct{}
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error)
	SessionAgents(ctx context.Context, id agency.SessionID) ([]agency.SessionAgent, error)
	// SessionSince returns a session and those of its agents that changed since a time, both from
	// the same moment.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	SessionPlan(ctx context.Context, id agency.SessionID) ([]byte, error)
	SessionRuns(ctx context.Context, id agency.SessionID, live bool) (map[agency.RunID]*agency.Run, error)
	SessionResults(ctx context.Context, id agency.SessionID) (map[string]agency.AgentResult, error)
	// SessionLandings returns the landings of a session's runs that moved their targets, the oldest
	// first.
	SessionLandings(ctx context.Context, id agency.SessionID) ([]agency.Landing, error)
	// SessionQueue returns the entries of a session's runs in landing queues, the oldest first.
	SessionQueue(ctx context.Context, id agency.SessionID) ([]agency.QueueEntry, error)
	// AgentOfRun returns the agent that a run works for, by its session and its id.
	AgentOfRun(ctx context.Context, id agency.RunID) (session agency.SessionID, agent string, found bool, err error)
	// LedUntil returns until when a session that was removed led a run; zero when none did.
	LedUntil(ctx context.Context, id agency.RunID) (time.Time, error)
}

// Git is what sessions need from git.
type Git interface {
	Discover(ctx context.Context, dir string) (agency.Repo, error)
	ResolveCommit(ctx context.Context, dir, ref string) (string, error)
	OwnBranch(repo agency.Repo, branch string) string
	CheckBranch(ctx context.Context, repo agency.Repo, branch string) error
	Result(ctx context.Context, repo agency.Repo, worktree, message string) (string, error)
	Snapshots(ctx context.Context, repo agency.Repo, id agency.RunID) ([]agency.Snapshot, error)
	Descends(ctx context.Context, repo agency.Repo, from, to string) (bool, error)
	Merge(ctx context.Context, repo agency.Repo, commits []string, message string) (string, error)
}

// Runs is the supervisor's access to runs.
type Runs interface {
	CreateRun(ctx context.Context, req supervisor.NewRun) (*agency.Run, []string, error)
	ResumeRun(ctx context.Context, req supervisor.ResumeRequest) (*supervisor.Resumption, error)
	StopAttempt(ctx context.Context, id agency.RunID, attempt int) error
}

// Query reads runs.
type Query interface {
	Worker(ctx context.Context, id agency.RunID) (*agency.Run, agency.Status, time.Time, error)
}

// Observer has the knowledge about live runs that is not in the record.
type Observer interface {
	// Derive returns the status of a run, including what is known beyond the record.
	Derive(r *agency.Run) agency.Status
}

// Terminals reads what agents show and measures what they use.
type Terminals interface {
	Activity(r *agency.Run) agency.Activity
	Preview(ctx context.Context, r *agency.Run, lines int) []string
}

// Repos finds the repositories that have runs.
type Repos interface {
	At(ctx context.Context, dir string) (agency.Repo, error)
	// LinkedBranch returns the branch of the linked worktree in which a user stands; empty in the main
	// worktree, in that of a run, and on no branch.
	LinkedBranch(ctx context.Context, at agency.Repo) (string, error)
}

// Projects reads the repositories' configuration of their runs.
type Projects interface {
	Of(ctx context.Context, repo agency.Repo) (agency.Project, error)
	// Locate returns where a run of a repository begins.
	Locate(ctx context.Context, dir, repo, base string) (*supervisor.Place, error)
	// CheckSetup refuses a setup, or an image to be built, that the user does not trust, or that is
	// missing.
	CheckSetup(ctx context.Context, root string, spec *agency.Spec, commit string, env []string) error
}

// Deps are the dependencies of sessions.
type Deps struct {
	Store     Store
	Git       Git
	Runs      Runs
	Query     Query
	Observer  Observer
	Terminals Terminals
	Repos     Repos
	Projects  Projects
	Log       *slog.Logger
}

// Sessions handles requests of clients. All methods are safe for concurrent use.
type Sessions struct {
	Deps
	Scheduler *scheduler.Scheduler
	Files     *scheduler.Files
	Finder    scheduler.Finder
	Policy    *policy.Policy
	Poll      func() time.Duration // interval between checks of statuses that change by time alone
	Now       func() time.Time
	Elapsed   func(since time.Time) time.Duration // how much time really passed since then
	Random    func(b []byte)
}

func (all *Sessions) random(n int) []byte {
	b := make([]byte, n)
	all.Random(b)
	return b
}
