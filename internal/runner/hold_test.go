package runner_test

import (
	"os"
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
