package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"agency"
)

// Command runs a program for each notice.
type Command struct {
	name string
	argv []string
}

// NewCommand returns a channel that runs argv, without a shell, with the notice as JSON on its
// standard input.
func NewCommand(name string, argv []string) *Command { return &Command{name: name, argv: argv} }

// Name implements Channel.
func (c *Command) Name() string { return c.name }

// Send implements Channel. Exit 0 is a success.
func (c *Command) Send(ctx context.Context, n *agency.Notice) error {
	data, err := json.Marshal(n)
	if err != nil {
		return final{err}
	}
	return run(ctx, c.argv, append(data, '\n'))
}

const (
	killGrace = 500 * time.Millisecond // for processes that still hold the output of an ended program
	mostWords = 1 << 10                // bytes of a program's error output to keep
)

// run runs a program in its own process group and ends the group with it.
func run(ctx context.Context, argv []string, input []byte) error {
	words := &head{}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil: // it is done; what it left held its output
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case len(words.kept) > 0:
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(strings.ToValidUTF8(string(words.kept), "�")))
	default:
		return err
	}
}

// head keeps the beginning of what is written to it.
type head struct{ kept []byte }

// Write keeps what fits and never fails.
func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), mostWords-len(h.kept))]...)
	return len(p), nil
}
