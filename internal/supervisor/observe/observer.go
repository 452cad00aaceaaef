// Package observe knows what the record does not hold about live runs: what their agents report,
// what hooks, files and screens show, and when their output, files and wrappers last changed. It
// records what changes a status. The supervisor calls it; it calls nothing above.
package observe

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/supervisor/keyed"
)

// Store is the part of the record that an observer uses. ChangeRun is one transaction with its
// events.
type Store interface {
	Run(ctx context.Context, id agency.RunID) (*agency.Run, error)
	ChangeRun(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error)
}

// Inbox sends a report to the owner of its run. Sending the same report again has no effect.
type Inbox interface {
	Report(ctx context.Context, id agency.RunID, attempt int, e *agency.Evidence) error
}

// Harness knows the files and screens of the agents.
type Harness interface {
	// Files returns the agent's own files that show its progress, as far as the agent state names
	// them.
	Files(kind agency.RunnerKind, s *agency.AgentState, runner *agency.Process) []string
	// ReadFile reads what is new in one of these files.
	ReadFile(kind agency.RunnerKind, path string, s *agency.AgentState) []agency.Evidence
	// ReadsScreen reports whether Screen can read the terminal of such an agent.
	ReadsScreen(r agency.Runner) bool
	// ErrorMarks returns how lines begin that only the agent's program prints, about errors; empty
	// for most agents.
	ErrorMarks(kind agency.RunnerKind) []string
	// Screen reads the visible lines of an agent's terminal.
	Screen(r agency.Runner, lines []string) []agency.Evidence
	// Shown returns the index of the open request that the terminal's dialog is about; -1 when it
	// is none of them or ambiguous.
	Shown(kind agency.RunnerKind, lines []string, requests []agency.Request) int
}

// Tmux reads the terminals of runs.
type Tmux interface {
	// Capture returns the visible screen of a pane of a session as plain text.
	Capture(ctx context.Context, session, pane string) (string, error)
	// CaptureStyled is Capture with the escape sequences of the colours.
	CaptureStyled(ctx context.Context, session, pane string) (string, error)
	// CaptureScreen is CaptureStyled with the size of the screen, its cursor, and at most history rows
	// above it. The screen has no rows yet.
	CaptureScreen(ctx context.Context, session, pane string, history int) (text string, screen agency.Screen, err error)
	// Attached returns the number of clients that show a session.
	Attached(ctx context.Context, name string) (int, error)
}

// Attempts reads what attempts print and use on this host.
type Attempts interface {
	// OpenLog opens a log, and returns the offset of the first byte that Read returns.
	OpenLog(dir, stream string, from LogStart) (log io.ReadCloser, begins int64, err error)
	// Tail returns the last bytes of a log.
	Tail(dir, stream string, bytes int64) ([]byte, error)
	// CPU returns the processor time that a process and all processes below it have used.
	CPU(p agency.Process) time.Duration
}

// LogStart is where the reading of a log begins. Offsets count from the first byte ever written.
type LogStart struct {
	Since  time.Time // what was written since then; zero is the beginning
	Tail   *int      // of that, only so many of the last lines
	Offset *int64    // instead of both
}

// Watcher reports that something in a directory may have changed. It can miss a change, so the
// observer also rescans.
type Watcher interface {
	Add(dir string) error
	Remove(dir string)
}

// Spool reads and writes the evidence file of an attempt.
type Spool interface {
	Append(path string, evidence ...agency.Evidence) error
	// Tail returns the evidence after offset and the offset to continue from.
	Tail(path string, offset int64) (evidence []agency.Evidence, next int64, err error)
	Parse(lines []byte) []agency.Evidence
}

// Deps are the parts that an observer works with.
type Deps struct {
	Store          Store
	Inbox          Inbox
	Harness        Harness
	Tmux           Tmux
	Attempts       Attempts
	Watcher        Watcher
	Spool          Spool
	ReportUnfilled func(report []byte) bool // reports whether an agent's report is still the empty form
	Log            *slog.Logger
	Now            func() time.Time                    // never runs backwards
	Elapsed        func(since time.Time) time.Duration // how much of the time since then really passed
	Convert        func(at time.Time) time.Time        // makes a time of the system's clock one of Now, and not a later one
}

// Observer watches the runs that are not final.
//
// Locks are taken in this order: that of a run's outputReader, "file" of a run, "state" of it, mu,
// that of folders. Under mu there is no I/O, and no call out of the package except the predicate of
// SetUnseen.
type Observer struct {
	Deps

	liveRuns
	outputs outputs
	// Errors matches what runs print with the user's patterns.
	Errors errorLines

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	work   sync.WaitGroup

	locks keyed.Locks
	stall atomic.Int64 // nanoseconds

	folders folders
	broken  map[agency.RunID]string // runs whose snapshot differs from the record, and how; guarded by mu
}

// New returns an observer. It does nothing until Start.
func New(deps Deps) *Observer {
	ob := &Observer{
		Deps:     deps,
		liveRuns: liveRuns{live: map[agency.RunID]*liveRun{}},
		outputs:  outputs{store: deps.Store, spool: deps.Spool, unfilled: deps.ReportUnfilled, log: deps.Log},
		folders:  newFolders(deps.Watcher, deps.Log),
		broken:   map[agency.RunID]string{},
	}
	ob.Errors.init(&ob.Deps, &ob.liveRuns, ob.keep)
	return ob
}

// Start enables the observer's background work until Stop, or the end of ctx.
func (ob *Observer) Start(ctx context.Context) {
	ob.ctx, ob.cancel = context.WithCancel(ctx)
}

// Stop ends the observer's background work and waits for it. It is idempotent.
func (ob *Observer) Stop() {
	if ob.cancel != nil {
		ob.cancel()
		ob.work.Wait()
	}
}

// SetStall sets how long an agent at work may give no sign of it before it counts as stalled.
func (ob *Observer) SetStall(threshold time.Duration) { ob.stall.Store(int64(threshold)) }

// AttemptDir returns the directory of an attempt in a run's directory.
func AttemptDir(runDir string, number int) string {
	return filepath.Join(runDir, "attempts", strconv.Itoa(number))
}
