package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/sqlite"
)

// writerEnv makes the test binary a writer of the database that it names.
const writerEnv = "AGENCY_TEST_SQLITE_WRITER"

// writeUntilKilled changes one run for ever and prints each number once it is committed.
func writeUntilKilled(path string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, time.Now)
	fail(err)
	id := newRun(1).ID
	for i := 1; ; i++ {
		_, err := s.ChangeRun(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.MaxMinutes = i
			return []agency.EventDraft{{Type: agency.ContractChanged, Data: map[string]int{"i": i}}}, nil
		})
		fail(err)
		fmt.Println(i)
	}
}

// A change that a killed writer has acknowledged is in the file, with its event, and the file is
// sound.
func TestKilledWriterLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s, err := sqlite.Open(context.Background(), path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, newRun(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		acknowledged := killWriter(t, path, 10+20*round)

		s, err := sqlite.Open(context.Background(), path, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(context.Background()); err != nil {
			t.Error(err)
		}
		r, err := s.Run(context.Background(), newRun(1).ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.MaxMinutes < acknowledged {
			t.Errorf("acknowledged %d, kept %d", acknowledged, r.MaxMinutes)
		}
		events, err := s.Events(context.Background(), 0, r.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(events[len(events)-1].Data), fmt.Sprintf(`{"i":%d}`, r.MaxMinutes); got != want {
			t.Errorf("the last event is %s, and the run says %s", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killWriter runs a writer, kills it after some commits, and returns the last number that it
// acknowledged.
func killWriter(t *testing.T, path string, commits int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	cmd.WaitDelay = 500 * time.Millisecond
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := 0
	lines := bufio.NewScanner(stdout)
	for lines.Scan() { // to the end: what is still in the pipe was acknowledged too
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if last == commits {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // killed, as intended
	if last < commits {
		t.Fatalf("the writer ended by itself after %d commits: %s", last, stderr.String())
	}
	return last
}
