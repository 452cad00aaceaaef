// Package daemon runs the process that supervises: its lock, socket, handlers and streams. It
// builds the parts and connects them.
package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/clock"
	"agency/internal/config"
	"agency/internal/disk"
	"agency/internal/file"
	"agency/internal/git"
	"agency/internal/killpoint"
	"agency/internal/lander"
	"agency/internal/notify"
	"agency/internal/policy"
	"agency/internal/power"
	"agency/internal/proxy"
	"agency/internal/queuer"
	"agency/internal/recovery"
	"agency/internal/runner"
	"agency/internal/sandbox"
	"agency/internal/scaffold"
	"agency/internal/scheduler"
	"agency/internal/service"
	"agency/internal/session"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/tmux"
	"agency/internal/verify"
	"agency/internal/watch"
	"agency/internal/watchdog"
)

// Limits on what the daemon asks of other programs.
const (
	gitTimeout  = 5 * time.Minute
	tmuxTimeout = 10 * time.Second
	// drainTimeout limits how long a stop waits for requests in progress.
	drainTimeout = 5 * time.Second
	// endTimeout limits how long the parts may take to stop after that.
	endTimeout = 15 * time.Second
	// lookEvery is how often the daemon checks that its lock and socket still exist, and whether its
	// configuration changed. A client that finds no socket starts a second daemon, which waits for
	// longer than this.
	lookEvery = 3 * time.Second
)

// Daemon is the supervising process of one data root.
type Daemon struct {
	Config  *config.Config
	Version string
	Exec    string // path of this program, which also runs as wrapper
	Log     *slog.Logger
	Now     func() time.Time // the system's clock
	// Load reads the configuration again after its file changed. When nil, Config stays in effect.
	Load func() (*config.Config, error)
	End  func(status int) // ends the process at once

	root      *rootLock
	writing   sync.Mutex  // held while the record is written back
	again     atomic.Bool // the record was written back, and nothing more is written
	stopAsked atomic.Bool // a client asked for the stop
	clock     *clock.Clock
	started   time.Time
	store     *sqlite.Store
	disks     disk.Disks
	git       *git.Git
	tmux      *tmux.Tmux
	watcher   *watch.Watcher
	sandbox   *sandbox.Host
	sup       *supervisor.Supervisor
	lander    *lander.Lander
	queuer    *queuer.Queuer
	landings  *session.Landings
	sched     *scheduler.Scheduler
	results   *scheduler.Results
	files     *scheduler.Files
	dog       *watchdog.Watchdog
	notifier  atomic.Pointer[notify.Notifier]
	active    active
	timers    *watchdog.Timers
	policy    *policy.Policy
	finder    scheduler.Finder
	sessions  *session.Sessions
	verifier  *verify.Verifier
	backups   *recovery.Backups
	conns     connections

	stop     context.CancelFunc // stops the daemon, by ending asked
	asked    <-chan struct{}
	listener *listener     // the newest one
	unheard  string        // the last reported reason why the socket could not be made again
	stopping chan struct{} // closed when no more connections are accepted, to end requests that wait
	looks    chan struct{} // has one when the configuration is to be read again
}

// SchemaVersion returns the newest version of the record that a daemon of this program can read.
func SchemaVersion() int { return sqlite.SchemaVersion() }

// LogPath returns the path of the daemon's log.
func LogPath(home string) string { return filepath.Join(home, "logs", "agencyd.log") }

// ErrAgain is returned by Run when another daemon must follow at once: the files of the database
// were deleted or replaced.
var ErrAgain = errors.New("the files of the database were deleted or replaced")

// Run serves until ctx ends, a client asks for a stop, or an error. It calls ready once the socket
// answers. It returns E_DAEMON_START_FAILED when it cannot start. When it returns, the socket is
// gone and the lock is free. When it returns ErrAgain, the lock is free and the caller must run
// Next at once: that daemon continues with the socket, and answers clients that connected in
// between.
func (d *Daemon) Run(ctx context.Context, ready func()) (err error) {
	asked, stop := context.WithCancel(ctx)
	defer stop()
	d.stop, d.asked = stop, asked.Done()
	defer func() {
		if d.isFollowed() {
			err = ErrAgain
		}
	}()
	home := d.Config.Home
	if err := makeFolders(d.Config); err != nil {
		return err
	}
	if d.root, err = d.lock(ctx); err != nil {
		return err
	}
	defer func() {
		killpoint.At("daemon.ended")
		// The socket is removed last: when a client finds none, everything is done.
		d.endListening()
		d.root.unlock()
	}()

	killpoint.At("daemon.locked")
	began := time.Now()
	d.clock = clock.New(d.Now, func() time.Duration { return time.Since(began) })
	d.started, d.stopping, d.looks = d.clock.Now(), make(chan struct{}), make(chan struct{}, 1)
	d.active.begin(d.Config, d.started)
	file.ClearTemp(filepath.Join(home, config.TempDir)) // left by processes that were killed; it only takes space
	database := databaseOf(home, d.clock.Now)
	if _, err := database.Finish(); err != nil {
		return err
	}
	if err := database.RefuseMissing(); err != nil {
		return err
	}
	if d.store, err = sqlite.Open(ctx, database.Path(), d.clock.Now); err != nil {
		return err
	}
	defer func() { _ = d.store.Close() }()
	d.store.Guard(d.checkOwn)
	if err := setClock(ctx, d.clock, d.store); err != nil {
		return err
	}
	killpoint.At("daemon.opened")
	if err = d.listen(ctx); err != nil {
		return err
	}
	killpoint.At("daemon.listening")
	d.build()
	return d.supervise(ctx, ready)
}

