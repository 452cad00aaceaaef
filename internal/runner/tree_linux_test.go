package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

// Without file descriptors the kernel's list of processes is incomplete, which does not prove that a
// process is gone.
func TestEndTreeWithoutDescriptors(t *testing.T) {
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
// started, or fail.
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
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one look is enough
	failed := 0
	for n := uint64(3); n < 100; n++ {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: limit.Max}); err != nil {
			return err
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
