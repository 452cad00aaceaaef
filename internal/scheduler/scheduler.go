// Package scheduler runs sessions: plans of dependent agents. It decides what starts when, within limits and in the order of
// the dependencies, and keeps the status files. The agents themselves are runs, which it starts only through an interface.
//
// There are three parts, each of which goes on from the record alone after a crash: Scheduler carries out what schedule.Decide decides,
// Files writes the status files, and Results finds out what the agents of a session came to and writes its report.
package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agency"
	"agency/internal/schedule"
	"agency/internal/service"
)

// Store is the durable record of sessions. Each writing method is one transaction together with its events.
type Store interface {
	CreateSession(ctx context.Context, s *agency.Session, agents []agency.SessionAgent, plan []byte) error
	// Session is one session; none is agency.CodeSessionNotFound.
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	// MatchSessions are those whose id or name is ref, or begins with it, newest first.
	MatchSessions(ctx context.Context, ref string, limit int) ([]agency.Session, error)
	Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error)
	// SessionPlan is the plan as CreateSession was given it; nil for an outside session.
	SessionPlan(ctx context.Context, id agency.SessionID) ([]byte, error)
	// SessionAgents are the agents in the order of the plan.
	SessionAgents(ctx context.Context, id agency.SessionID) ([]agency.SessionAgent, error)
	// ChangeSession lets change edit a session and the agents that are named, all of them when agents is nil, and writes what it
	// changed. The session's Tally follows from the agents. An error of change is returned and nothing is written.
	// A transition that agency.NextAgent refuses, or any change of a settled session, is agency.CodeInvalidState.
	ChangeSession(ctx context.Context, id agency.SessionID, agents []string,
		change func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error)) (*agency.Session, error)
	// UpdateAgents carries out reports in as few transactions as it takes, and returns one error for each, in order. It may be
	// called from many goroutines at once, whose reports then share a transaction. Nothing is lost that it returned nil for.
	UpdateAgents(ctx context.Context, reports []agency.AgentReport) []error
	// AgentOfRun is the agent that a run works for; found is false for a run of nobody's.
	AgentOfRun(ctx context.Context, id agency.RunID) (session agency.SessionID, agent string, found bool, err error)
	// RemoveSession takes a settled session out of the record. RemovedSessions has where its files lie, until ForgetSession.
	RemoveSession(ctx context.Context, id agency.SessionID) error
	RemovedSessions(ctx context.Context) ([]agency.Session, error)
	ForgetSession(ctx context.Context, id agency.SessionID) error
	// SessionSince is a session and those of its agents that changed after since, an UpdatedAt of the session; the zero time gives
	// all of them. Both are of one moment.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	// SessionsWithStaleFiles are those whose status files may not say yet how they stand: all that run, and the settled ones that
	// MarkFilesWritten was not called for.
	SessionsWithStaleFiles(ctx context.Context) ([]agency.Session, error)
	MarkFilesWritten(ctx context.Context, id agency.SessionID) error
	// LastSeq is the number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// ChangedRuns are the runs with events behind seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	Changed() <-chan struct{}
	// SessionsChanged is Changed for the events of sessions alone.
	SessionsChanged() <-chan struct{}
}

// Start is what the scheduler wants of a run.
type Start struct {
	ID      agency.RunID // drawn before; starting it twice is the same as once
	Session *agency.Session
	Agent   *agency.PlanAgent
	Name    string
	Branch  string
	Commit  string // what the branch begins at; empty is what the agent or the repository says
	Env     []string
}

// ResumeRequest is what the scheduler wants of a later attempt.
type ResumeRequest struct {
	ID      agency.RunID
	Session *agency.Session
	Agent   *agency.PlanAgent
	Reason  string // how the attempt before ended; empty is what its own record says
	Env     []string
}

// Outcome is how a run stands, as far as a session cares.
type Outcome struct {
	Run    *agency.Run
	Status agency.Status
	// SignalAt is the last sign of life that needs no measurement.
	SignalAt time.Time
}

// Runs is what the scheduler asks of the engine. An executor on other hosts can be one, too.
type Runs interface {
	// MayStart refuses what Start would refuse until somebody decides, with the same error.
	MayStart(ctx context.Context, s Start) error
	// Start makes a run and starts its agent, or finds that it is there already. A name that is taken is agency.CodeNameExists.
	Start(ctx context.Context, s Start) error
	// Resume starts another attempt of a run whose newest one has ended, with a prompt that tells of that.
	Resume(ctx context.Context, a ResumeRequest) error
	// Stop ends an attempt of a run, 0 is whichever lives; one that has ended is no error, whatever followed.
	Stop(ctx context.Context, id agency.RunID, attempt int) error
	// Outcome is how a run stands; one that was never made, or whose making was undone, is agency.CodeRunNotFound.
	Outcome(ctx context.Context, id agency.RunID) (*Outcome, error)
	// Activity measures what a run's agent does in silence.
	Activity(ctx context.Context, id agency.RunID) (agency.Activity, error)
	// Result is a commit with everything that a run came to, what it did not commit included. agency.CodeResultGone is that nothing
	// of it is left; its message says what to do.
	Result(ctx context.Context, id agency.RunID) (commit string, err error)
	// Merge is a commit with everything that commits hold. agency.CodeMergeConflict is that they contradict each other; its message
	// and its detail "files" say where.
	Merge(ctx context.Context, s *agency.Session, commits []string) (commit string, err error)
}

// Deps are the parts that a scheduler works with.
type Deps struct {
	Store Store
	Runs  Runs
	Log   *slog.Logger
	Now   func() time.Time // never runs backwards
	// Elapsed is how much of the time since then really passed.
	Elapsed func(since time.Time) time.Duration
	Random  func([]byte) // fills with random bytes
}

// Settings are what a scheduler works by.
type Settings struct {
	Home   string // data root: sessions/ID/ in it keeps the environment of a session until it settles
	Starts int    // how many runs are being started at once, of all sessions together
	Retry  schedule.RetryPolicy
}

// Scheduler owns all sessions of one data root. Only one may exist for a root at a time; the daemon's lock sees to it.
type Scheduler struct {
	Deps
	Settings

	ctx     context.Context // ends with Stop
	looping service.Background
	work    sync.WaitGroup // beside the loop

	starts, stops *pool

	wake    chan struct{} // holds one token when there are notes
	mu      sync.Mutex
	notes   []note
	limited map[string]time.Time // by runner, until when it takes no work; never written to
}

// New makes a scheduler. It does nothing until Start.
func New(deps Deps, settings Settings) *Scheduler {
	s := &Scheduler{Deps: deps, Settings: settings, wake: make(chan struct{}, 1)}
	s.starts, s.stops = newPool(max(settings.Starts, 1), &s.work), newPool(stopsAtOnce, &s.work)
	return s
}

// Limited is until when runners take no work, by what the agents of all sessions met. It is not to be changed.
func (s *Scheduler) Limited() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limited
}
