// Package runner is the wrapper around one agent process: pty, logs, control connection, exit
// record, process identity.
//
// Main runs in a process of its own in the pane of a run, and works without a daemon. The daemon
// has the other end of its connection, a Link, and reads the records and logs that it leaves:
// ReadStart, ReadExit, Locked, OpenLog. A wrapper that is killed leaves no exit record, and the
// kernel releases its lock: then EndTree ends what it left running.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/duration"
	"agency/internal/killpoint"
	"agency/internal/limit"
	"agency/internal/trace"
)

// Times that the wrapper waits.
const (
	heartbeatEvery = 5 * time.Second
	drainQuiet     = 50 * time.Millisecond // without output after the runner's end, by which all of its own is read
	drainLimit     = 2 * time.Second
	takeLimit      = 30 * time.Second // for a slow disk or pane to take the last output
	leftoverGrace  = 2 * time.Second  // between TERM and KILL for what a runner left behind
	ackLimit       = 2 * time.Second  // for the daemon to take the exit
	killEvery      = 20 * time.Millisecond
)

// Main is the wrapper process in the pane of a run: it reads the launch file and deletes it, runs
// the agent, keeps its logs and records, and returns the agent's exit status, or 128 + n when
// signal n ended it. It takes over the process: its signals and all of its children. The records on
// disk are complete before it returns.
//
// The parts may be nil.
func Main(launchPath string, stdin, stdout *os.File, parts Parts) int {
	// One processor is enough to copy what an agent prints. With more, each heartbeat wakes a second
	// thread that finds nothing to do, which costs as much as the heartbeat.
	runtime.GOMAXPROCS(1)

	// From the first moment, so that a stop during the start waits in the channel instead of
	// killing the wrapper. Notify and not Ignore: the runner would inherit an ignored signal.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, unix.SIGPIPE, unix.SIGTSTP)
	defer signal.Stop(signals)

	w := &wrapper{stdin: stdin, stdout: stdout, signals: signals, trace: trace.New("wrapper")}
	begun := w.trace.Begin("take the launch")
	killpoint.At("wrapper.begun")
	// The lock comes first: without a launch file and a lock, no process is about to start the
	// runner.
	lock, err := takeLock(filepath.Dir(launchPath))
	if err == nil {
		defer func() { _ = lock.Close() }()
		killpoint.At("wrapper.locked")
		err = w.takeLaunch(launchPath)
	}
	if err != nil {
		printNote(stdout, "error: "+err.Error())
		return agency.ExitError
	}
	begun()
	if !w.launch.Trace {
		w.trace = nil
	}
	w.take(parts)
	return w.run()
}

// takeLaunch reads the launch file. In a wrapper that adopts a runner, it completes the launch.
func (w *wrapper) takeLaunch(path string) (err error) {
	if w.launch, err = readLaunch(path); err != nil {
		return err
	}
	killpoint.At("wrapper.launched")
	if w.launch.Adopts {
		w.adopted, err = takeOver(&w.launch)
	}
	return err
}

// take takes the parts that the launch asks for.
func (w *wrapper) take(parts Parts) {
	launch := &w.launch
	w.network.launch = launch
	if parts.Observe != nil {
		w.observer = parts.Observe(launch)
	}
	if parts.Speak != nil && launch.Mode == agency.ModeProtocol {
		w.speaker = parts.Speak(launch)
	}
	if parts.Relay != nil && launch.Relay != "" {
		w.relay = parts.Relay(launch)
	}
	if parts.Proxy != nil && launch.Hosts != nil {
		w.network.proxy = parts.Proxy(launch.Hosts, w.network.used)
		if launch.Mode == agency.ModeProtocol {
			if err := w.network.keep(); err != nil {
				printNote(w.stdout, "warning: "+err.Error())
			}
		}
	}
}

