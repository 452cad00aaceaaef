package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/supervisor/observe"
	"agency/internal/supervisor/standby"
	"agency/internal/trace"
)

// launcher takes the steps from a planned attempt to a running agent.
type launcher struct {
	Settings

	store    *Records
	live     *Live
	repos    *Repos
	projects *Projects
	views    *views
	settler  *settler
	sandbox  Sandbox
	standbys *standby.Pool
	git      Git
	tmux     Tmux
	harness  Harness
	attempts Attempts
	scaffold Scaffold
	contract Contract
	runSetup RunSetup
	log      *slog.Logger
	life     *life

	tmuxFine atomic.Bool // set when checkTmux found a recent enough tmux
}

// launching is an attempt while it becomes a running agent.
type launching struct {
	run        *agency.Run
	token      string
	env        []string // the runner's, without what agency adds
	command    agency.Command
	settings   *agency.RunSettings
	resumes    string            // the conversation that it continues in the mode protocol
	files      []string          // what is attached to its task, relative to the worktree
	hosts      []string          // of its spec, which it reaches with the network allow
	set        []string          // the names of the variables that were set for the attempt
	privateGit chan func() error // gets the function that makes the agent's repository in a sandbox; nil when the worktree is there already
	setup      *setup            // nil when the repository needs none, or it is done
	waits      bool              // the wrapper waits until it is let go
	silent     bool              // the agent gets no message at the start, and waits for one
	keeps      bool              // what the agent reported in the attempt before still counts
	warnings   []string          // problems that do not fail the start
}

func (l *launching) warn(text string) { l.warnings = append(l.warnings, text) }

// step is one step towards a running agent.
type step struct {
	name string
	do   func() error
	// more means that the step is recorded together with the next one: a flush takes longer than
	// many steps, and a creation that is cut off before it is undone as a whole.
	more bool
}

// takeSteps takes the steps in order and records them; of prefixes their killpoints.
func (la *launcher) takeSteps(ctx context.Context, l *launching, of string, steps []step) error {
	var done []string
	for _, step := range steps {
		if step.name == stepSetup && l.setup == nil {
			continue
		}
		end := trace.Begin(ctx, "step", step.name)
		err := step.do()
		end()
		if err != nil {
			return err
		}
		killpoint.At(of, step.name, "made")
		if done = append(done, step.name); step.more {
			continue
		}
		if err := la.store.FinishSteps(ctx, l.run.ID, l.run.Attempt.Number, done...); err != nil {
			return err
		}
		done = nil
		killpoint.At(of, step.name, "recorded")
	}
	return nil
}

// startTimeout bounds the wait from the start of a tmux session to the wrapper's first message.
const startTimeout = 30 * time.Second

// startSession passes the launch data to a wrapper in a new tmux session. The wrapper reports the
// pane.
func (la *launcher) startSession(ctx context.Context, l *launching) error {
	for name, data := range l.command.Files {
		path := filepath.Join(observe.AttemptDir(l.run.Dir, l.run.Attempt.Number), name)
		if err := file.WriteAtomic(path, data); err != nil {
			return asFileError(err)
		}
	}
	launch, err := la.writeLaunch(ctx, l)
	if err != nil {
		return err
	}
	killpoint.At("launch.written")
	argv := append(append([]string{}, la.Wrapper...), launch)
	if err := la.tmux.StartSession(ctx, l.run, argv); err != nil {
		return err
	}
	killpoint.At("launch.session")
	return nil
}

// startEarly starts the session of a run whose worktree is not made yet: tmux and the wrapper take
// as long to start as git takes for a few hundred files. The wrapper waits until letGo. The
// returned function waits for the start and returns its error.
func (la *launcher) startEarly(ctx context.Context, l *launching) (await func() error) {
	l.waits = true
	if l.run.Sandbox.Level.Confines() {
		l.privateGit = make(chan func() error, 1)
	}
	started := make(chan struct{})
	var err error
	go func() {
		defer close(started)
		if l.privateGit != nil {
			defer close(l.privateGit)
		}
		defer trace.Begin(ctx, "start the session")()
		err = la.startSession(ctx, l)
	}()
	return func() error { <-started; return err }
}

// prepareGit makes the agent's repository in a sandbox whose session starts early: a wrapper that
// waits continues when the record has the worktree, even after a crash.
func (l *launching) prepareGit() error {
	if l.privateGit == nil {
		return nil
	}
	if prepare := <-l.privateGit; prepare != nil {
		return prepare()
	}
	return nil // the start failed before, and has the error
}

// awaitStart waits until the wrapper reports that the runner was started, or failed to start.
func (la *launcher) awaitStart(ctx context.Context, l *launching) error {
	waiting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	go la.watchStart(waiting, l.run)
	r, err := la.live.awaitState(waiting, l.run.ID, func(r *agency.Run) bool { return r.Attempt.State != agency.Queued })
	trace.From(ctx).Add(la.live.spansOf(l.run.ID)...)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return agency.Errorf(agency.CodeTmuxStartFailed, "the tmux session %s was started, but its wrapper did not answer in %s", l.run.Session(), duration.Text(startTimeout)).
			WithHint("agency doctor")
	case err != nil:
		return err
	case r.Attempt.ErrorCode == agency.CodeStartCutOff:
		return agency.Errorf(agency.CodeStartCutOff, "%s", r.Attempt.Error).WithHint("try again")
	case r.Attempt.EndedBy == agency.EndedByStartFailed || r.Attempt.StartedAt == nil:
		return agency.Errorf(agency.CodeRunnerStartFailed, "the runner %s could not be started: %s", l.command.Argv[0], r.Attempt.Error)
	default:
		return nil
	}
}

