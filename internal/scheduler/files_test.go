package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agency"
	"agency/internal/scheduler"
	"agency/internal/sessionfile"
	"agency/internal/sqlite"
)

// filing is a repository, a record and a writer of status files.
type filing struct {
	t        *testing.T
	root     string
	store    *sqlite.Store
	files    *scheduler.Files
	log      logBuffer
	mu       sync.Mutex
	excluded []string
	made     int
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newFiling(t *testing.T) *filing {
	t.Helper()
	f := &filing{t: t, root: filepath.Join(t.TempDir(), "app")}
	if err := os.Mkdir(f.root, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "agency.db"), time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	f.start()
	return f
}

func (f *filing) start() {
	f.files = scheduler.NewFiles(scheduler.FilesDeps{
		Store: f.store, Log: slog.New(slog.NewTextHandler(&f.log, nil)), Now: time.Now, Home: "/home/u/.agency",
		Exclude: func(_ context.Context, _ agency.Repo, folder string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.excluded = append(f.excluded, folder)
			return errors.New("it is no repository")
		},
	})
	if err := f.files.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(f.files.Stop)
}

// session makes a session of n agents, each dependent on the one before.
func (f *filing) session(statusDir string, external bool, n int) *agency.Session {
	f.t.Helper()
	f.made++
	at := time.Date(2026, 2, 1, 14, 30, f.made, 0, time.UTC)
	s := &agency.Session{
		ID: agency.NewSessionID(at, [4]byte{0xab, 0xcd, byte(f.made)}), Source: "orchestrate", External: external, Status: agency.SessionRunning, StartedAt: at,
		Owner: agency.User, Repo: agency.Repo{Fingerprint: "5c0f3f5e-0000-4000-8000-000000000001", Root: f.root, CommonDir: filepath.Join(f.root, ".git")},
	}
	s.SetStatusDir(statusDir)
	agents := make([]agency.SessionAgent, n)
	for i := range agents {
		id := fmt.Sprintf("%03d", i+1)
		agents[i] = agency.SessionAgent{Session: s.ID, Position: i, ID: id, Name: "task", Wave: 1 + i/2, Status: agency.AgentQueued, LogFile: s.LogFile(id)}
	}
	if err := f.store.CreateSession(f.t.Context(), s, agents, nil); err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *filing) report(s *agency.Session, agent string, apply func(*agency.SessionAgent) error) {
	f.t.Helper()
	err := f.store.UpdateAgents(f.t.Context(), []agency.AgentReport{{Session: s.ID, Agent: agent, Apply: func(_ *agency.Session, a *agency.SessionAgent, _ time.Time) error {
		return apply(a)
	}}})[0]
	if err != nil {
		f.t.Fatal(err)
	}
}

// finish cancels all agents of a session.
func (f *filing) finish(s *agency.Session, agents ...string) {
	f.t.Helper()
	for _, id := range agents {
		f.report(s, id, func(a *agency.SessionAgent) error { return scheduler.ReportCancel(a, "", time.Now()) })
	}
}

// soon waits until a condition holds.
func (f *filing) soon(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("never: %s\n%s", what, f.log.String())
		}
	}
}

// says waits until the file of a session agrees with the record.
func (f *filing) says(s *agency.Session) {
	f.t.Helper()
	f.soon("the file of "+string(s.ID)+" is what the record says", func() bool {
		got, err := os.ReadFile(filepath.Join(s.Dir, "status.json"))
		if err != nil {
			return false
		}
		return bytes.Equal(got, f.document(s))
	})
}

// document returns the file that the record implies.
func (f *filing) document(s *agency.Session) []byte {
	f.t.Helper()
	now, agents, err := f.store.SessionSince(f.t.Context(), s.ID, time.Time{})
	if err != nil {
		f.t.Fatal(err)
	}
	blocks := make([][]byte, len(agents))
	for i := range agents {
		blocks[i] = sessionfile.EncodeAgent(sessionfile.AgentObject(&agents[i]))
	}
	return sessionfile.Encode(sessionfile.Head(now, sessionfile.Waves(agents)), blocks)
}

func (f *filing) active(dir string) string {
	target, _ := os.Readlink(filepath.Join(dir, scheduler.ActiveSession))
	return target
}

