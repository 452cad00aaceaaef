package daemon

import (
	"context"
	"io"
	"syscall"
	"time"

	"agency"
	"agency/internal/harness"
	"agency/internal/runner"
	"agency/internal/supervisor"
	"agency/internal/tmux"
)

// sessions gives the supervisor its tmux.
type sessions struct{ *tmux.Tmux }

func (t sessions) StartSession(ctx context.Context, name, dir string, argv []string) (string, error) {
	return t.Start(ctx, tmux.Session{Name: name, Dir: dir, Argv: argv, Width: 200, Height: 50})
}

// harnesses gives the supervisor its command lines.
type harnesses struct{}

func (harnesses) FindExec(r agency.Runner, exec, dir string, env []string) (string, error) {
	return harness.FindExec(r, exec, dir, env)
}

func (harnesses) Build(r supervisor.HarnessRequest) (supervisor.HarnessCommand, error) {
	command, err := harness.Build(harness.Request(r))
	return supervisor.HarnessCommand(command), err
}

func (harnesses) Conversation(kind agency.RunnerKind, stream []byte) string {
	return harness.Conversation(kind, stream)
}

// attempts gives the supervisor what wrappers leave on this host.
type attempts struct{}

func (attempts) ReadStart(dir string) (*agency.Start, error) { return runner.ReadStart(dir) }
func (attempts) ReadExit(dir string) (*agency.Exit, error)   { return runner.ReadExit(dir) }
func (attempts) Held(dir string) (bool, error)               { return runner.Held(dir) }
func (attempts) Signal(p agency.Process, sig syscall.Signal) error {
	return runner.Signal(p, sig)
}

func (attempts) EndTree(ctx context.Context, root agency.Process, marker []string, grace time.Duration) (int, error) {
	return runner.EndTree(ctx, root, marker, grace)
}

func (attempts) OpenLog(dir, stream string, since time.Time) (io.ReadCloser, error) {
	return runner.OpenLog(dir, stream, since)
}
