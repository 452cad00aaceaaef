package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
)

// slowStore calls a function when a session is read for its file.
type slowStore struct {
	*sqlite.Store
	since func(id agency.SessionID)
}

func (s *slowStore) SessionSince(ctx context.Context, id agency.SessionID, since time.Time) (*agency.Session, []agency.SessionAgent, error) {
	s.since(id)
	return s.Store.SessionSince(ctx, id, since)
}

// A session whose file takes long to write, or whose repository another process locks, delays no
// other session.
func TestSlowFilesDelayNoOtherSession(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	f.files.Stop()
	large, locked, small := f.session("large", true, 1), f.session("locked", true, 1), f.session("small", true, 2)
	limited, release := make(chan agency.SessionID, 2), make(chan struct{})
	hold := func(id agency.SessionID) {
		select {
		case <-release:
		default:
			limited <- id
			<-release
		}
	}
	f.files = scheduler.NewFiles(scheduler.FilesDeps{
		Store: &slowStore{f.store, func(id agency.SessionID) {
			if id == large.ID {
				hold(id)
			}
		}},
		Log: slog.New(slog.NewTextHandler(&f.log, nil)), Now: time.Now, Home: "/home/u/.agency",
		Exclude: func(_ context.Context, _ agency.Repo, folder string) error {
			if folder == "locked" {
				hold(locked.ID)
			}
			return nil
		},
	})
	if err := f.files.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.files.Stop)
	<-limited
	<-limited
	f.says(small)
	for _, agent := range []string{"001", "002"} {
		f.finish(small, agent)
		f.says(small)
	}
	for _, s := range []*agency.Session{large, locked} {
		if _, err := os.Lstat(filepath.Join(s.Dir, "status.json")); !os.IsNotExist(err) {
			t.Errorf("%s has a file: %v", s.ID, err)
		}
	}
	close(release)
	f.says(large)
	f.says(locked)
}

// A change is in the file after 50 ms, or after ten times as long as writing takes, and a folder
// that could not be ignored by git is tried again.
func TestFilesLag(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 5 * time.Millisecond, 6 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			f := newFiling(t)
			f.files.Stop()
			now, writes, excludes := time.Now(), 0, 0
			f.files = scheduler.NewFiles(scheduler.FilesDeps{
				Store: &slowStore{f.store, func(agency.SessionID) { writes++; now = now.Add(took) }},
				Log:   slog.New(slog.NewTextHandler(&f.log, nil)), Now: func() time.Time { return now }, Home: "/home/u/.agency",
				Exclude: func(context.Context, agency.Repo, string) error {
					now = now.Add(time.Second) // which does not count as writing
					if excludes++; excludes == 1 {
						return errors.New("it is locked")
					}
					return nil
				},
			})
			s := f.session("status", true, 3)
			if next := f.files.Pass(t.Context()); !next.IsZero() || writes != 1 {
				t.Fatalf("next is %s after %d writes", next, writes)
			}
			// The worst case is a change right after the writing began.
			changed := now.Add(-took)
			f.finish(s, "001")
			due := f.files.Pass(t.Context())
			if due.IsZero() || writes != 1 {
				t.Fatalf("next is %s after %d writes", due, writes)
			}
			now = due.Add(-time.Microsecond)
			if next := f.files.Pass(t.Context()); !next.Equal(due) || writes != 1 {
				t.Fatalf("next is %s, not %s, after %d writes", next, due, writes)
			}
			now = due.Add(scheduler.PassEvery) // when the timer and another change come together
			f.files.Pass(t.Context())
			if lag, most := now.Sub(changed), max(50*time.Millisecond, 10*took); writes != 2 || lag > most {
				t.Errorf("%d writes, the last after %s, more than %s", writes, lag, most)
			}
			f.says(s)
			for i, want := range []int{2, 2} {
				now = now.Add(time.Hour)
				f.finish(s, []string{"002", "003"}[i])
				f.files.Pass(t.Context())
				if excludes != want {
					t.Errorf("kept out of git %d times", excludes)
				}
			}
			f.says(s)
		})
	}
}

