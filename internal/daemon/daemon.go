// Package daemon is the life of the process that supervises: its lock, its socket, its handlers and streams. It builds the
// parts and puts them together.
package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/git"
	"agency/internal/killpoint"
	"agency/internal/notify"
	"agency/internal/runner"
	"agency/internal/scaffold"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/tmux"
	"agency/internal/watchdog"
)

// tempDir is the folder of the data root for what no later daemon needs.
const tempDir = "tmp"

// Limits on what the daemon asks of other programs.
const (
	gitTimeout  = 5 * time.Minute
	tmuxTimeout = 10 * time.Second
	// drainTimeout bounds how long a stop waits for requests that are under way.
	drainTimeout = 5 * time.Second
	// socketEvery is how often the daemon looks whether its socket is still there. A client that finds none starts a
	// second daemon, which waits for longer than this.
	socketEvery = 2 * time.Second
)

// Daemon is one supervising process for one data root.
type Daemon struct {
	Config  *config.Config
	Version string
	Exec    string // this program, which wrappers run too
	Log     *slog.Logger
	Now     func() time.Time // the system's clock
	// Load reads the configuration again after its file changed. Without it what Config says holds for good.
	Load func() (*config.Config, error)

	clock    *clock
	started  time.Time
	store    *sqlite.Store
	git      *git.Git
	tmux     *tmux.Tmux
	sup      *supervisor.Supervisor
	sched    *scheduler.Scheduler
	files    *scheduler.Files
	dog      *watchdog.Watchdog
	notifier atomic.Pointer[notify.Notifier]
	active   active
	timers   *watchdog.Timers

	requestStop context.CancelFunc // asks for the end
	unheard     string             // why the socket could not be made again, as told last
	stopping    chan struct{}      // closed when no connection is taken any more: what waits for something ends
}

// LogPath is the daemon's log file.
func LogPath(home string) string { return filepath.Join(home, "logs", "agencyd.log") }

// Run serves until ctx ends, a client asks for the end, or something fails. ready is called once the socket answers. It
// returns E_DAEMON_START_FAILED when it cannot start; when it returns, the socket is gone and the lock is free.
func (d *Daemon) Run(ctx context.Context, ready func()) error {
	home := d.Config.Home
	if err := makeFolders(d.Config); err != nil {
		return err
	}
	lock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	var listener net.Listener
	defer func() {
		killpoint.At("daemon.ended")
		// The socket goes last: a client that finds none may rely on all being done.
		if listener != nil {
			_ = listener.Close() // a start that failed left it open
			_ = os.Remove(d.Config.Socket)
		}
		_ = lock.Unlock()
	}()

	killpoint.At("daemon.locked")
	began := time.Now()
	d.clock = newClock(d.Now, func() time.Duration { return time.Since(began) })
	d.started, d.stopping = d.clock.Now(), make(chan struct{})
	d.active.begin(d.Config, d.started)
	_ = os.RemoveAll(filepath.Join(home, tempDir)) // left by a daemon that was killed; it costs nothing but room
	if _, err := finishRestore(home); err != nil {
		return err
	}
	if err := refuseEmptied(home); err != nil {
		return err
	}
	if d.store, err = sqlite.Open(ctx, DatabasePath(home), d.clock.Now); err != nil {
		return err
	}
	defer func() { _ = d.store.Close() }()
	if err := d.setClock(ctx); err != nil {
		return err
	}
	killpoint.At("daemon.opened")
	watcher := newWatcher(d.Log)
	defer watcher.close()

	if listener, err = d.listen(ctx); err != nil {
		return err
	}
	killpoint.At("daemon.listening")
	d.build(watcher)
	return d.supervise(ctx, listener, ready)
}

// supervise starts the parts one after the other, serves, and stops them the other way round.
func (d *Daemon) supervise(ctx context.Context, listener net.Listener, ready func()) error {
	if err := d.sup.Start(ctx); err != nil {
		return err
	}
	defer d.sup.Stop()
	d.notifier.Store(d.newNotifier(&d.Config.Notify))
	if err := d.notifier.Load().Start(ctx); err != nil {
		return err
	}
	defer func() { d.notifier.Load().Stop() }()
	d.dog = d.newWatchdog()
	if err := d.dog.Start(ctx); err != nil {
		return err
	}
	defer d.dog.Stop()
	results := d.newResults()
	results.Start(ctx)
	defer results.Stop()
	d.files = d.newFiles()
	d.files.Start(ctx)
	defer d.files.Stop()
	d.sched = d.newScheduler()
	if err := d.sched.Start(ctx); err != nil {
		return err
	}
	defer d.sched.Stop()
	d.timers = d.newTimers()
	if err := d.timers.Start(ctx); err != nil {
		return err
	}
	defer d.timers.Stop()
	defer d.watchConfig(ctx)()
	killpoint.At("daemon.reconciled")
	if err := d.store.Append(ctx, agency.News{Type: agency.DaemonStarted, Data: map[string]any{"version": d.Version, "pid": os.Getpid()}}); err != nil {
		return err
	}
	killpoint.At("daemon.recorded")
	d.Log.Info("daemon started", "version", d.Version, "home", d.Config.Home, "socket", d.Config.Socket, "live_runs", d.sup.LiveRuns())
	return d.serve(ctx, listener, ready)
}

// setClock has the daemon go on from the time of the newest event.
func (d *Daemon) setClock(ctx context.Context) error {
	last, err := d.store.LastSeq(ctx)
	if err != nil || last == 0 {
		return err
	}
	newest, err := d.store.Events(ctx, last-1, "", 1)
	if err != nil {
		return err
	}
	for i := range newest {
		d.clock.begin(newest[i].At)
	}
	return nil
}

