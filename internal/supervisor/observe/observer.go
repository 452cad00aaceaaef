// Package observe knows of live runs what cannot be read from the record: what their agents report, what hooks, files and screens
// show, when their output, their files and their wrappers last moved. It brings what changes a status into the record. The supervisor
// calls it; it calls nothing above.
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

// Store is what an observer asks of the record. ChangeRun is one transaction with its events.
type Store interface {
	Run(ctx context.Context, id agency.RunID) (*agency.Run, error)
	ChangeRun(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error)
}

// Inbox tells the owner of a run what it reported. It may be told of the same report again.
type Inbox interface {
	Report(ctx context.Context, id agency.RunID, attempt int, e *agency.Evidence) error
}

// Harness knows the files and screens of the agents.
type Harness interface {
	// Files are the files of the agent's own that tell how it does, as far as the situation names them.
	Files(kind agency.RunnerKind, s *agency.AgentState, runner *agency.Process) []string
	// ReadFile reads what is new in one of these files.
	ReadFile(kind agency.RunnerKind, path string, s *agency.AgentState) []agency.Evidence
	// ReadsScreen reports whether Screen knows what the terminal of such an agent shows.
	ReadsScreen(r agency.Runner) bool
	// ErrorMarks are how lines of an agent's terminal begin that only its program prints, about errors; none are known of most.
	ErrorMarks(kind agency.RunnerKind) []string
	// Screen reads the visible lines of an agent's terminal.
	Screen(r agency.Runner, lines []string) []agency.Evidence
	// Shown is which of the open requests such a terminal's dialog is about; -1 when that is none, or cannot be told.
	Shown(kind agency.RunnerKind, lines []string, requests []agency.Request) int
}

// Tmux shows the terminals of runs.
type Tmux interface {
	// Capture is the visible screen of a pane of a session as plain text.
	Capture(ctx context.Context, session, pane string) (string, error)
	// CaptureStyled is as Capture, with the escape sequences of the colours.
	CaptureStyled(ctx context.Context, session, pane string) (string, error)
	// Attached counts the clients that show a session.
	Attached(ctx context.Context, name string) (int, error)
}

// Attempts reads what attempts print and use on this host.
type Attempts interface {
	// OpenLog opens a log where what was written since a time begins or, when that is told, at an offset from its first byte ever.
	OpenLog(dir, stream string, since time.Time, offset *int64) (log io.ReadCloser, begins int64, err error)
	// Tail is the last so many bytes of a log.
	Tail(dir, stream string, bytes int64) ([]byte, error)
	// CPU is the processor time that a process and all below it have used.
	CPU(p agency.Process) time.Duration
}

// Watcher tells that something in a directory may have changed. It is a hint, so the observer also looks again.
type Watcher interface {
	Add(dir string) error
	Remove(dir string)
}

// Spool is the evidence file of an attempt.
type Spool interface {
	Append(path string, evidence ...agency.Evidence) error
	// Tail reads what stands behind offset and returns where to go on.
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
}

// Observer watches the runs that are not final.
//
// Locks are taken in this order: that of a run's outputReader, "file" of a run, "word" of it, mu, that of folders. mu is held for no
// I/O, and for no call out of the room but the predicate of SetUnseen.
type Observer struct {
	Deps

	outputs outputs

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	work   sync.WaitGroup

	locks    keyed.Locks
	stall    atomic.Int64                  // nanoseconds
	patterns atomic.Pointer[ErrorPatterns] // never nil

	folders folders

	mu     sync.Mutex
	live   map[agency.RunID]*liveRun // runs that are not final
	broken map[agency.RunID]string   // runs whose snapshot disagrees with the record, and how
}

// New makes an observer. It does nothing until Start.
func New(deps Deps) *Observer {
	ob := &Observer{
		Deps:    deps,
		outputs: outputs{store: deps.Store, spool: deps.Spool, unfilled: deps.ReportUnfilled, log: deps.Log},
		folders: newFolders(deps.Watcher, deps.Log),
		live:    map[agency.RunID]*liveRun{},
		broken:  map[agency.RunID]string{},
	}
	ob.patterns.Store(&ErrorPatterns{})
	return ob
}

// Start lets the observer work beside its callers until Stop, or the end of ctx.
func (ob *Observer) Start(ctx context.Context) {
	ob.ctx, ob.cancel = context.WithCancel(ctx)
}

// Stop ends what the observer does beside its callers, and waits. It is idempotent.
func (ob *Observer) Stop() {
	if ob.cancel != nil {
		ob.cancel()
		ob.work.Wait()
	}
}

// SetStall changes after how long without a sign of it an agent at work counts as stalled.
func (ob *Observer) SetStall(threshold time.Duration) { ob.stall.Store(int64(threshold)) }

// AttemptDir returns the directory of an attempt in a run's directory.
func AttemptDir(runDir string, number int) string {
	return filepath.Join(runDir, "attempts", strconv.Itoa(number))
}
