package supervisor_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agency"
	"agency/internal/config"
	"agency/internal/handle"
	"agency/internal/scaffold"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is everything around a supervisor: a real store and folders, and fakes of git, tmux and the
// wrappers' host.
type world struct {
	t        *testing.T
	home     string
	root     string         // of the one repository
	ahead    *time.Duration // how far the daemon's clock is ahead of the kernel's
	store    *fakeStore
	git      *fakeGit
	tmux     *fakeTmux
	harness  *fakeHarness
	attempts *fakeAttempts
	watcher  *fakeWatcher
	sandbox  noSandbox
	setups   []agency.SetupCommand
	runSetup func(agency.SetupCommand) error // nil is a setup that succeeds
	scaffold supervisor.Scaffold             // nil is the real one
	random   supervisor.Random
	warnings []string
	sup      *supervisor.Supervisor

	calls sync.WaitGroup // started by call and after

	mu       sync.Mutex
	wrappers map[string]*wrapper // by session
}

const (
	rescan         = 30 * time.Second
	stallThreshold = 15 * time.Minute
)

func newWorld(t *testing.T) *world {
	t.Helper()
	home, root := t.TempDir(), t.TempDir()
	ahead := new(time.Duration)
	fixture.Database(t, filepath.Join(home, "agency.db"))
	db, err := sqlite.Open(t.Context(), filepath.Join(home, "agency.db"), func() time.Time { return time.Now().Add(*ahead) })
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, home: home, root: root, ahead: ahead,
		store: &fakeStore{Store: db},
		git: &fakeGit{
			repos:    map[string]agency.Repo{root: {Root: root, Toplevel: root, CommonDir: filepath.Join(root, ".git")}},
			branches: map[string]string{}, worktrees: map[string]string{}, made: map[string]string{},
		},
		tmux:     &fakeTmux{sessions: map[string]bool{}},
		harness:  &fakeHarness{},
		attempts: &fakeAttempts{dirs: map[string]onHost{}},
		watcher:  &fakeWatcher{hints: make(chan string), uses: map[string]int{}},
		wrappers: map[string]*wrapper{},
		random:   func(b []byte) { _, _ = rand.Read(b) },
	}
	w.tmux.OnKill = w.hangUp
	w.tmux.OnStart = func(l agency.Launch) error { return w.wrap(l).begin() }
	w.start()
	t.Cleanup(func() {
		w.calls.Wait()
		w.sup.Stop()
		w.calls.Wait() // also those that the stop caused
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// call makes a request in the background. The test ends only after its answer, because in a bubble
// time stops then.
func (w *world) call(request func()) { w.calls.Go(request) }

// after is call after a delay.
func (w *world) after(d time.Duration, request func()) {
	w.calls.Add(1)
	time.AfterFunc(d, func() {
		defer w.calls.Done()
		request()
	})
}

// now returns the daemon's time.
func (w *world) now() time.Time { return time.Now().Add(*w.ahead) }

// convert makes a time of the kernel's clock one of the daemon's, and not a later one than now.
func (w *world) convert(at time.Time) time.Time {
	if now := w.now(); at.Add(*w.ahead).After(now) {
		return now
	}
	return at.Add(*w.ahead)
}

// start starts a daemon.
func (w *world) start() {
	w.t.Helper()
	w.sup = supervisor.New(supervisor.Deps{
		Store: w.store, Git: w.git, Tmux: w.tmux, Harness: w.harness, Sandbox: &w.sandbox, Attempts: w.attempts, Watcher: w.watcher, Spool: spools{},
		Scaffold: func(root string, prompt []byte, at time.Time) error {
			if w.scaffold != nil {
				return w.scaffold(root, prompt, at)
			}
			return scaffold.Worktree(root, prompt, at)
		},
		Contract: scaffold.Contract, ReportUnfilled: scaffold.ReportUnfilled,
		ParseProject: config.ParseProject,
		NeededBy:     func(context.Context, agency.RunID) (agency.SessionID, error) { return "", nil },
		Room:         func() error { return nil },
		Standbys:     func() int { return 0 },
		Spare:        func() error { return nil },
		RunSetup: func(_ context.Context, c agency.SetupCommand) error {
			w.setups = append(w.setups, c)
			if w.runSetup != nil {
				return w.runSetup(c)
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler), Now: w.now, Elapsed: func(since time.Time) time.Duration { return w.now().Sub(since) },
		Convert: w.convert, Random: func(b []byte) { w.random(b) },
	}, supervisor.Settings{
		Home: w.home, Socket: filepath.Join(w.home, "sock"), Wrapper: []string{"agency", "wrapper"},
		StallThreshold: stallThreshold, Rescan: rescan,
	})
	if err := w.sup.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// restart ends the daemon and starts another; the wrappers and their host stay as they are.
func (w *world) restart() {
	w.t.Helper()
	w.sup.Stop()
	w.start()
}

// request returns a request for a run with the name.
func (w *world) request(name string) supervisor.NewRun {
	return supervisor.NewRun{
		Spec: agency.Spec{
			Repo: ".", BaseRef: "HEAD", Name: name,
			Runner: agency.SpecRunner{Kind: agency.Shell}, Prompt: agency.SpecPrompt{Text: "make test"},
		},
		Env:      []string{"PATH=/usr/bin", "HOME=/home/u"},
		Settings: w.settings(),
	}
}

// settings returns the caller's configuration.
func (w *world) settings() agency.RunSettings {
	format, err := handle.ParseFormat("")
	if err != nil {
		w.t.Fatal(err)
	}
	return agency.RunSettings{Exec: "sh", Handle: format, Grace: time.Second, LogBytes: 1 << 20}
}

// createRun creates a run in the place that the request names. When the runner has started, all that
// follows its report has happened too.
func (w *world) createRun(ctx context.Context, req supervisor.NewRun) (*agency.Run, error) {
	var err error
	if req.Place, err = w.sup.Projects.Locate(ctx, w.root, req.Spec.Repo, req.Spec.BaseRef); err != nil {
		return nil, err
	}
	r, warnings, err := w.sup.CreateRun(ctx, req)
	w.warnings = append(w.warnings, warnings...)
	if err != nil {
		return r, err
	}
	w.mu.Lock()
	p := w.wrappers[r.Session()]
	w.mu.Unlock()
	if p != nil && p.runs.Load() {
		_ = p.run() // waits for the call that began
	}
	return r, nil
}

func (w *world) create(name string) *agency.Run {
	w.t.Helper()
	r, err := w.createRun(w.t.Context(), w.request(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) run(id agency.RunID) *agency.Run {
	w.t.Helper()
	r, err := w.store.Run(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) events(id agency.RunID) []agency.Event {
	w.t.Helper()
	events, err := w.store.Events(context.Background(), 0, id, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return events
}

// count returns the number of events of a type that a run has.
func (w *world) count(id agency.RunID, typ agency.EventType) int {
	w.t.Helper()
	n := 0
	for _, e := range w.events(id) {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// wrapper is the process around one runner, as a supervisor sees it.
type wrapper struct {
	w       *world
	id      agency.RunID
	attempt int
	token   string
	dir     string
	link    *fakeLink
	start   agency.Start
	exit    atomic.Pointer[agency.Exit]
	waits   bool         // for the go
	run     func() error // starts the runner and reports it; idempotent
	runs    atomic.Bool
}

func (w *world) wrap(l agency.Launch) *wrapper {
	p := &wrapper{w: w, id: l.RunID, attempt: l.Attempt, token: l.Token, dir: l.AttemptDir, waits: l.Waits}
	p.start = agency.Start{
		RunID: l.RunID, Attempt: l.Attempt, StartedAt: time.Now().UTC().Truncate(time.Millisecond), TTY: true,
		Pane:    "%7",
		Wrapper: agency.Process{PID: 100, StartTicks: 1, BootID: "boot"}, Grace: l.Grace, Runner: agency.Process{PID: 101, StartTicks: 2, BootID: "boot"},
	}
	p.link = &fakeLink{StopFunc: func(by agency.EndedBy) error {
		return p.end(agency.Exit{ExitCode: 143, Signal: "SIGTERM", EndedBy: by})
	}}
	p.run = sync.OnceValue(func() error {
		p.runs.Store(true)
		w.attempts.change(p.dir, func(h *onHost) { h.start = &p.start })
		return p.update()
	})
	p.link.GoFunc = p.run
	w.attempts.change(p.dir, func(h *onHost) { h.locked = true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrappers[agency.SessionPrefix+string(l.RunID)] = p
	return p
}

// hangUp does what the wrapper of a killed session does.
func (w *world) hangUp(session string) {
	w.mu.Lock()
	p := w.wrappers[session]
	w.mu.Unlock()
	if p == nil || p.exit.Load() != nil {
		return
	}
	if locked, _ := w.attempts.Locked(p.dir); locked {
		if !p.runs.Load() {
			_ = p.end(agency.Exit{ExitCode: 126, EndedBy: agency.EndedByStartFailed, Error: "its session was ended"})
			return
		}
		_ = p.end(agency.Exit{ExitCode: 129, Signal: "SIGHUP", EndedBy: agency.EndedBySessionLost})
	}
}

func (p *wrapper) hello() agency.WrapperHello {
	return agency.WrapperHello{RunID: p.id, Attempt: p.attempt, Token: p.token, Wrapper: p.start.Wrapper}
}

func (p *wrapper) connect() error {
	return p.w.sup.Wrappers.Connect(context.Background(), p.hello(), p.link)
}

func (p *wrapper) update() error {
	return p.w.sup.Wrappers.Update(context.Background(), p.id, p.attempt, agency.WrapperUpdate{Start: &p.start, Exit: p.exit.Load()})
}

// begin connects, and starts the runner when it may.
func (p *wrapper) begin() error {
	if err := p.connect(); err != nil || p.waits {
		return err
	}
	return p.run()
}

// end records and reports the end of the runner, and disconnects.
func (p *wrapper) end(e agency.Exit) error {
	e.RunID, e.Attempt, e.StartedAt = p.id, p.attempt, p.start.StartedAt
	e.EndedAt = time.Now().UTC().Truncate(time.Millisecond)
	p.exit.Store(&e)
	p.w.attempts.change(p.dir, func(h *onHost) { h.exit = &e })
	err := p.update()
	p.w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
	p.w.sup.Wrappers.Disconnect(p.id, p.attempt, p.link)
	return err
}

// mustEnd is end in a test in which the end can be recorded.
func (p *wrapper) mustEnd(t testing.TB, e agency.Exit) {
	t.Helper()
	if err := p.end(e); err != nil {
		t.Fatal(err)
	}
}

// started returns a running run and its wrapper.
func (w *world) started(name string) (*agency.Run, *wrapper) {
	w.t.Helper()
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
	return w.create(name), p
}

// ended returns a run whose runner ended cleanly.
func (w *world) ended(name string) *agency.Run {
	w.t.Helper()
	r, p := w.started(name)
	if err := p.end(agency.Exit{EndedBy: agency.EndedByRunner}); err != nil {
		w.t.Fatal(err)
	}
	return w.run(r.ID)
}

// wantNothing fails unless an undone run left nothing but its record.
func (w *world) wantNothing() {
	w.t.Helper()
	for _, dir := range []string{"runs", "worktrees/*"} {
		found, err := filepath.Glob(filepath.Join(w.home, dir, "*"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, path := range found {
			if filepath.Base(filepath.Dir(path)) == "runs" || filepath.Base(filepath.Dir(filepath.Dir(path))) == "worktrees" {
				w.t.Errorf("left: %s", path)
			}
		}
	}
	if n := w.sup.Observer.LiveRuns(); n != 0 {
		w.t.Errorf("live runs: got %d, want none", n)
	}
	if got := w.watcher.watched(); len(got) != 0 {
		w.t.Errorf("left: watches of %v", got)
	}
	w.git.mu.Lock()
	defer w.git.mu.Unlock()
	if len(w.git.worktrees) != 0 {
		w.t.Errorf("left: worktrees %v", w.git.worktrees)
	}
	if left := w.tmux.left(); len(left) != 0 {
		w.t.Errorf("left: sessions %v", left)
	}
}

func wantCode(t *testing.T, err error, code agency.Code) {
	t.Helper()
	if !agency.IsCode(err, code) {
		t.Fatalf("got error %v, want %s", err, code)
	}
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noSandbox is a host where no sandbox is needed.
type noSandbox struct {
	supervisor.Sandbox
	remove func() error // of a container
}

func (n *noSandbox) Remove(context.Context, string) error { return n.remove() }

func (*noSandbox) Check(context.Context, agency.SandboxLevel) error { return nil }

func (*noSandbox) Limits(agency.SandboxLevel, agency.Resources) ([]agency.EnforcedLimit, error) {
	return nil, nil
}