// build puts the parts together.
func (d *Daemon) build(watcher *watcher) {
	d.git = git.New(gitTimeout, filepath.Join(d.Config.Home, tempDir))
	d.tmux = tmux.New(d.Config.Tmux.Socket, tmuxTimeout)
	// What serves all runs is told apart from what belongs to the run that happened to start it.
	d.tmux.Env = append(os.Environ(), "AGENCY_DAEMON=1")
	d.sup = supervisor.New(supervisor.Deps{
		Store:          d.store,
		Git:            d.git,
		Tmux:           sessions{d.tmux},
		Harness:        harnesses{d.screens(), d.Log},
		Attempts:       attempts{},
		Watcher:        watcher,
		Spool:          spools{},
		Scaffold:       scaffold.Worktree,
		Contract:       scaffold.Contract,
		ReportUnfilled: scaffold.ReportUnfilled,
		ParseProject:   config.ParseProject,
		RunSetup:       runner.RunSetup,
		NeededBy:       d.neededBy,
		Log:            d.Log,
		Now:            d.clock.Now,
		Elapsed:        d.clock.Elapsed,
		Random:         func(b []byte) { _, _ = rand.Read(b) }, // never fails
	}, supervisor.Settings{
		Home:           d.Config.Home,
		Socket:         d.Config.Socket,
		Wrapper:        []string{d.Exec, "wrapper"},
		Hook:           []string{d.Exec, "hook"},
		StallThreshold: d.Config.Watchdog.StallThreshold,
		Rescan:         d.Config.Watchdog.PollInterval,
	})
	d.sup.SetErrorPatterns(errorPatterns(d.Config))
}

// serve answers until the end, then lets the requests under way finish.
func (d *Daemon) serve(ctx context.Context, listener net.Listener, ready func()) error {
	// Streams end with the daemon, requests may finish first.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	asked, stop := context.WithCancel(ctx)
	defer stop()
	d.requestStop = stop
	server := &http.Server{
		Handler:           d.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(d.Log.Handler(), slog.LevelWarn),
	}
	// Who is told that the daemon stops looks for the next one, and must not find this one again.
	server.RegisterOnShutdown(func() { close(d.stopping) })
	failed := make(chan error)
	listenOn := func(l net.Listener) {
		select {
		case failed <- server.Serve(l):
		case <-base.Done():
		}
	}
	go listenOn(listener)
	d.tell(api.DoingServe)
	ready()
	look := time.NewTicker(socketEvery)
	defer look.Stop()
	var err error
	for serving := true; serving; {
		select {
		case <-look.C:
			if again := d.listenAgain(ctx); again != nil {
				go listenOn(again)
			}
			continue
		case <-asked.Done():
		case err = <-failed:
		}
		serving = false
	}
	if err == nil { // else it is no end that anybody asked for
		d.tell(api.DoingStop)
	}
	killpoint.At("daemon.stopping")
	drain, done := context.WithTimeout(base, drainTimeout)
	defer done()
	if shutdownErr := server.Shutdown(drain); shutdownErr != nil {
		_ = server.Close()
	}
	killpoint.At("daemon.drained")
	if appendErr := d.store.Append(base, agency.News{Type: agency.DaemonStopped, Data: map[string]any{"pid": os.Getpid()}}); appendErr != nil {
		d.Log.Warn("record the end of the daemon", "err", appendErr)
	}
	d.Log.Info("daemon stopped", "live_runs", d.sup.LiveRuns())
	return err
}

func (d *Daemon) isStopping() bool {
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}

// listen opens the socket for the owner alone. The lock is held, so a socket that is there already is a dead daemon's.
func (d *Daemon) listen(ctx context.Context) (net.Listener, error) {
	path := d.Config.Socket
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, startError("look at %s: %w", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, startError("%s is there and is not a socket", path).WithHint("move it away, or set AGENCY_SOCKET to another path")
	default:
		if answers(ctx, path) {
			return nil, startError("somebody else listens on %s", path).WithHint("set AGENCY_SOCKET to another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, startError("remove the dead socket %s: %w", path, err)
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, startError("listen on %s: %w", path, err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	// Who connects before is turned away by ownerOnly. A mask would hit the files that others make at the same time.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(startError("make %s private: %w", path, err), listener.Close())
	}
	return ownerOnly{listener}, nil
}

// listenAgain makes a socket that somebody deleted once more, with its folder; nil when there is nothing to do. The lock is held, so it
// can only be this daemon's. The old listener stays for what still waits in it.
func (d *Daemon) listenAgain(ctx context.Context) net.Listener {
	if _, err := os.Lstat(d.Config.Socket); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var listener net.Listener
	var err error
	if filepath.Dir(d.Config.Socket) != d.Config.Home { // a data root that somebody removed stays removed
		err = makeSocketFolder(d.Config)
	}
	if err == nil {
		listener, err = d.listen(ctx)
	}
	if err != nil {
		if text := err.Error(); text != d.unheard {
			d.Log.Error("listen again", "err", err)
			d.unheard = text
		}
		return nil
	}
	d.unheard = ""
	d.Log.Warn("the socket was gone, listening again", "socket", d.Config.Socket)
	return listener
}

func startError(format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodeDaemonStartFailed, "the daemon cannot start: "+format, args...)
}

// ownerOnly accepts connections of the daemon's own user and closes all others. The mode of the socket says the same; this
// holds even where somebody changed it.
type ownerOnly struct{ net.Listener }

func (l ownerOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(conn); err == nil && uid == os.Getuid() {
			return conn, nil
		}
		_ = conn.Close()
	}
}