// supervise starts the parts in order, serves, and stops them in the reverse order.
func (d *Daemon) supervise(ctx context.Context, ready func()) error {
	stop, err := service.StartAll(ctx, d.watcher, d.sup.Counter, d.sup, d.lander, d.verifier, channels{d}, d.dog, d.results, d.files, d.sched, d.timers, d.queuer,
		&service.Loop{Run: d.watchConfig}, d.backups)
	if err != nil {
		return err
	}
	defer func() {
		late := time.AfterFunc(endTimeout, d.endLate)
		defer late.Stop()
		stop()
	}()
	killpoint.At("daemon.reconciled")
	err = d.store.Append(ctx, agency.EventDraft{Type: agency.DaemonStarted, Data: map[string]any{"version": d.Version, "pid": os.Getpid()}})
	switch {
	case sqlite.Full(err):
		d.Log.Warn("record the start of the daemon", "err", err) // users need a daemon anyway, to look and to stop agents
	case err != nil:
		return err
	}
	killpoint.At("daemon.recorded")
	d.Log.Info("daemon started", "version", d.Version, "home", d.Config.Home, "socket", d.Config.Socket, "live_runs", d.sup.Observer.LiveRuns())
	return d.serve(ctx, ready)
}

// setClock makes a clock continue from the time of the newest event of a record.
func setClock(ctx context.Context, c *clock.Clock, store *sqlite.Store) error {
	last, err := store.LastSeq(ctx)
	if err != nil || last == 0 {
		return err
	}
	newest, err := store.Events(ctx, last-1, "", 1)
	if err != nil {
		return err
	}
	for i := range newest {
		c.Begin(newest[i].At)
	}
	return nil
}

// newGit returns the git of a data root.
func newGit(home string) *git.Git {
	g := git.New(gitTimeout, filepath.Join(home, config.TempDir), filepath.Join(home, "git"))
	g.Claims = filepath.Join(home, "locks", "refs")
	return g
}

// checkSpare returns why the machine has no resources for work ahead of time; nil when it has.
func checkSpare(disks *disk.Disks) error {
	if power.OnBattery() {
		return errors.New("the machine is on battery")
	}
	return disks.CheckSpare()
}

// statusLine returns the command that prints the status of a run for tmux, whose environment may
// differ from agency's. The argument of the command follows.
func statusLine(cfg *config.Config, program string) []string {
	return []string{"env", "AGENCY_HOME=" + cfg.Home, "AGENCY_SOCKET=" + cfg.Socket, program, "line"}
}

// build makes the parts and connects them.
func (d *Daemon) build() {
	d.disks = disk.Disks{Home: d.Config.Home, MinFree: func() int64 { return d.active.config().Disk.MinFree }, Config: d.Config.Path}
	d.git = newGit(d.Config.Home)
	d.tmux = tmux.New(d.Config.Tmux.Socket, tmuxTimeout)
	runner.DropMark() // this daemon, or the tmux server that it starts, may have been started by an agent
	d.watcher = watch.New(d.Log)
	d.sandbox = &sandbox.Host{Program: d.Exec, Tmp: filepath.Join(d.Config.Home, config.TempDir)}
	d.sup = d.newSupervisor()
	d.sup.Observer.Errors.SetPatterns(errorPatterns(d.Config))
	d.lander = d.newLander()
	d.finder = scheduler.Finder{Store: d.store, Discover: d.git.Discover}
	d.policy = policy.New(policy.Deps{
		Store: d.store, Records: d.sup.Records, Callers: d.sup.Callers, Runs: d.sup.Live, Discover: d.git.Discover, LookUp: d.finder.LookUp, Config: d.active.config, Serving: d.serving(), Now: d.clock.Now,
	})
	d.notifier.Store(d.newNotifier(&d.Config.Notify))
	d.dog, d.timers = d.newWatchdog(), watchdog.NewTimers(workers{d.sup, d.agents().Leads}, d.store, d.Log, d.clock.Now)
	d.verifier = d.newVerifier()
	d.queuer = d.newQueuer()
	d.landings = d.newLandings()
	d.results, d.files, d.sched = d.newResults(), d.newFiles(), d.newScheduler()
	d.sessions = d.newSessions()
	d.backups = &recovery.Backups{
		Home: d.Config.Home, Store: d.store, Keep: func() int { return d.active.config().DB.Backups }, Log: d.Log, Now: d.clock.Now,
	}
}