// Parts are what the program gives its wrappers.
type Parts struct {
	// Observe returns the observer of a runner's output; the result may be nil.
	Observe func(*agency.Launch) Observer
	// Speak returns how to speak with a runner in the mode protocol.
	Speak func(*agency.Launch) *Speaker
	// Relay returns what passes the requests of a runner in a sandbox to the daemon.
	Relay func(*agency.Launch) Relay
	// Proxy returns the proxy of a runner that reaches these hosts. The proxy calls changed when its Use has
	// changed, before it answers the runner. news is false when only the count of a known refusal grew.
	Proxy func(hosts []string, changed func(news bool)) Proxy
}

// Observer receives the output and the titles of a runner. One goroutine at a time calls it. It must be
// quick, and must not keep its arguments.
type Observer interface {
	Output(p []byte)    // a piece of the standard output of a runner without a terminal
	Title(title string) // the title that a runner gave its terminal
}

// wrapper is one attempt while it runs.
type wrapper struct {
	launch        agency.Launch
	stdin, stdout *os.File
	signals       chan os.Signal
	observer      Observer // may be nil
	network       network
	relay         Relay         // nil unless the runner reaches the daemon through one
	limits        *limit.Kept   // nil unless the runner has limits
	speaker       *Speaker      // nil unless the mode is protocol
	adopted       *agency.Start // of the runner that an earlier wrapper started; nil otherwise

	start  agency.Start
	argv   []string // of the runner, within its limits
	out    *output
	term   *terminal // nil without a terminal
	client *client
	// Nil unless the mode is protocol:
	speech  *speech
	doors   *doors
	console *console

	exited chan status
	stops  chan stopRequest
	// mayStart is closed when the daemon lets the runner start.
	mayStart chan struct{}
	letGo    func() // closes mayStart; idempotent
	// clientDone is closed when the client has ended: while the runner waits or runs, because the
	// daemon refused the attempt.
	clientDone chan struct{}
	// started is closed when the runner runs; term is set by then.
	started chan struct{}
	over    chan struct{} // closed when the runner and its tree have ended
	family  *family
	trace   *trace.Trace // of the start; nil when no client asked for it
	// recordErr is why the exit record is not on disk.
	recordErr error
}

// stopRequest asks for the runner's end; sent is closed when the first signal is sent. The daemon
// repeats it whenever it does not know whether it arrived, so only a request with force ends the
// grace.
type stopRequest struct {
	by    agency.EndedBy
	force bool
	sent  chan struct{}
}

// run runs the agent and returns the exit status of the wrapper.
func (w *wrapper) run() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := w.begin(ctx)
	if err != nil {
		w.unlimit()
	}
	if err != nil && w.adopted != nil {
		printNote(w.stdout, "error: "+err.Error())
	}
	if errors.Is(err, errCutOff) || err != nil && w.adopted != nil {
		// Without a record of a start or an exit, the daemon takes the start as cut off, not as the
		// failure of the runner's program. A runner that was not adopted lives.
		cancel()
		<-w.clientDone
		w.out.close()
		return agency.ExitError
	}
	var exit *agency.Exit
	if err == nil {
		exit = w.supervise()
	} else {
		exit = w.startFailure(err)
		printNote(w.stdout, "error: "+exit.Error)
		w.recordErr = writeExit(w.launch.AttemptDir, exit)
		w.client.ended(*exit)
	}
	close(w.over)
	if w.relay != nil {
		_ = removeRelay(w.launch.Relay)
	}
	w.network.end()
	w.keepRecording(exit)
	select {
	case <-w.clientDone: // refused for good
	case <-w.client.exitTaken:
	case <-time.After(ackLimit):
	}
	killpoint.At("wrapper.reported")
	w.client.answered()
	cancel()
	<-w.clientDone
	w.out.close()
	if w.term != nil {
		w.term.restore()
	}
	if exit.EndedBy != agency.EndedByStartFailed {
		printEnd(w.stdout, exit)
	}
	return exit.ExitCode
}

