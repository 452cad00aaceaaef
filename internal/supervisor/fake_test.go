package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agency"
	"agency/internal/spool"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/supervisor/observe"
)

// fakeStore is the real store with injected errors.
type fakeStore struct {
	*sqlite.Store
	FinishStepFunc func(name string) error
	SetTokenFunc   func() error
	OnCreateRun    func() // before it; may be nil
	ChangeRunFunc  func()
	OnChangedRun   func(*agency.Run) // after the commit; may be nil
	ChangeRunErr   func() error      // fails every change of a run
	StepsErr       func() error      // fails every reading of steps
	SendMessageErr func() error      // fails every message
	OnSendMessage  func()            // may be nil
}

func (s *fakeStore) SendMessage(ctx context.Context, m *agency.Message, recipients []string, dead string) error {
	if s.SendMessageErr != nil {
		if err := s.SendMessageErr(); err != nil {
			return err
		}
	}
	if s.OnSendMessage != nil {
		s.OnSendMessage()
	}
	return s.Store.SendMessage(ctx, m, recipients, dead)
}

func (s *fakeStore) CreateRun(ctx context.Context, r *agency.Run, c agency.Creation, drafts ...agency.EventDraft) error {
	if s.OnCreateRun != nil {
		s.OnCreateRun()
	}
	return s.Store.CreateRun(ctx, r, c, drafts...)
}

func (s *fakeStore) ChangeRun(ctx context.Context, id agency.RunID, change func(*agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	if s.ChangeRunFunc != nil {
		s.ChangeRunFunc()
	}
	if s.ChangeRunErr != nil {
		if err := s.ChangeRunErr(); err != nil {
			return nil, err
		}
	}
	r, err := s.Store.ChangeRun(ctx, id, change)
	if err == nil && s.OnChangedRun != nil {
		s.OnChangedRun(r)
	}
	return r, err
}

func (s *fakeStore) RecordFact(ctx context.Context, id agency.RunID, change func(*agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	if s.ChangeRunFunc != nil {
		s.ChangeRunFunc()
	}
	if s.ChangeRunErr != nil {
		if err := s.ChangeRunErr(); err != nil {
			return nil, err
		}
	}
	return s.Store.RecordFact(ctx, id, change)
}

func (s *fakeStore) Steps(ctx context.Context, id agency.RunID, attempt int) ([]agency.Step, error) {
	if s.StepsErr != nil {
		if err := s.StepsErr(); err != nil {
			return nil, err
		}
	}
	return s.Store.Steps(ctx, id, attempt)
}

func (s *fakeStore) FinishSteps(ctx context.Context, id agency.RunID, attempt int, names ...string) error {
	for _, name := range names {
		if s.FinishStepFunc == nil {
			break
		}
		if err := s.FinishStepFunc(name); err != nil {
			return err
		}
	}
	return s.Store.FinishSteps(ctx, id, attempt, names...)
}

func (s *fakeStore) SetToken(ctx context.Context, id agency.RunID, attempt int, hash string) error {
	if s.SetTokenFunc != nil {
		if err := s.SetTokenFunc(); err != nil {
			return err
		}
	}
	return s.Store.SetToken(ctx, id, attempt, hash)
}

// fakeTmux keeps the names of sessions. A new session runs OnStart instead of the wrapper.
type fakeTmux struct {
	supervisor.Tmux // methods that no test calls

	OnStart     func(agency.Launch) error
	OnKill      func(name string) // after the session is gone
	KillErr     error             // instead of killing
	VersionFunc func() error
	// SessionsFunc is called when the sessions are listed.
	SessionsFunc func()

	// OnReplace starts a wrapper in the place of another one.
	OnReplace func() error

	mu       sync.Mutex
	looks    int // at terminals
	Screen   string
	sessions map[string]bool
}

func (f *fakeTmux) Sessions(context.Context) ([]string, error) {
	if f.SessionsFunc != nil {
		f.SessionsFunc()
	}
	return f.left(), nil
}

// left returns the names of the existing sessions.
func (f *fakeTmux) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.sessions))
}

// vanish ends sessions without a notice, as another program would.
func (f *fakeTmux) vanish(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		delete(f.sessions, name)
	}
}

func (f *fakeTmux) ReplaceWrapper(context.Context, *agency.Run, []string) error { return f.OnReplace() }

func (f *fakeTmux) Version(context.Context) (string, error) {
	if f.VersionFunc != nil {
		return "", f.VersionFunc()
	}
	return "3.4", nil
}

