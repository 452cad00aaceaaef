// Package scheduler runs sessions: plans of dependent agents. It decides what starts when, within
// limits and in the order of the dependencies, and writes the status files. The agents themselves
// are runs, which it starts only through an interface.
//
// It has three parts, each of which continues from the record alone after a crash: Scheduler
// executes the decisions of schedule.Decide, Files writes the status files, and Results determines
// the results of a session's agents and writes its report.
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

// Store is the durable record of sessions. Each writing method is one transaction together with its
// events.
type Store interface {
	CreateSession(ctx context.Context, s *agency.Session, agents []agency.SessionAgent, plan []byte) error
	// Session returns one session; an unknown id is agency.CodeSessionNotFound.
	Session(ctx context.Context, id agency.SessionID) (*agency.Session, error)
	// MatchSessions returns the sessions whose id or name is ref, or begins with it, newest first.
	MatchSessions(ctx context.Context, ref string, limit int) ([]agency.Session, error)
	Sessions(ctx context.Context, f agency.SessionFilter) ([]agency.Session, error)
	// SessionPlan returns the plan that CreateSession was given; nil for an external session.
	SessionPlan(ctx context.Context, id agency.SessionID) ([]byte, error)
	// SessionAgents returns the agents in the order of the plan.
	SessionAgents(ctx context.Context, id agency.SessionID) ([]agency.SessionAgent, error)
	// ChangeSession lets change edit a session and the named agents, all of them when agents is
	// nil, and writes the changes. The session's Counts follow from the agents. An error of change
	// is returned and nothing is written. A transition that agency.NextAgent refuses, or any change
	// of a settled session, is agency.CodeInvalidState.
	ChangeSession(ctx context.Context, id agency.SessionID, agents []string,
		change func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error)) (*agency.Session, error)
	// UpdateAgents applies reports in as few transactions as possible, and returns one error for
	// each, in order. It is safe for concurrent use; concurrent reports then share a transaction. A
	// report with a nil error is durable.
	UpdateAgents(ctx context.Context, reports []agency.AgentReport) []error
	// AgentOfRun returns the agent that a run works for; found is false for a run outside of
	// sessions.
	AgentOfRun(ctx context.Context, id agency.RunID) (session agency.SessionID, agent string, found bool, err error)
	// RemoveSession deletes a settled session from the record. RemovedSessions returns the location
	// of its files, until ForgetSession.
	RemoveSession(ctx context.Context, id agency.SessionID) error
	RemovedSessions(ctx context.Context) ([]agency.Session, error)
	ForgetSession(ctx context.Context, id agency.SessionID) error
	// SessionSince returns a session and those of its agents that changed after since, an UpdatedAt
	// of the session; the zero time returns all of them. Both are from the same moment.
	SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error)
	// SessionsWithStaleFiles returns the sessions whose status files may be outdated: all running
	// ones, and the settled ones for which MarkFilesWritten was not called.
	SessionsWithStaleFiles(ctx context.Context) ([]agency.Session, error)
	MarkFilesWritten(ctx context.Context, id agency.SessionID) error
	// LastSeq returns the number of the newest event.
	LastSeq(ctx context.Context) (int64, error)
	// ChangedRuns returns the runs with events after seq, and the newest seq.
	ChangedRuns(ctx context.Context, seq int64) (ids []agency.RunID, newest int64, err error)
	Changed() <-chan struct{}
	// SessionsChanged is Changed for the events of sessions alone.
	SessionsChanged() <-chan struct{}
}

// Start describes a run to start.
type Start struct {
	ID      agency.RunID // chosen before; starting it twice has the effect of once
	Session *agency.Session
	Agent   *agency.PlanAgent
	Name    string
	Branch  string
	Commit  string       // where the branch begins; empty is the choice of the agent or the repository
	After   agency.RunID // the run of a dependency, when the results of all of them are Commit
	Env     []string
}

// ResumeRequest describes a later attempt to start.
type ResumeRequest struct {
	ID      agency.RunID
	Session *agency.Session
	Agent   *agency.PlanAgent
	Reason  string // how the attempt before ended; empty means the reason in its own record
	Env     []string
}

