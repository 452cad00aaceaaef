package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/doctor"
	"agency/internal/git"
	"agency/internal/harness"
	"agency/internal/recovery"
	"agency/internal/runner"
)

// machine is a machine on which the doctor finds what a test puts there.
type machine struct {
	home     string
	sessions []string
	runs     []agency.Run
	room     error
	state    api.DaemonConfig
	standbys []agency.Standby
	broken   error // of git in a repository
	boxes    []agency.Container
}

func (m *machine) Version(context.Context) (string, error) { return "1.0", nil }
func (m *machine) Discover(context.Context, string) (agency.Repo, error) {
	return agency.Repo{Root: "/repo"}, nil
}

func (m *machine) Sessions(context.Context) ([]string, error)         { return m.sessions, nil }
func (m *machine) Repo(context.Context, string) (*agency.Repo, error) { return nil, nil }
func (m *machine) NoRoom() error                                      { return nil }
func (m *machine) Landings(context.Context, agency.RunID) ([]agency.Landing, error) {
	return nil, nil
}
func (m *machine) LiveRuns() int                    { return 0 }
func (m *machine) Derive(*agency.Run) agency.Status { return agency.Status{} }
func (m *machine) Unmerged(context.Context, agency.Repo, string, ...string) (bool, error) {
	return false, nil
}

func (m *machine) Leftover(agency.Repo, string) (bool, error)                { return false, nil }
func (m *machine) Locks(agency.Repo, []string, []string) ([]git.Lock, error) { return nil, nil }
func (m *machine) Backup(context.Context, string) error                      { return errors.ErrUnsupported }

func (m *machine) Runs(context.Context, agency.Filter) ([]agency.Run, error) { return m.runs, nil }

func (m *machine) Branches(context.Context, agency.Repo, string) ([]string, error) { return nil, nil }

func (m *machine) Worktree(context.Context, agency.Repo, string) (string, error) {
	return "", m.broken
}

func (m *machine) Events(context.Context, int64, agency.RunID, int) ([]agency.Event, error) {
	return nil, nil
}

// look returns the findings that are not ok, each as its level, name, text and fix.
func (m *machine) look(t *testing.T) string {
	t.Helper()
	env := []string{"HOME=" + m.home, "AGENCY_HOME=" + m.home}
	cfg, err := config.Load("", env)
	if err != nil {
		t.Fatal(err)
	}
	active := func() *config.Config { return cfg }
	d := doctor.Doctor{Deps: doctor.Deps{
		Git: m, Tmux: m, Store: m, Runs: m, Screens: harness.Screens{Dir: m.home, Log: slog.New(slog.DiscardHandler)},
		Backups: &recovery.Backups{Home: m.home, Store: m, Keep: func() int { return 1 }, Now: time.Now},
		Daemon:  doctor.Daemon{Version: "1", Started: time.Now(), Config: cfg}, Active: active,
		State: func() api.DaemonConfig { return m.state }, Room: func() error { return m.room },
		Standbys:   func() []agency.Standby { return m.standbys },
		Sandbox:    engine{found: m.boxes},
		StaleFiles: func() map[agency.SessionID]string { return nil },
		Serving:    runner.Serving{Lock: filepath.Join(m.home, "agencyd.lock")}, Now: time.Now, Elapsed: time.Since,
	}}
	checks, err := d.Look(t.Context(), api.DoctorRequest{Dir: m.home, Env: append(env, "PATH=")})
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, c := range checks {
		if c.Level == "warning" || c.Level == "error" {
			found = append(found, strings.Join([]string{c.Level, c.Name, c.Text, c.Fix}, " | "))
		}
	}
	return strings.Join(found, "\n")
}