func (f *fakeTmux) StartSession(_ context.Context, r *agency.Run, argv []string) error {
	path := argv[len(argv)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var launch agency.Launch
	if err := errors.Join(json.Unmarshal(data, &launch), os.Remove(path)); err != nil {
		return err
	}
	f.mu.Lock()
	f.sessions[r.Session()] = true
	f.mu.Unlock()
	return f.OnStart(launch)
}

func (f *fakeTmux) Exists(_ context.Context, name string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[name], nil
}

// Runs takes each session for one whose program runs.
func (f *fakeTmux) Runs(ctx context.Context, name string) (bool, error) { return f.Exists(ctx, name) }

func (f *fakeTmux) Kill(_ context.Context, name string) error {
	f.mu.Lock()
	if f.KillErr != nil {
		defer f.mu.Unlock()
		return f.KillErr
	}
	exists := f.sessions[name]
	if exists {
		delete(f.sessions, name)
	}
	f.mu.Unlock()
	if !exists {
		return agency.Errorf(agency.CodeTmuxSessionNotFound, "there is no session %s", name)
	}
	f.OnKill(name)
	return nil
}

func (f *fakeTmux) Capture(_ context.Context, session, _ string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if !f.sessions[session] {
		return "", agency.Errorf(agency.CodeTmuxSessionNotFound, "there is no session %s", session)
	}
	return f.Screen, nil
}

func (f *fakeTmux) CaptureStyled(ctx context.Context, session, pane string) (string, error) {
	return f.Capture(ctx, session, pane)
}

func (f *fakeTmux) CaptureScreen(ctx context.Context, session, pane string, _ int) (string, agency.Screen, error) {
	text, err := f.Capture(ctx, session, pane)
	return text, agency.Screen{Live: err == nil, Width: 80, Height: 24}, err
}

func (f *fakeTmux) Socket() string { return "/tmp/tmux-1000/default" }

// fakeHarness builds one command line.
type fakeHarness struct {
	FindExecFunc func() error
	BuildFunc    func(r agency.CommandRequest, c *agency.Command)
	BuildErr     error
	// FilesFunc and ReadFileFunc replace the agent's own files.
	FilesFunc    func(*agency.AgentState) []string
	ReadFileFunc func(path string, s *agency.AgentState) []agency.Evidence
	ScreenFunc   func(lines []string) []agency.Evidence
	SightFunc    func(lines []string) agency.Sight // nil is a terminal that takes all input
	ErrorMarksOf map[agency.RunnerKind][]string
	JoinsErr     error
	AnswerFunc   func(reply agency.Reply) (keys string, shown bool, err error)
}

func (h *fakeHarness) Joins(agency.RunnerKind) error { return h.JoinsErr }

func (h *fakeHarness) FindExec(agency.Runner, string, string, []string) (string, error) {
	if h.FindExecFunc != nil {
		return "", h.FindExecFunc()
	}
	return "/bin/sh", nil
}

func (h *fakeHarness) Build(r agency.CommandRequest) (agency.Command, error) {
	c := agency.Command{Argv: []string{"/bin/sh", r.PromptFile}}
	if h.BuildFunc != nil {
		h.BuildFunc(r, &c)
	}
	return c, h.BuildErr
}

func (h *fakeHarness) Files(_ agency.RunnerKind, s *agency.AgentState, _ *agency.Process) []string {
	if h.FilesFunc == nil {
		return nil
	}
	return h.FilesFunc(s)
}

func (h *fakeHarness) ReadFile(_ agency.RunnerKind, path string, s *agency.AgentState) []agency.Evidence {
	return h.ReadFileFunc(path, s)
}

func (h *fakeHarness) ErrorMarks(kind agency.RunnerKind) []string { return h.ErrorMarksOf[kind] }

func (h *fakeHarness) ReadsScreen(agency.Runner) bool { return h.ScreenFunc != nil }

func (h *fakeHarness) ShowsReady(agency.Runner) bool { return h.ScreenFunc != nil }

func (h *fakeHarness) Screen(_ agency.Runner, lines []string) []agency.Evidence {
	evidence := h.ScreenFunc(lines)
	for i := range evidence {
		evidence[i].Source = agency.FromScreen
	}
	return evidence
}

func (h *fakeHarness) Sight(_ agency.Runner, lines []string) agency.Sight {
	if h.SightFunc == nil {
		return agency.Sight{}
	}
	return h.SightFunc(lines)
}

func (h *fakeHarness) Shown(_ agency.RunnerKind, lines []string, requests []agency.Request) int {
	return slices.IndexFunc(requests, func(r agency.Request) bool { return r.Text == lines[len(lines)-1] })
}

func (h *fakeHarness) Answer(_ agency.RunnerKind, _ []string, _ *agency.Request, reply agency.Reply) (keys string, shown bool, err error) {
	if h.AnswerFunc == nil {
		return "", false, nil
	}
	return h.AnswerFunc(reply)
}

// spools uses real evidence files.
type spools struct{}

func (spools) Append(path string, evidence ...agency.Evidence) error {
	return spool.Append(path, evidence...)
}

func (spools) Tail(path string, offset int64) ([]agency.Evidence, int64, error) {
	return spool.Tail(path, offset)
}
func (spools) Parse(lines []byte) []agency.Evidence { return spool.Parse(lines) }

// onHost is what a wrapper left on this host.
type onHost struct {
	start  *agency.Start
	exit   *agency.Exit
	held   *agency.Exit // of an agent that outlived its wrapper
	broken error        // of reading start and exit
	unheld error        // of reading held
	locked bool
}

// fakeAttempts is this host: the locks and records of wrappers by attempt directory.
type fakeAttempts struct {
	supervisor.Attempts // methods that no test calls

	SignalFunc  func(agency.Process, syscall.Signal) error
	EndTreeFunc func()      // called before it ends anything
	dead        atomic.Bool // the agents have ended

	mu    sync.Mutex
	dirs  map[string]onHost
	ended []agency.Process // by EndTree
}

func (f *fakeAttempts) change(dir string, change func(h *onHost)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.dirs[dir]
	change(&h)
	f.dirs[dir] = h
}

func (f *fakeAttempts) ReadStart(dir string) (*agency.Start, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.dirs[dir]
	if h.broken != nil {
		return nil, h.broken
	}
	return h.start, nil
}

func (f *fakeAttempts) ReadExit(dir string) (*agency.Exit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.dirs[dir]
	if h.broken != nil {
		return nil, h.broken
	}
	return h.exit, nil
}

func (f *fakeAttempts) Locked(dir string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirs[dir].locked, nil
}

func (f *fakeAttempts) Alone(agency.Process) bool { return false }

// Tail is the readable journal of an attempt.
func (f *fakeAttempts) Tail(string, string, int64) ([]byte, error) {
	return []byte("● Good morning.\n"), nil
}

func (f *fakeAttempts) Alive(agency.Process) (bool, error) { return !f.dead.Load(), nil }

func (f *fakeAttempts) Held(dir string, _ *agency.Start, _ agency.RunnerKind) (*agency.Exit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.dirs[dir]
	if h.unheld != nil {
		return nil, h.unheld
	}
	return h.held, nil
}

func (f *fakeAttempts) Signal(p agency.Process, sig syscall.Signal) error {
	if f.SignalFunc != nil {
		return f.SignalFunc(p, sig)
	}
	return os.ErrProcessDone
}

func (f *fakeAttempts) EndTree(_ context.Context, _, root agency.Process, _ []string, _ time.Duration) (int, error) {
	if f.EndTreeFunc != nil {
		f.EndTreeFunc()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, root)
	return 0, nil
}

func (*fakeAttempts) Unlimit(string, agency.RunID, int) error { return nil }

// OpenLog ignores times: output since a time begins at the end.
func (f *fakeAttempts) OpenLog(dir, stream string, from observe.LogStart) (log io.ReadCloser, begins int64, err error) {
	opened, err := os.Open(filepath.Join(dir, "logs", stream+".log"))
	if err != nil {
		return nil, 0, err
	}
	switch {
	case from.Offset != nil:
		begins, err = opened.Seek(*from.Offset, io.SeekStart)
	case !from.Since.IsZero():
		begins, err = opened.Seek(0, io.SeekEnd)
	}
	return opened, begins, err
}

// fakeWatcher counts the watches; file events come only from a test.
type fakeWatcher struct {
	hints chan string

	mu      sync.Mutex
	uses    map[string]int
	missing string // a folder that does not exist
}

func (f *fakeWatcher) Add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if dir == f.missing {
		return os.ErrNotExist
	}
	f.uses[dir]++
	return nil
}

// Remove is as tolerant as the real one.
func (f *fakeWatcher) Remove(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses[dir]--; f.uses[dir] <= 0 {
		delete(f.uses, dir)
	}
}

func (f *fakeWatcher) Changes() <-chan string { return f.hints }

func (f *fakeWatcher) watched() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.uses))
}

func (*fakeHarness) State(agency.RunnerKind, agency.Environ, string) agency.SandboxState {
	return agency.SandboxState{}
}
