package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/runner"
)

// An exit status that the system fails to read is not a missing one. Here the folder is a file.
func TestHeldStatusThatCannotBeReadYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "1")
		write := func(path, text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(dir, "")
		if exit, err := runner.Held(dir, &agency.Start{}, agency.Shell); exit != nil || err == nil {
			t.Errorf("the daemon reads %+v, %v", exit, err)
		}
		code := make(chan int)
		go func() {
			got, err := runner.ExitOfAdopted(dir)
			if err != nil {
				t.Error(err)
			}
			code <- got
		}()
		time.Sleep(1050 * time.Millisecond) // between two looks, which come every 100 ms
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, "held.json"), `{"wait_status": 768}`)
		if got := <-code; got != 3 {
			t.Errorf("the next wrapper reads the code %d", got)
		}
		exit, err := runner.Held(dir, &agency.Start{}, agency.Shell)
		if err != nil || exit == nil || exit.ExitCode != 3 {
			t.Errorf("the daemon reads %+v, %v", exit, err)
		}
	})
}

// A holder ends like its program, also when it cannot write the exit status, as on a full disk. It writes
// the status into space that it has reserved.
func TestHolderEndsLikeItsProgram(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 137} {
		cmd := exec.Command(os.Args[0], "hold", filepath.Join(t.TempDir(), "missing"), "/bin/sh", "-c", script)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s: %v", script, err)
		}
	}
	dir := t.TempDir()
	const script = `cd "$0"; i=0; until ln held.json.reserved reserve 2>/dev/null || [ $((i+=1)) = 1000 ]; do sleep 0.01; done; exit 3`
	cmd := exec.Command(os.Args[0], "hold", dir, "/bin/sh", "-c", script, dir)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 {
		t.Error(err)
	}
	reserve, err := os.Stat(filepath.Join(dir, "reserve"))
	if err != nil {
		t.Fatal(err)
	}
	if wrote, err := os.Stat(filepath.Join(dir, "held.json")); err != nil || !os.SameFile(reserve, wrote) {
		t.Errorf("the status is not in the reserved space: %v", err)
	}
	if exit, err := runner.Held(dir, &agency.Start{}, agency.Shell); err != nil || exit == nil || exit.ExitCode != 3 {
		t.Errorf("got %+v, %v", exit, err)
	}
}