// The doctor finds what belongs to no run, with the command that removes it.
func TestOrphans(t *testing.T) {
	t.Parallel()
	m := &machine{home: t.TempDir()}
	removed := time.Now()
	m.runs = []agency.Run{{ID: "r_gone", Handle: "gone", RemovedAt: &removed, Worktree: filepath.Join(m.home, "nowhere")}}
	m.sessions = []string{agency.SessionPrefix + "r_gone", agency.SessionPrefix + "r_of_another_data_root", "mine"}
	m.runs = append(m.runs, agency.Run{ID: "r_run", Handle: "run", Worktree: filepath.Join(m.home, "worktrees", "f", "r_taken")})
	m.standbys = []agency.Standby{{ID: "r_ahead"}}
	folder, worktrees := filepath.Join(m.home, "runs", "r_unknown"), filepath.Join(m.home, "worktrees", "f")
	for _, dir := range []string{folder, filepath.Join(worktrees, "r_taken"), filepath.Join(worktrees, "r_taken.going"), filepath.Join(worktrees, "r_ahead"), filepath.Join(worktrees, "r_lost")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	found := m.look(t)
	for _, want := range []string{
		"warning | orphan session | " + m.sessions[0] + " | tmux kill-session -t =" + m.sessions[0],
		"warning | orphan run directory | " + folder + " | rm -r -- " + folder,
		"warning | orphan worktree | " + worktrees + "/r_taken.going | agency rm r_run",
		"warning | orphan worktree | " + worktrees + "/r_lost | ",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("it does not find %q in:\n%s", want, found)
		}
	}
	if strings.Contains(found, "another_data_root") || strings.Contains(found, "mine") || strings.Contains(found, "r_ahead") || strings.Contains(found, "r_taken |") {
		t.Errorf("it finds what belongs to others:\n%s", found)
	}
}

// A run that only its folder records may be live, as may an attempt that is newer than the record: the
// doctor names each once, with the command that brings it back, and none that removes something of it.
func TestLostRun(t *testing.T) {
	t.Parallel()
	m := &machine{home: t.TempDir()}
	folder, worktree := filepath.Join(m.home, "runs", "r_lost"), filepath.Join(m.home, "worktrees", "f", "r_ahead")
	for _, dir := range []string{folder, worktree} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	meta, err := json.Marshal(agency.Run{
		ID: "r_lost", Repo: agency.Repo{Fingerprint: "f"}, Worktree: worktree, Attempt: agency.Attempt{Number: 1, State: agency.Running},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "meta.json"), meta, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.sessions = []string{agency.SessionPrefix + "r_lost"}
	m.runs = []agency.Run{{ID: "r_run", Name: "run", Attempt: agency.Attempt{Number: 1, State: agency.Killed}}}
	m.boxes = []agency.Container{{Run: "r_lost", Attempt: 1, Home: m.home, Name: "box"}, {Run: "r_run", Attempt: 2, Home: m.home, Name: "later"}}
	found := m.look(t)
	for _, want := range []string{
		"orphan run directory | " + folder + ", of a run that the record does not know | agency daemon stop && agency db rebuild",
		"orphan container | later, of attempt 2 of run, which the record does not know | agency daemon stop && agency db rebuild",
	} {
		if strings.Count(found, "orphan") != 2 || !strings.Contains(found, want) {
			t.Errorf("it does not find just %q:\n%s", want, found)
		}
	}
}

// While git fails in a repository, a worktree may belong to it: the doctor names no command that removes
// the worktree. A repository that is gone has no worktrees.
func TestOrphanWorktreeOfABrokenRepository(t *testing.T) {
	t.Parallel()
	m := &machine{home: t.TempDir(), broken: errors.New("bad config")}
	worktree := filepath.Join(m.home, "worktrees", "f", "r_lost")
	if err := os.MkdirAll(worktree, 0o700); err != nil {
		t.Fatal(err)
	}
	for common, want := range map[string]string{
		m.home:                        "mend what this prints: git -C /repo worktree list; then: agency doctor",
		filepath.Join(m.home, "gone"): "rm -r -- " + worktree,
	} {
		m.runs = []agency.Run{{ID: "r_run", Repo: agency.Repo{Root: "/repo", CommonDir: common}, Worktree: filepath.Join(m.home, "r_run")}}
		if found := m.look(t); !strings.Contains(found, "orphan worktree | "+worktree+" | "+want) {
			t.Errorf("with %s: it does not find %q in:\n%s", common, want, found)
		}
	}
}

// The doctor reports a full disk and an invalid configuration, each with a fix.
func TestProblems(t *testing.T) {
	t.Parallel()
	m := &machine{home: t.TempDir(), state: api.DaemonConfig{Problem: "no such key"}}
	m.room = agency.Errorf(agency.CodeDiskLow, "the disk is nearly full").WithHint("make room")
	found := m.look(t)
	for _, want := range []string{
		"warning | data root | the disk is nearly full; no run is made | make room",
		"error | daemon config | the previous one is still used: no such key | agency config check",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("it does not find %q in:\n%s", want, found)
		}
	}
}
