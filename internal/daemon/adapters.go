package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"agency"
	"agency/internal/harness"
	"agency/internal/limit"
	"agency/internal/runner"
	"agency/internal/spool"
	"agency/internal/supervisor/observe"
	"agency/internal/tmux"
)

// sessions provides the supervisor with tmux sessions.
type sessions struct {
	*tmux.Tmux

	line []string // the command whose output the status line shows, without its argument
	own  bool     // agency alone uses the server
}

func (t sessions) StartSession(ctx context.Context, r *agency.Run, argv []string) error {
	_, err := t.Start(ctx, tmux.Session{
		Name: r.Session(), Title: r.Ref(), Line: append(slices.Clone(t.line), string(r.ID)), Own: t.own,
		Dir: r.Worktree, Argv: argv, Width: 200, Height: 50,
	})
	return err
}

func (t sessions) ReplaceWrapper(ctx context.Context, r *agency.Run, argv []string) error {
	err := t.Respawn(ctx, r.Session(), r.Attempt.Pane, argv)
	if err == nil {
		return nil
	}
	if err := t.Kill(ctx, r.Session()); err != nil && !agency.IsCode(err, agency.CodeTmuxSessionNotFound) {
		return err
	}
	return t.StartSession(ctx, r, argv)
}

// harnesses provides the supervisor with command lines and readers of agents.
type harnesses struct{ harness.Screens }

func (harnesses) FindExec(r agency.Runner, exec, dir string, env []string) (string, error) {
	path, err := harness.FindExec(r, exec, dir, env)
	return path, harness.WithInstalled(err, env)
}

func (harnesses) Build(r agency.CommandRequest) (agency.Command, error) {
	return harness.Build(r)
}

func (harnesses) Joins(kind agency.RunnerKind) error { return harness.Joins(kind) }

func (harnesses) State(kind agency.RunnerKind, env agency.Environ, worktree string) agency.SandboxState {
	return harness.State(kind, env, worktree)
}

func (harnesses) Files(kind agency.RunnerKind, s *agency.AgentState, runner *agency.Process) []string {
	return harness.Files(kind, s, runner)
}

func (harnesses) ReadFile(kind agency.RunnerKind, path string, s *agency.AgentState) []agency.Evidence {
	return harness.ReadFile(kind, path, s)
}

func (harnesses) ErrorMarks(kind agency.RunnerKind) []string { return harness.ErrorMarks(kind) }

// screens returns the readers of terminals, with the user's own patterns from beside the
// configuration.
func (d *Daemon) screens() harness.Screens {
	return harness.Screens{Dir: filepath.Join(filepath.Dir(d.Config.Path), "screen"), Log: d.Log}
}

// serving returns the processes that no run may end.
func (d *Daemon) serving() runner.Serving {
	return runner.Serving{Lock: LockPath(d.Config.Home), Tmux: d.tmux.Socket()}
}

func (harnesses) Answer(kind agency.RunnerKind, lines []string, r *agency.Request, reply agency.Reply) (keys string, shown bool, err error) {
	return harness.Answer(kind, lines, r, reply)
}

func (harnesses) Shown(kind agency.RunnerKind, lines []string, requests []agency.Request) int {
	return harness.Shown(kind, lines, requests)
}

// spools provides the supervisor with the evidence files.
type spools struct{}

func (spools) Append(path string, evidence ...agency.Evidence) error {
	return spool.Append(path, evidence...)
}

func (spools) Tail(path string, offset int64) ([]agency.Evidence, int64, error) {
	return spool.Tail(path, offset)
}
func (spools) Parse(lines []byte) []agency.Evidence { return spool.Parse(lines) }

// attempts provides the supervisor with the records of wrappers on this host.
type attempts struct{ serving runner.Serving }

func (attempts) ReadStart(dir string) (*agency.Start, error) { return runner.ReadStart(dir) }
func (attempts) ReadExit(dir string) (*agency.Exit, error)   { return runner.ReadExit(dir) }
func (attempts) Locked(dir string) (bool, error)             { return runner.Locked(dir) }
func (attempts) Alive(p agency.Process) (bool, error)        { return runner.Alive(p) }
func (attempts) Held(dir string, start *agency.Start, kind agency.RunnerKind) (*agency.Exit, error) {
	return runner.Held(dir, start, kind)
}
func (a attempts) Alone(wrapper agency.Process) bool { return runner.Alone(wrapper, a.serving) }

func (attempts) Signal(p agency.Process, sig syscall.Signal) error {
	return runner.Signal(p, sig)
}

func (a attempts) EndTree(ctx context.Context, wrapper, root agency.Process, mark []string, grace time.Duration) (int, error) {
	return runner.EndTree(ctx, runner.Remains{Wrapper: wrapper, Root: root, Mark: mark}, a.serving, grace)
}

func (attempts) Unlimit(dir string, id agency.RunID, attempt int) error {
	return limit.Remove(dir, id, attempt)
}

// endMarked is EndTree for processes that have no wrapper.
func (a attempts) endMarked(ctx context.Context, mark []string, grace time.Duration) (int, error) {
	return runner.EndTree(ctx, runner.Remains{Mark: mark}, a.serving, grace)
}

func (attempts) Tail(dir, stream string, bytes int64) ([]byte, error) {
	return runner.Tail(dir, stream, bytes)
}

func (attempts) CPU(p agency.Process) time.Duration { return runner.CPU(p) }

func (attempts) OpenLog(dir, stream string, from observe.LogStart) (log io.ReadCloser, begins int64, err error) {
	if from.Offset != nil {
		from.Since = time.Time{}
	}
	l, err := runner.OpenLog(dir, stream, from.Since)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case from.Offset != nil:
		err = l.GoTo(*from.Offset)
	case from.Tail != nil:
		err = runner.GoToLast(l, *from.Tail)
	}
	if err != nil {
		return nil, 0, errors.Join(err, l.Close())
	}
	return l, l.Offset(), nil
}