func (d *Daemon) newSupervisor() *supervisor.Supervisor {
	return supervisor.New(supervisor.Deps{
		Store:          d.store,
		Git:            d.git,
		Tmux:           sessions{Tmux: d.tmux, line: statusLine(d.Config, d.Exec), own: d.Config.Tmux.Socket != ""},
		Harness:        harnesses{d.screens()},
		Sandbox:        d.sandbox,
		Attempts:       attempts{d.serving()},
		Watcher:        d.watcher,
		Spool:          spools{},
		Scaffold:       scaffold.Worktree,
		Contract:       scaffold.Contract,
		ReportUnfilled: scaffold.ReportUnfilled,
		ParseProject:   config.ParseProject,

		ParseDevcontainer: config.ParseDevcontainer,

		RunSetup: func(ctx context.Context, s agency.SetupCommand) error {
			return runner.RunSetup(ctx, []string{d.Exec, "marked"}, s, d.serving(), newProxy)
		},
		Room:     d.disks.CheckRoom,
		Standbys: func() int { return d.active.config().Worktrees.Standby },
		Spare:    func() error { return checkSpare(&d.disks) },
		Boot:     runner.Boot(),
		Log:      d.Log,
		Now:      d.clock.Now,
		Elapsed:  d.clock.Elapsed,
		Convert:  d.clock.Convert,
		Random:   fillRandom,
		// Called only when all parts exist.
		NeededBy: func(ctx context.Context, id agency.RunID) (agency.SessionID, error) {
			return d.agents().NeededBy(ctx, id)
		},
	}, supervisor.Settings{
		Home:           d.Config.Home,
		Socket:         d.Config.Socket,
		Lock:           LockPath(d.Config.Home),
		Wrapper:        []string{d.Exec, "wrapper"},
		Hook:           []string{d.Exec, "hook"},
		StallThreshold: d.Config.Watchdog.StallThreshold,
		Rescan:         d.Config.Watchdog.PollInterval,
	})
}

// newProxy makes the proxy for a setup in a sandbox with the network level allow.
func newProxy(hosts []string, changed func(news bool)) runner.Proxy { return proxy.New(hosts, changed) }

// serve answers until the end, then lets the requests in progress finish.
func (d *Daemon) serve(ctx context.Context, ready func()) error {
	// Streams end with the daemon; requests may finish first.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           inTime(bodyWait, recovered(d.Log, d.routes())),
		ReadHeaderTimeout: headerWait,
		IdleTimeout:       idleWait,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withPeer,
		ConnState:         d.conns.state,
		ErrorLog:          slog.NewLogLogger(d.Log.Handler(), slog.LevelWarn),
	}
	// A client that learns that the daemon stops looks for the next one, and must not find this one
	// again.
	server.RegisterOnShutdown(func() { close(d.stopping) })
	failed := make(chan error)
	listenOn := func(l net.Listener) {
		select {
		case failed <- server.Serve(l):
		case <-base.Done():
		}
	}
	go listenOn(d.listener)
	recordDoing(d.Config.Home, d.Log, api.DoingServe)
	ready()
	err := d.awaitEnd(ctx, failed, listenOn)
	if err == nil { // otherwise the end is a failure
		recordDoing(d.Config.Home, d.Log, api.DoingStop)
	}
	killpoint.At("daemon.stopping")
	drain, done := context.WithTimeout(base, drainTimeout)
	defer done()
	if shutdownErr := server.Shutdown(drain); shutdownErr != nil {
		_ = server.Close()
	}
	killpoint.At("daemon.drained")
	if appendErr := d.store.Append(base, agency.EventDraft{Type: agency.DaemonStopped, Data: map[string]any{"pid": os.Getpid()}}); appendErr != nil {
		d.Log.Warn("record the end of the daemon", "err", appendErr)
	}
	d.Log.Info("daemon stopped", "live_runs", d.sup.Observer.LiveRuns())
	return err
}

// awaitEnd returns when the daemon was asked to stop, or with the error of failed. Meanwhile it looks
// from time to time at what belongs to the daemon.
func (d *Daemon) awaitEnd(ctx context.Context, failed <-chan error, listenOn func(net.Listener)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if d.needsReload() { // this wakes another goroutine only when needed
				select {
				case d.looks <- struct{}{}:
				default: // the previous look has not ended
				}
			}
			_ = d.checkOwn() // it has logged the error
			if d.listenAgain(ctx) {
				go listenOn(d.listener)
			}
		case <-d.asked:
			return nil
		case err := <-failed:
			return err
		}
	}
}

// endLate ends a daemon whose parts do not stop, as if it were killed: the next one finishes their
// work. It logs what they wait for.
func (d *Daemon) endLate() {
	stacks := make([]byte, 1<<20)
	d.Log.Error("the daemon does not stop, ending it", "after", endTimeout, "stacks", string(stacks[:runtime.Stack(stacks, true)]))
	d.End(agency.ExitError)
}

func (d *Daemon) isStopping() bool {
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}

func startError(format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodeDaemonStartFailed, "the daemon cannot start: "+format, args...)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	fillRandom(b)
	return b
}

func fillRandom(b []byte) { _, _ = rand.Read(b) } // never fails