// Outcome is the state of a run, as far as a session needs it.
type Outcome struct {
	Run    *agency.Run
	Status agency.Status
	// SignalAt is the last sign of life, measurements not counted.
	SignalAt time.Time
}

// Runs is what the scheduler needs from the engine. An executor on other hosts can implement it,
// too.
type Runs interface {
	// MayStart returns the error with which Start would refuse until the user decides, or nil.
	MayStart(ctx context.Context, s Start) error
	// Start makes a run and starts its agent, or finds that it exists already. A name that is taken
	// is agency.CodeNameExists.
	Start(ctx context.Context, s Start) error
	// Resume starts another attempt of a run whose newest one has ended, with a prompt that
	// explains the end.
	Resume(ctx context.Context, a ResumeRequest) error
	// Stop ends an attempt of a run; 0 is whichever is alive. An attempt that has ended is not an
	// error, whatever followed.
	Stop(ctx context.Context, id agency.RunID, attempt int) error
	// Outcome returns the state of a run; one that was never made, or whose creation was undone, is
	// agency.CodeRunNotFound.
	Outcome(ctx context.Context, id agency.RunID) (*Outcome, error)
	// Activity measures the activity of a run's agent that gives no other sign.
	Activity(ctx context.Context, id agency.RunID) (agency.Activity, error)
	// Result returns a commit with the whole result of a run, uncommitted work included.
	// agency.CodeResultGone means that nothing of it is left; its message names the way out.
	Result(ctx context.Context, id agency.RunID) (commit string, err error)
	// Merge returns a commit with the content of all commits. agency.CodeMergeConflict means that
	// they conflict; its message and its detail "files" say where.
	Merge(ctx context.Context, s *agency.Session, commits []string) (commit string, err error)
}

// LandRequest asks for the landing of the work of a complete agent.
type LandRequest struct {
	Session *agency.Session
	Agent   *agency.SessionAgent
	By      agency.LandBy
	// Runs are the agent's own run, and those of the complete agents that started from its result and
	// whose work is to land too.
	Runs []AgentRun
	Env  []string // for the checks
}

// AgentRun is the run of an agent.
type AgentRun struct {
	Agent string
	Run   agency.RunID
}

// Lander brings the work of agents into branches.
type Lander interface {
	// Land lands the work of an agent, unless that was done since it was complete, and returns how
	// that ended. An error is one of ctx, or of a record that cannot be written now.
	Land(ctx context.Context, req LandRequest) (agency.AgentLanding, error)
}

// Deps are the dependencies of a scheduler.
type Deps struct {
	Store  Store
	Runs   Runs
	Lander Lander
	Log    *slog.Logger
	Now    func() time.Time // never runs backwards
	// Elapsed returns how much time really passed since then.
	Elapsed func(since time.Time) time.Duration
	Random  func([]byte) // fills with random bytes
}

// Settings are the settings of a scheduler.
type Settings struct {
	Home   string // data root: sessions/ID/ in it holds the environment of a session until it settles
	Starts int    // how many runs are started at once, of all sessions together
	Retry  schedule.RetryPolicy
}

// Scheduler owns all sessions of one data root. Only one may exist for a root at a time; the
// daemon's lock ensures it.
type Scheduler struct {
	Deps
	Settings

	ctx     context.Context // cancelled by Stop
	looping service.Background
	work    sync.WaitGroup // outside the loop

	starts, stops, lands *pool

	wake    chan struct{} // holds one token when there are notes
	mu      sync.Mutex
	notes   []note
	limited map[string]time.Time // by runner: until when it accepts no work; never modified
}

// New returns a scheduler that does nothing until Start.
func New(deps Deps, settings Settings) *Scheduler {
	s := &Scheduler{Deps: deps, Settings: settings, wake: make(chan struct{}, 1)}
	s.starts, s.stops = newPool(max(settings.Starts, 1), &s.work), newPool(stopsAtOnce, &s.work)
	s.lands = newPool(landsAtOnce, &s.work)
	return s
}

// Limited returns until when runners accept no work, from the rate limits of all sessions' agents.
// The caller must not modify it.
func (s *Scheduler) Limited() map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limited
}
