package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agency"
	"agency/internal/sqlite"
	"agency/test/fixture"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeUntilKilled(path)
		return
	}
	goleak.VerifyTestMain(m)
}

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// clock advances one second at each reading, so that every transaction has its own time, with a
// fraction that the store cannot keep.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time {
	return epoch.Add(time.Duration(c.seconds.Add(1))*time.Second + 123456*time.Nanosecond)
}

func openAt(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(context.Background(), path, new(clock).now)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

func setup(tb testing.TB) *sqlite.Store {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "agency.db")
	fixture.Database(tb, path)
	return openAt(tb, path)
}

// newRun returns run number n: no two of them clash.
func newRun(n int) *agency.Run {
	var random [10]byte
	random[8], random[9] = byte(n>>8), byte(n)
	handle := fmt.Sprintf("1122-fix-auth-%04x", n)
	return &agency.Run{
		ID:         agency.NewRunID(epoch, random),
		Handle:     handle,
		Repo:       agency.Repo{Fingerprint: "5c0f3f5e-0000-4000-8000-000000000001", Root: "/src/app", CommonDir: "/src/app/.git"},
		Base:       "HEAD",
		Commit:     "0123456789012345678901234567890123456789",
		Branch:     "agency/" + handle,
		Worktree:   "/home/u/.agency/worktrees/5c0f3f5e/" + handle,
		Dir:        "/home/u/.agency/runs/" + handle,
		Runner:     agency.Runner{Kind: "claude_code", Name: "claude_code", Args: []string{}},
		Tags:       []string{"worker"},
		ConfigHash: "sha256:0",
		Host:       "here",
		Attempt:    agency.Attempt{Number: 1, State: agency.Queued},
	}
}

// fullRun returns run number n with a value in every column.
func fullRun(n int) *agency.Run {
	r := newRun(n)
	r.Name, r.Type, r.Model, r.MaxMinutes = fmt.Sprintf("fix-%d", n), "build", "large", 30
	r.StallAfterMS, r.StuckIntervals, r.Preset = 90_000, 7, "worker"
	r.Runner.Args = []string{"--flag", `with "quotes"`, "ünï\n"}
	r.Tags = []string{"worker", "night-shift"}
	r.Changes = &agency.ChangeSize{Files: 2, Added: 120, Deleted: 8}
	r.MergedAt, r.Abandoned, r.PR = new(epoch.Add(time.Hour)), true, &agency.PullRequest{Forge: agency.ForgeGitHub, Number: 17, State: agency.PRDraft, At: epoch}
	r.Repo.GitRemotes = "abc"
	r.Flag = &agency.Flag{Reason: "verify failed", By: agency.User, At: epoch}
	contract := agency.NewContract(epoch)
	contract.Questions, contract.Blockers = []string{"Which one?"}, nil
	r.Attempt = agency.Attempt{
		Number: 1, State: agency.Failed, Headless: true, ConversationID: "c-1",
		StartedAt: new(epoch.Add(time.Second)), EndedAt: new(epoch.Add(time.Minute)),
		StopRequestedAt: new(epoch.Add(time.Minute - time.Millisecond)),
		ExitCode:        new(143), Signal: "SIGTERM", EndedBy: agency.EndedByStop,
		LogLost: 4096, ErrorCode: agency.CodeTimeLimit, Error: "stopped at its time limit", Pane: "%3",
		Wrapper:       &agency.Process{PID: 1000 + n, StartTicks: 1<<64 - 1, BootID: "5c0f3f5e-0000-4000-8000-00000000b007"},
		RunnerProcess: &agency.Process{PID: 2000 + n, StartTicks: 12345678, BootID: "with a space"},
		Reported:      agency.Observed{Contract: &contract, Problem: "not JSON at byte 3", At: epoch.Add(2 * time.Second)},
	}
	return r
}

func create(tb testing.TB, s *sqlite.Store, runs ...*agency.Run) {
	tb.Helper()
	for _, r := range runs {
		err := s.CreateRun(context.Background(), r, agency.Creation{Spec: []byte(`{}`)}, agency.EventDraft{Type: agency.RunCreated})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func remove(tb testing.TB, s *sqlite.Store, id agency.RunID) {
	tb.Helper()
	change(tb, s, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		r.RemovedAt = new(epoch)
		r.Attempt.State = agency.Completed
		return nil, nil
	})
}

func change(tb testing.TB, s *sqlite.Store, id agency.RunID, f func(r *agency.Run) ([]agency.EventDraft, error)) *agency.Run {
	tb.Helper()
	r, err := s.ChangeRun(context.Background(), id, f)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// wantCode fails unless the error has the code and, like every error for users, a hint.
func wantCode(tb testing.TB, err error, code agency.Code) agency.Error {
	tb.Helper()
	if !agency.IsCode(err, code) {
		tb.Fatalf("got error %v, want %s", err, code)
	}
	e := agency.AsError(err)
	if e.Hint == "" {
		tb.Errorf("%v has no hint", err)
	}
	return *e
}
