package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

// Without file descriptors neither the kernel's list of processes nor what it says of one proves
// that a process is gone.
func TestLookWithoutDescriptors(t *testing.T) {
	const starved = "TEST_STARVED" // set in the process that this test starts
	if os.Getenv(starved) != "" {
		if err := starve(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), starved+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// starve gives this process ever more file descriptors: each call must find the process that it
// started, or fail without the word that the process is gone.
func starve() error {
	mark := agency.AttemptMark("r_starved", os.Getpid())
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), mark...)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill() }()
	started, err := runner.Identify(cmd.Process.Pid)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one look is enough
	failed := 0
	for n := uint64(3); n < 100; n++ {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: limit.Max}); err != nil {
			return err
		}
		if alive, err := runner.Alive(started); !alive && err == nil {
			return fmt.Errorf("with %d descriptors it reads as dead", n)
		}
		if err := runner.Signal(started, unix.SIGCONT); errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("with %d descriptors it cannot be signalled: %w", n, err)
		}
		left, err := runner.EndTree(ctx, runner.Remains{Mark: mark}, runner.Serving{}, time.Hour)
		switch {
		case left > 0 && failed == 0:
			return fmt.Errorf("%d descriptors were enough", n)
		case left > 0:
			return nil
		case err == nil:
			return fmt.Errorf("with %d descriptors it was not found, after %d failures", n, failed)
		}
		failed++
	}
	return errors.New("it was never found")
}

// A wrapper without file descriptors does not take what its runner left for gone: it ends that as
// soon as it can look again.
func TestLeftoversWithoutDescriptors(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap '' HUP; sleep 1000 & echo $! >child; read line`)
	d := f.listen(0)
	f.begin(true)
	child, wrapper := f.pid("child"), f.cmd.Process.Pid
	var before unix.Rlimit
	limit := func(now, old *unix.Rlimit) {
		t.Helper()
		if err := unix.Prlimit(wrapper, unix.RLIMIT_NOFILE, now, old); err != nil {
			t.Fatal(err)
		}
	}
	start := f.started()
	limit(nil, &before)
	limit(&unix.Rlimit{Cur: 3, Max: before.Max}, nil)
	f.typeKeys("\r")
	gone(t, start.Runner.PID)
	limit(&before, nil)
	if exit := lastUpdate(t, d, "exit", hasExit).Exit; exit.LeftBehind != 1 || running(child) {
		t.Errorf("reported %+v; the child runs: %v", exit, running(child))
	}
	f.wait()
}

// Many that look for remains at the same time share readings of the kernel's list, and each still
// finds what was there when it asked.
func TestRemainsOfManyAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for n := range 60 {
		group.Go(func() {
			mark := agency.AttemptMark("r_many", os.Getpid()*100+n)
			cmd := exec.CommandContext(t.Context(), "sleep", "1000")
			cmd.Env = append(os.Environ(), mark...)
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			// Within its exec the process has no environment for a moment.
			environ := fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid)
			eventually(t, "the mark of "+environ, func() bool {
				data, err := os.ReadFile(environ)
				return err == nil && strings.Contains(string(data), mark[0])
			})
			if left, err := runner.EndTree(t.Context(), runner.Remains{Mark: mark}, runner.Serving{}, time.Minute); left != 0 || err != nil {
				t.Errorf("%d left: %v", left, err)
			}
			if running(cmd.Process.Pid) {
				t.Errorf("process %d was not found", cmd.Process.Pid)
			}
		})
	}
	group.Wait()
}
