package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/killpoint"
)

const (
	setupGrace    = 5 * time.Second // between TERM and KILL
	setupDrain    = time.Second     // to read its last output
	setupLogBytes = 8 << 20         // kept of an output's beginning, and of its end
)

// RunSetup runs a setup to its end, in a process group of its own and without input. When it
// returns, none of its processes is left: it ends those that the setup put into the background
// (where the kernel shows marks; elsewhere, those that stayed in its group). If the program cannot
// be started, fails, or is not done in time, RunSetup returns an error that continues the word
// "setup".
func RunSetup(ctx context.Context, s agency.SetupCommand, serving Serving) error {
	log, err := os.OpenFile(s.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write its log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := &clipped{to: log}
	// The pipe is not left to exec.Cmd, which would wait until the setup's background processes
	// close it.
	r, w, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot be started: %w", err), log.Close())
	}
	copied := make(chan struct{})
	go func() {
		_, _ = io.Copy(out, r)
		close(copied)
	}()
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Env, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = setupGrace
	err = cmd.Start()
	_ = w.Close()
	if err == nil {
		setMark(cmd.Process.Pid, []string{s.Mark})
		killpoint.At("setup.started")
		err = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	// Ending the processes does not depend on ctx, which may have ended.
	left, endErr := EndTree(context.WithoutCancel(ctx), Remains{Mark: []string{s.Mark}}, serving, setupGrace)
	if endErr == nil && left > 0 {
		endErr = fmt.Errorf("left %d processes that do not end", left)
	}
	_ = r.SetReadDeadline(time.Now().Add(setupDrain)) // a process without the mark may still hold it
	<-copied
	_ = r.Close()
	failed := setupFailure(ctx, err, s.Timeout)
	if failed != nil {
		out.note(failed.Error())
	}
	return errors.Join(failed, endErr, out.close())
}

// setupFailure returns what was wrong with a setup, or nil.
func setupFailure(ctx context.Context, err error, timeout time.Duration) error {
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("did not end in %s", timeout)
	case ctx.Err() != nil:
		return errors.New("was cut off")
	case err == nil:
		return nil
	case exited && exit.ExitCode() >= 0:
		return fmt.Errorf("failed with exit %d", exit.ExitCode())
	case exited:
		return fmt.Errorf("was ended by %s", unix.SignalName(exit.Sys().(syscall.WaitStatus).Signal()))
	default:
		return fmt.Errorf("cannot be started: %w", err)
	}
}

// clipped keeps the beginning and the end of an output.
type clipped struct {
	to io.WriteCloser

	written int
	end     []byte
	left    int // bytes dropped between the two
	err     error
}

// Write never fails: a full disk must not end the program.
func (c *clipped) Write(p []byte) (int, error) {
	now := p[:min(len(p), setupLogBytes-c.written)]
	c.put(now)
	c.written += len(now)
	c.end = append(c.end, p[len(now):]...)
	if over := len(c.end) - setupLogBytes; over > setupLogBytes { // in large steps, to copy less often
		c.end = append(c.end[:0], c.end[over:]...)
		c.left += over
	}
	return len(p), nil
}

func (c *clipped) put(p []byte) {
	if _, err := c.to.Write(p); c.err == nil {
		c.err = err
	}
}

// note adds a line of agency to the output.
func (c *clipped) note(text string) { _, _ = c.Write([]byte("agency: setup " + text + "\n")) }

// close writes the end and closes the log.
func (c *clipped) close() error {
	if over := len(c.end) - setupLogBytes; over > 0 {
		c.end, c.left = c.end[over:], c.left+over
	}
	if c.left > 0 {
		c.put(fmt.Appendf(nil, "\nagency: %d bytes are left out here\n", c.left))
	}
	c.put(c.end)
	c.end = nil
	if err := errors.Join(c.err, c.to.Close()); err != nil {
		return fmt.Errorf("cannot write its log: %w", err)
	}
	return nil
}