// A write that was delayed by a clock that was wrong by days happens when the clock is right again.
func TestFilesAfterAWrongClock(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	f.files.Stop()
	now, writes, refused := time.Now().Add(240*time.Hour), 0, true
	f.files = scheduler.NewFiles(scheduler.FilesDeps{
		Store: &slowStore{f.store, func(agency.SessionID) { writes++ }},
		Log:   slog.New(slog.NewTextHandler(&f.log, nil)), Now: func() time.Time { return now }, Home: "/home/u/.agency",
		Exclude: func(context.Context, agency.Repo, string) error {
			if refused {
				return errors.New("it is locked")
			}
			return nil
		},
	})
	s := f.session("status", true, 3)
	f.files.Pass(t.Context())
	now, refused = time.Now(), false
	f.finish(s, "001")
	if next := f.files.Pass(t.Context()); !next.IsZero() || writes != 2 {
		t.Fatalf("next is %s after %d writes", next, writes)
	}
	f.says(s)
	refused = true // the folder is ignored by git now
	now = now.Add(time.Hour)
	f.finish(s, "002")
	if f.files.Pass(t.Context()); strings.Count(f.log.String(), "it is locked") != 1 {
		t.Errorf("the log says %s", f.log.String())
	}
}

// A client that disconnects does not affect the files, and nothing counts as done that was not.
func TestFilesOutliveTheirClient(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	f.files.Stop()
	excludes := 0
	f.files = scheduler.NewFiles(scheduler.FilesDeps{
		Store: f.store, Log: slog.New(slog.NewTextHandler(&f.log, nil)), Now: time.Now, Home: "/home/u/.agency",
		Exclude: func(ctx context.Context, _ agency.Repo, _ string) error { excludes++; return ctx.Err() },
	})
	s := f.session("status", true, 2)
	gone, leave := context.WithCancel(t.Context())
	leave()
	f.files.Write(gone, s.ID)
	f.says(s)
	if excludes != 1 || f.active(s.StatusDir) != "sessions/"+string(s.ID) || f.log.String() != "" {
		t.Errorf("%d tries, the link leads to %q\n%s", excludes, f.active(s.StatusDir), f.log.String())
	}

	// A failed write is repeated, even without another change.
	f.finish(s, "001")
	if err := errors.Join(os.RemoveAll(s.StatusDir), os.WriteFile(s.StatusDir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.files.Write(gone, s.ID)
	if err := os.Remove(s.StatusDir); err != nil {
		t.Fatal(err)
	}
	f.files.Write(gone, s.ID)
	f.says(s)
	if excludes != 1 {
		t.Errorf("kept out of git %d times", excludes)
	}
}

// A folder that the user removes while its session runs exists again after the next change, with
// the links to the logs.
func TestFilesOfARemovedFolder(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	s := f.session("status", false, 2)
	run := agency.NewRunID(time.Now(), [10]byte{1})
	start := func(agent string) {
		t.Helper()
		_, err := f.store.ChangeSession(t.Context(), s.ID, []string{agent}, func(_ *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
			agents[0].Status, agents[0].Run = agency.AgentRunning, run
			return []agency.EventDraft{agents[0].EventDraft()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	linked := func(agent string) {
		t.Helper()
		f.soon("the log of "+agent+" is linked", func() bool { _, err := os.Readlink(filepath.Join(s.Dir, agent+".log")); return err == nil })
	}
	start("001")
	linked("001")
	f.says(s)
	if err := os.RemoveAll(s.Dir); err != nil {
		t.Fatal(err)
	}
	start("002")
	linked("001")
	linked("002")
	f.says(s)
}

// An interrupted removal is finished at the next start.
func TestFilesFinishRemovals(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	s := f.session("status", true, 1)
	f.says(s)
	f.finish(s, "001")
	f.says(s)
	f.soon("it is filed", func() bool {
		left, err := f.store.SessionsWithStaleFiles(t.Context())
		return err == nil && len(left) == 0
	})
	f.files.Stop()
	if err := f.store.RemoveSession(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	f.start()
	f.soon("nothing is left", func() bool { left, err := f.store.RemovedSessions(t.Context()); return err == nil && len(left) == 0 })
	if entries, err := os.ReadDir(filepath.Join(s.StatusDir, "sessions")); err != nil || len(entries) > 0 || f.active(s.StatusDir) != "" {
		t.Errorf("left: %v, %q, %v", entries, f.active(s.StatusDir), err)
	}
}