// The file follows the record, the link leads to the newest running session, and a log of agency's
// own is a link to the run's log.
func TestFilesFollowTheRecord(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	status := filepath.Join(f.root, ".agency", "status")
	first, second := f.session(".agency/status", true, 3), f.session(".agency/status", false, 1)
	f.says(first)
	f.says(second)
	leadsTo := func(s *agency.Session) {
		t.Helper()
		f.soon("the link leads to "+string(s.ID), func() bool { return f.active(status) == "sessions/"+string(s.ID) })
	}
	leadsTo(second)
	f.report(first, "001", func(a *agency.SessionAgent) error { return scheduler.ReportStart(a, new(7), time.Now()) })
	f.says(first)

	run := agency.NewRunID(time.Now(), [10]byte{1})
	if _, err := f.store.ChangeSession(t.Context(), second.ID, []string{"001"}, func(_ *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		agents[0].Status, agents[0].Run = agency.AgentRunning, run
		return []agency.EventDraft{agents[0].EventDraft()}, nil
	}); err != nil {
		t.Fatal(err)
	}
	f.soon("the log is linked", func() bool {
		target, _ := os.Readlink(filepath.Join(second.Dir, "001.log"))
		return target == "/home/u/.agency/runs/"+string(run)+"/logs/runner.log"
	})
	if _, err := f.store.ChangeSession(t.Context(), second.ID, nil, func(s *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		agents[0].Status, s.Status, s.CompletedAt = agency.AgentComplete, agency.SessionComplete, new(time.Now())
		return []agency.EventDraft{s.EventDraft(agency.SessionSettled)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	leadsTo(first) // which still runs
	f.says(second)
	f.finish(first, "001", "002", "003")
	f.says(first)
	f.soon("both are filed", func() bool {
		left, err := f.store.SessionsWithStaleFiles(t.Context())
		return err == nil && len(left) == 0
	})
	leadsTo(first) // and stays that way
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.excluded, ".agency/status") || !strings.Contains(f.log.String(), "it is no repository") {
		t.Errorf("excluded %q\n%s", f.excluded, f.log.String())
	}

	for _, s := range []*agency.Session{first, second} {
		if warning, err := f.files.Remove(t.Context(), s); err != nil || warning != "" {
			t.Error(warning, err)
		}
	}
	for _, path := range []string{first.Dir, second.Dir, filepath.Join(status, scheduler.ActiveSession)} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}

// A reader always sees one whole document with consistent numbers, and in the end the last report.
func TestFilesAreNeverTorn(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	const writers = 8
	s := f.session(".agency/status", true, 200)
	f.says(s)
	var done atomic.Bool
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		for !done.Load() {
			data, err := os.ReadFile(filepath.Join(s.Dir, "status.json"))
			if err != nil {
				t.Error(err)
				return
			}
			file, err := sessionfile.Parse(data)
			if err != nil || len(file.Agents) != 200 {
				t.Errorf("a torn file: %v", err)
				return
			}
			var counts agency.Counts
			for _, o := range file.Agents {
				a, err := sessionfile.ParseAgent(o)
				if err != nil {
					t.Error(err)
					return
				}
				counts.Add(a.Status, 1)
			}
			want := sessionfile.Head(&agency.Session{Counts: counts}, nil).Get("summary")
			if got := file.Head.Get("summary"); strings.Join(strings.Fields(string(got)), "") != string(want) {
				t.Errorf("the summary is %s, and the agents are %s", got, want)
				return
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := w; i < 100; i += writers {
				id := fmt.Sprintf("%03d", i+1)
				f.report(s, id, func(a *agency.SessionAgent) error { return scheduler.ReportStart(a, nil, time.Now()) })
				f.report(s, id, func(a *agency.SessionAgent) error { return scheduler.ReportFail(a, "x", 1, time.Now()) })
			}
		})
	}
	writing.Wait()
	f.files.Stop() // writes the rest
	done.Store(true)
	reading.Wait()
	if got, err := os.ReadFile(filepath.Join(s.Dir, "status.json")); err != nil || !bytes.Equal(got, f.document(s)) {
		t.Errorf("the last file is not what the record says: %v\n%.2000s", err, got)
	}
}

// A file that was lost or changed while no daemon ran is written again after a start, also for a
// session that settled meanwhile.
func TestFilesAreRebuilt(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	dir := filepath.Join(t.TempDir(), "elsewhere")
	first, second := f.session(dir, true, 1), f.session(dir, true, 1)
	f.says(first)
	f.files.Stop()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	f.finish(first, "001")
	if len(f.excluded) > 0 {
		t.Errorf("excluded from a repository: %q", f.excluded)
	}
	f.start()
	f.says(first)
	f.says(second)
	f.soon("the link leads to the one that runs", func() bool { return f.active(dir) == "sessions/"+string(second.ID) })
}

// A folder that the user removes exists again after the next change, with the link to the active
// session.
func TestFolderRemoved(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	dir := filepath.Join(t.TempDir(), "elsewhere")
	s := f.session(dir, true, 2)
	leads := func() bool { return f.active(dir) == "sessions/"+string(s.ID) }
	f.says(s)
	f.soon("the link leads to the session", leads)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	f.finish(s, "001")
	f.says(s)
	f.soon("the link leads to the session again", leads)
}

// A status folder that leads out of the repository is not followed, one that cannot be made does
// not stop the session, and both are tried again.
func TestHostileStatusFolders(t *testing.T) {
	t.Parallel()
	f := newFiling(t)
	external := t.TempDir()
	if err := os.Symlink(external, filepath.Join(f.root, ".agency")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linked, blocked, well := f.session(".agency/status", true, 1), f.session("file/status", true, 1), f.session("fine", true, 1)
	f.says(well)
	f.soon("both are complained of", func() bool {
		return strings.Contains(f.log.String(), string(linked.ID)) && strings.Contains(f.log.String(), string(blocked.ID))
	})
	if entries, err := os.ReadDir(external); err != nil || len(entries) > 0 {
		t.Errorf("something was written outside: %v, %v", entries, err)
	}
	f.finish(well, "001")
	f.says(well)
	if err := errors.Join(os.Remove(filepath.Join(f.root, ".agency")), os.Remove(filepath.Join(f.root, "file"))); err != nil {
		t.Fatal(err)
	}
	f.says(linked)
	f.says(blocked)
}