// watchStart settles an attempt whose wrapper died before it connected, alone or with its tmux
// server. It checks twice, because a wrapper creates its lock file a moment before it takes the
// lock.
func (la *launcher) watchStart(ctx context.Context, r *agency.Run) {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for seen := 0; ; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if !la.wrapperDied(ctx, r) {
			seen = 0
			continue
		}
		if seen++; seen < 2 {
			continue
		}
		now, err := la.store.Run(ctx, r.ID)
		if err == nil {
			_, err = la.settler.settle(context.WithoutCancel(ctx), now)
		}
		if err != nil && ctx.Err() == nil {
			la.log.Error("settle run", "run", r.ID, "err", err)
		}
	}
}

// wrapperDied reports whether the wrapper of an attempt that is being started is gone for good: its
// lock is free, and either the lock or the launch file was taken once, or nothing runs in the
// session.
func (la *launcher) wrapperDied(ctx context.Context, r *agency.Run) bool {
	dir := observe.AttemptDir(r.Dir, r.Attempt.Number)
	_, launchErr := os.Lstat(launchPath(r))
	_, lockErr := os.Lstat(filepath.Join(dir, "alive"))
	if locked, err := la.attempts.Locked(dir); err != nil || locked {
		return false
	}
	if errors.Is(launchErr, os.ErrNotExist) || lockErr == nil {
		return true
	}
	runs, err := la.tmux.Runs(ctx, r.Session())
	return err == nil && !runs
}

// removeLaunch removes the launch file. Without it, a wrapper that is still starting does not start
// the runner; the process that removes it decides.
func removeLaunch(r *agency.Run) error {
	if err := os.Remove(launchPath(r)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return asFileError(err)
	}
	return nil
}

// writeLaunch writes what the wrapper needs, including the environment and the token, readable by
// the owner only.
func (la *launcher) writeLaunch(ctx context.Context, l *launching) (string, error) {
	r, settings := l.run, l.settings
	env := append(append([]string{}, l.env...), l.command.Env...)
	env = append(env, agency.AttemptMark(r.ID, r.Attempt.Number)...)
	env = append(env,
		"AGENCY_TOKEN="+l.token,
		"AGENCY_WORKTREE="+r.Worktree,
		"AGENCY_STATE_DIR="+filepath.Join(r.Worktree, agency.StateDir),
		"AGENCY_HOME="+la.Home,
		"AGENCY_SOCKET="+la.Socket,
	)
	if l.settings.Config != "" {
		env = append(env, "AGENCY_CONFIG="+l.settings.Config)
	}
	limits, err := la.sandbox.Limits(r.Sandbox.Level, r.Resources)
	if err != nil {
		return "", err
	}
	env = findable(env, la.Wrapper[0])
	argv, inside, hosts, err := la.confine(ctx, l, env, limits)
	if err != nil {
		return "", err
	}
	var outer agency.Environ
	if r.Sandbox.Level.Confines() {
		outer = agency.Environ(env).Without("AGENCY_TOKEN")
	}
	data, err := json.Marshal(agency.Launch{
		RunID: r.ID, Attempt: r.Attempt.Number, Token: l.token, RunnerKind: r.Runner.Kind,
		Argv: argv, Env: inside, Outer: outer, Stdin: l.command.Stdin, Dir: r.Worktree,
		AttemptDir: observe.AttemptDir(r.Dir, r.Attempt.Number), Socket: la.Socket, Lock: la.Lock, Waits: l.waits, Trace: trace.From(ctx) != nil,
		Confined: r.Sandbox.Level == agency.SandboxProcess && !r.Sandbox.Level.Shares(), Relay: relayFolder(r), Hosts: hosts, Ports: r.Attempt.Ports.Numbers(),
		Headless: r.Attempt.Headless, Mode: r.Attempt.Mode, Protocol: l.settings.Protocol, Resumes: l.resumes,
		Opening: l.command.Opening, OpeningFiles: beneath(r.Worktree, l.files), Todos: r.Attempt.AgentState.Todos,
		Resources: r.Resources, Limits: limits, Disk: []string{r.Worktree, filepath.Join(r.Dir, sandboxDir)},
		TimeLimit: time.Duration(r.MaxMinutes) * time.Minute, Grace: settings.Grace, LogBytes: settings.LogBytes,
	})
	if err != nil {
		return "", fmt.Errorf("encode launch data: %w", err)
	}
	if err := file.WriteAtomic(launchPath(r), data); err != nil {
		return "", asFileError(err)
	}
	return launchPath(r), nil
}

func launchPath(r *agency.Run) string {
	return filepath.Join(observe.AttemptDir(r.Dir, r.Attempt.Number), "launch.json")
}

// findable returns env with the folder of agency's program at the end of PATH, unless another
// folder has a program of that name: an agent is asked to call agency, which may not be installed.
func findable(env []string, program string) []string {
	at := -1
	for i, kv := range env {
		if strings.HasPrefix(kv, "PATH=") {
			at = i // the last one is used
		}
	}
	if at < 0 || !filepath.IsAbs(program) || filepath.Base(program) != "agency" {
		return env
	}
	if _, found := file.FindProgram(strings.TrimPrefix(env[at], "PATH="), "agency"); found {
		return env
	}
	env = slices.Clone(env)
	env[at] += string(filepath.ListSeparator) + filepath.Dir(program)
	return env
}

// checkTmux fails unless tmux is installed and recent enough. It remembers success: starting tmux
// for its version takes as long as reading a commit.
func (la *launcher) checkTmux(ctx context.Context) error {
	if la.tmuxFine.Load() {
		return nil
	}
	if _, err := la.tmux.Version(ctx); err != nil {
		return err
	}
	la.tmuxFine.Store(true)
	return nil
}
