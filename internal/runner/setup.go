package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/duration"
	"agency/internal/killpoint"
)

const (
	setupGrace    = 5 * time.Second // between TERM and KILL
	setupDrain    = time.Second     // to read its last output
	setupLogBytes = 8 << 20         // kept of an output's beginning, and of its end
)

// RunSetup runs a setup to its end, in a process group of its own and without input. The program of
// the arguments marked, which calls Marked, becomes the setup. When RunSetup returns, none of its
// processes is left: it ends those that the setup put into the background (where the kernel shows
// marks; elsewhere, those that stayed in its group). If the program cannot be started, fails, or is
// not done in time, RunSetup returns an error that continues the word "setup". newProxy makes the
// proxy of a setup with hosts.
func RunSetup(ctx context.Context, marked []string, s agency.SetupCommand, serving Serving, newProxy func(hosts []string, changed func(news bool)) Proxy) error {
	network := &setupNetwork{}
	if s.Hosts != nil {
		if err := network.open(newProxy(s.Hosts, func(bool) {})); err != nil {
			return fmt.Errorf("cannot be started: %w", err)
		}
		defer network.close()
	}
	_, failed, err := runToEnd(ctx, "setup", marked, s, serving, network)
	return errors.Join(failed, err)
}

// RunCheck runs a check to its end in the same way, and returns its verdict with the reason, which
// continues the name of the check. An error means that there is no verdict: ctx ended, the log
// cannot be written, or processes of the check do not end.
func RunCheck(ctx context.Context, marked []string, c agency.SetupCommand, serving Serving) (verdict agency.Verdict, reason string, err error) {
	verdict, failed, err := runToEnd(ctx, "check", marked, c, serving, &setupNetwork{})
	switch {
	case verdict == "" || err != nil:
		return "", "", errors.Join(failed, err)
	case failed != nil:
		reason = failed.Error()
	}
	return verdict, reason, nil
}

// runToEnd runs a program that prepares or checks a worktree; of is "setup" or "check". The verdict is empty
// if ctx ended first. failed is why the program did not succeed.
func runToEnd(ctx context.Context, of string, marked []string, s agency.SetupCommand, serving Serving, network *setupNetwork) (verdict agency.Verdict, failed, err error) {
	log, err := os.OpenFile(s.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("cannot write its log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	out := &clipped{to: log}
	// The pipe is not left to exec.Cmd, which would wait until the setup's background processes
	// close it.
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("cannot be started: %w", err), log.Close())
	}
	failing, fails, err := os.Pipe()
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("cannot be started: %w", err), r.Close(), w.Close(), log.Close())
	}
	defer func() { _ = failing.Close() }()
	cmd := exec.CommandContext(ctx, marked[0], slices.Concat(marked[1:], []string{s.Mark}, s.Argv)...)
	cmd.ExtraFiles = []*os.File{network.theirs, fails}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Env, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = setupGrace
	err = cmd.Start()
	_ = errors.Join(w.Close(), fails.Close())
	network.serve()
	copied := make(chan struct{})
	go func() {
		_, _ = io.Copy(out, r)
		close(copied)
	}()
	if err == nil {
		why, _ := io.ReadAll(failing) // ends when the program has taken the place of the marked process
		killpoint.At(of, "started")
		err = cmd.Wait()
		if len(why) > 0 {
			err = errors.New(string(why))
		}
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
	verdict, failed = programVerdict(ctx, err, s.Timeout)
	if failed != nil {
		out.note(of + " " + failed.Error())
	}
	network.end(out.note, s.Used)
	return verdict, failed, errors.Join(endErr, out.close())
}

// Marked gives this process a mark and becomes the program of argv, so that all that the program starts has
// the mark. If it cannot, it writes the reason to file 4 and returns an exit status. The program inherits
// file 3.
func Marked(mark string, argv []string) int {
	const why = 4
	unix.CloseOnExec(why)
	setMark(0, []string{mark})
	err := &os.PathError{Op: "exec", Path: argv[0], Err: syscall.Exec(argv[0], argv, os.Environ())}
	_, _ = unix.Write(why, []byte(err.Error()))
	return codeNotExecutable
}

// sentSignals are the signals by which something else ends a program, such as the user, or the kernel when
// memory is short. Such an end proves nothing about the files that the program checked.
var sentSignals = []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// programVerdict returns the verdict on a program by the error of its end, and what was wrong with
// it; the verdict is empty if ctx ended before its time was up.
func programVerdict(ctx context.Context, err error, timeout time.Duration) (agency.Verdict, error) {
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return agency.CheckTimedOut, fmt.Errorf("did not end in %s", duration.Text(timeout))
	case ctx.Err() != nil:
		return "", errors.New("was cut off")
	case err == nil:
		return agency.CheckPassed, nil
	case exited && exit.ExitCode() >= 0:
		return agency.CheckFailed, fmt.Errorf("failed with exit %d", exit.ExitCode())
	case exited:
		signal := exit.Sys().(syscall.WaitStatus).Signal()
		verdict := agency.CheckFailed
		if slices.Contains(sentSignals, signal) {
			verdict = agency.CheckBroken
		}
		return verdict, fmt.Errorf("was ended by %s", unix.SignalName(signal))
	default:
		return agency.CheckBroken, fmt.Errorf("cannot be started: %w", err)
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
func (c *clipped) note(text string) { _, _ = c.Write([]byte("agency: " + text + "\n")) }

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