// begin connects to the daemon, until ctx ends, and starts the runner or adopts it.
func (w *wrapper) begin(ctx context.Context) error {
	w.exited = make(chan status, 1)
	w.stops = make(chan stopRequest, 16)
	w.mayStart = make(chan struct{})
	w.letGo = sync.OnceFunc(func() { close(w.mayStart) })
	w.started = make(chan struct{})
	w.over = make(chan struct{})
	w.out = &output{came: make(chan struct{}, 1), progress: newProgress()}
	self, err := Identify(os.Getpid())
	w.start = agency.Start{
		RunID: w.launch.RunID, Attempt: w.launch.Attempt, TTY: w.launch.HasTerminal(), Mode: w.launch.Mode, Wrapper: self, StartedAt: killpoint.Now().UTC(),
		Grace: w.launch.Grace, Pane: os.Getenv("TMUX_PANE"), TokenHash: agency.TokenHash(w.launch.Token),
	}
	w.family = &family{launch: &w.launch, runner: &w.start.Runner, adopted: w.adopted != nil}
	w.client = newClient(&w.launch, self, w)
	w.network.client = w.client
	w.clientDone = make(chan struct{})
	connect := func() { defer close(w.clientDone); w.client.run(ctx) }
	if w.adopted == nil {
		go connect()
	}
	if err == nil {
		err = becomeSubreaper()
	}
	if err == nil {
		setMark(0, agency.AttemptMark(w.launch.RunID, w.launch.Attempt))
	}
	switch {
	case w.adopted == nil && err == nil:
		return w.startRunner()
	case w.adopted == nil:
		return err
	case err == nil:
		err = w.adopt()
	}
	if err != nil { // the daemon counts those that end before they connect
		close(w.clientDone)
		return fmt.Errorf("adopt the agent: %w", err)
	}
	go connect()
	return nil
}

// startRunner starts the program with its terminal or its pipes, its copiers, and the reaper.
func (w *wrapper) startRunner() error {
	end := w.trace.Begin("start the runner")
	if w.launch.Mode == agency.ModeProtocol {
		if err := createWire(w.launch.AttemptDir); err != nil {
			return err
		}
	}
	logs, err := createLogs(filepath.Join(w.launch.AttemptDir, logsDir), !w.launch.Headless, w.launch.LogBytes)
	if err != nil {
		return fmt.Errorf("create the logs: %w", err)
	}
	logs.lost = &w.out.lost
	w.out.logs = logs
	reserve(w.launch.AttemptDir, exitCodeFile, exitFile)
	killpoint.At("wrapper.limit")
	if w.limits, w.argv, err = limit.Begin(&w.launch); err != nil {
		return err
	}
	killpoint.At("wrapper.limited")
	if err := w.awaitGo(); err != nil {
		return err
	}
	if w.relay != nil {
		if err := serveRelay(w.relay, w.launch.Relay); err != nil {
			return err
		}
	}
	begin := w.startHeadless
	switch {
	case w.launch.Mode == agency.ModeProtocol:
		begin = w.startProtocol
	case !w.launch.Headless:
		begin = w.startTerminal
	}
	pid, err := begin()
	if err != nil {
		return err
	}
	w.start.StartedAt, w.start.Limits = killpoint.Now().UTC(), w.limits.Use()
	// Before the reaper starts: until then even a dead runner can be identified.
	if w.start.Runner, err = Identify(pid); err != nil {
		w.start.Runner = agency.Process{PID: pid}
	}
	killpoint.At("wrapper.forked")
	close(w.started)
	go reap(pid, w.exited)
	if w.speech != nil {
		go w.converse()
	}
	end()
	w.client.started(w.start, w.trace.Spans())
	return nil
}

// errCutOff is the error of a wrapper that ends before the daemon let it start the runner: its tmux session
// ended, or the daemon refused the attempt.
var errCutOff = errors.New("its start was taken back before its worktree was made")

// goLimit bounds the wait for the daemon's go. Making a worktree may take ten minutes.
const goLimit = 15 * time.Minute

// awaitGo waits until the daemon lets the runner start, if the launch asks for that. It returns
// errCutOff, or an error when the daemon stopped the start or the wait took too long.
func (w *wrapper) awaitGo() error {
	if !w.launch.Waits {
		return nil
	}
	defer w.trace.Begin("wait for the worktree")()
	killpoint.At("wrapper.waits")
	late := time.NewTimer(goLimit)
	defer late.Stop()
	for {
		select {
		case <-w.mayStart:
			return nil
		case req := <-w.stops:
			close(req.sent)
			return errors.New("it was stopped before its worktree was made")
		case sig := <-w.signals:
			if sig == unix.SIGTERM || sig == unix.SIGHUP {
				return errCutOff
			}
		case <-w.clientDone:
			return errCutOff
		case <-late.C:
			return fmt.Errorf("its worktree was not made in %s", duration.Text(goLimit))
		}
	}
}

// supervise waits for the end of the runner and returns its exit record.
func (w *wrapper) supervise() *agency.Exit {
	var (
		late       <-chan time.Time
		startSaved = writeStart(w.launch.AttemptDir, &w.start) == nil
		heartbeat  = time.NewTicker(heartbeatEvery)
		end        = demand{family: w.family, grace: w.launch.Grace}
	)
	defer heartbeat.Stop()
	killpoint.At("wrapper.started")
	touchHeartbeat(w.launch.AttemptDir)
	if w.launch.TimeLimit > 0 {
		late = time.After(w.launch.TimeLimit)
	}
	full := w.measureDisk()
	for {
		select {
		case st := <-w.exited:
			return w.ending(st, end.by, end.deadline)
		case req := <-w.stops:
			end.ask(req.by, req.force)
			close(req.sent)
		case <-late:
			end.ask(agency.EndedByTimeLimit, false)
		case again := <-full:
			end.ask(agency.EndedByLimit, again)
		case <-end.kill:
			end.killAll()
		case sig := <-w.signals:
			switch {
			case sig == unix.SIGTERM:
				end.ask(agency.EndedBySignal, true)
			case sig == unix.SIGHUP && end.by == "":
				end.ask(agency.EndedBySessionLost, false)
			default:
				w.pass(sig)
			}
		case <-heartbeat.C:
			touchHeartbeat(w.launch.AttemptDir)
			if w.limits.Look(killpoint.Now()) {
				w.client.limits(w.limits.Use())
			}
			if !startSaved {
				startSaved = writeStart(w.launch.AttemptDir, &w.start) == nil
			}
		}
	}
}

// measureDisk measures the disk that the attempt takes until the runner's tree has ended. It sends on the
// channel when that is more than the limit: first false, and then true for each time that it has grown
// much more.
func (w *wrapper) measureDisk() <-chan bool {
	full := make(chan bool)
	go w.limits.MeasureDisk(w.over, killpoint.Now, func(again bool) {
		select {
		case full <- again:
		case <-w.over:
		}
	})
	return full
}

// pass forwards a signal that is meant for the program in the pane.
func (w *wrapper) pass(sig os.Signal) {
	switch {
	case sig == unix.SIGWINCH && w.term != nil:
		w.term.resize()
	case w.speech != nil && sig == unix.SIGINT:
		go w.console.interrupt()
	case w.speech == nil && (sig == unix.SIGINT || sig == unix.SIGQUIT):
		_ = unix.Kill(-w.start.Runner.PID, sig.(syscall.Signal))
	}
}

// awaitStart waits until the runner runs. The error has the code.
func (w *wrapper) awaitStart(code agency.Code) error {
	select {
	case <-w.started:
		return nil
	case <-time.After(writeLimit):
		return startingError(code, w.launch.RunID)
	}
}

// requestStop is how the daemon stops the runner. It returns when the first signal is sent, or when
// there is nothing left to stop.
func (w *wrapper) requestStop(by agency.EndedBy, force bool) {
	req := stopRequest{by: by, force: force, sent: make(chan struct{})}
	select {
	case w.stops <- req:
	case <-w.over:
		return
	}
	select {
	case <-req.sent:
	case <-w.over:
	}
}
