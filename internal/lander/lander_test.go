package lander_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/git"
	"agency/internal/lander"
)

// record is the record of one ended run and its landings, in memory.
type record struct {
	run      agency.Run
	repo     agency.Repo
	landings []agency.Landing
	comments []agency.LineComment
	live     []agency.Run // other runs
}

func (r *record) CreateLanding(_ context.Context, l *agency.Landing) error {
	l.CreatedAt = time.Now()
	r.landings = append(r.landings, *l)
	return nil
}

func (r *record) SettleLanding(_ context.Context, id agency.LandingID, state agency.LandingState, reason string, _ agency.EventType) (*agency.Landing, error) {
	l := r.find(id)
	if l == nil {
		return nil, agency.Errorf(agency.CodeLandingNotFound, "no landing %s", id)
	}
	l.State, l.Error, l.EndedAt = state, reason, new(time.Now())
	landing := *l
	return &landing, nil
}

func (r *record) Landing(_ context.Context, id agency.LandingID) (*agency.Landing, error) {
	l := r.find(id)
	if l == nil {
		return nil, agency.Errorf(agency.CodeLandingNotFound, "no landing %s", id)
	}
	landing := *l
	return &landing, nil
}

func (r *record) find(id agency.LandingID) *agency.Landing {
	for i := range r.landings {
		if r.landings[i].ID == id {
			return &r.landings[i]
		}
	}
	return nil
}

func (r *record) Landings(context.Context, agency.RunID) ([]agency.Landing, error) {
	return append([]agency.Landing{}, r.landings...), nil
}

func (r *record) OpenLandings(context.Context) ([]agency.Landing, error) { return nil, nil }

func (r *record) LandingsToCleanUp(context.Context) ([]agency.Landing, error) { return nil, nil }

func (r *record) CleanedUp(context.Context, agency.LandingID) error { return nil }

func (r *record) LandedIn(context.Context, string, int) ([]agency.Landing, error) {
	return nil, nil
}

func (r *record) Hold(context.Context, string) (*agency.Run, func(), error) {
	return &r.run, func() {}, nil
}
func (r *record) Resolve(context.Context, string) (*agency.Run, error)      { return &r.run, nil }
func (r *record) Runs(context.Context, agency.Filter) ([]agency.Run, error) { return r.live, nil }

func (r *record) Merge(_ context.Context, _ agency.RunID, merged bool) (*agency.Run, error) {
	r.run.MergedAt = nil
	if merged {
		r.run.MergedAt = new(time.Now())
	}
	return &r.run, nil
}

func (r *record) RecordPR(_ context.Context, _ string, pr *agency.PullRequest) (*agency.Run, error) {
	r.run.PR = pr
	return &r.run, nil
}
func (r *record) Pushes(context.Context, agency.RunID) ([]agency.Push, error) { return nil, nil }

func (r *record) Of(context.Context, *agency.Run) (agency.Repo, error) { return r.repo, nil }
func (r *record) Lock(context.Context, string) (func(), error)         { return func() {}, nil }

// bench is a repository with a run, and what lands its work.
type bench struct {
	t        *testing.T
	rec      *record
	lander   *lander.Lander
	worktree string // of the run
	checkout string // of the user
}

const shared = 20 // lines of each file that both sides change

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, checkout: filepath.Join(dir, "repo"), worktree: filepath.Join(dir, "worktree")}
	if err := os.Mkdir(b.checkout, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(b.checkout, "init", "-q", "-b", "main")
	b.git(b.checkout, "config", "user.name", "User")
	b.git(b.checkout, "config", "user.email", "user@example.invalid")
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		lines := ""
		for i := range shared {
			lines += fmt.Sprintf("base %s %d\n", name, i)
		}
		b.write(b.checkout, name, lines)
	}
	b.git(b.checkout, "add", "-A")
	b.git(b.checkout, "commit", "-qm", "base")
	g := git.New(time.Minute, filepath.Join(dir, "views"), filepath.Join(dir, "scratch"))
	g.Claims = filepath.Join(dir, "claims")
	repo, err := g.Discover(t.Context(), b.checkout)
	if err == nil {
		err = g.AddWorktree(t.Context(), repo, b.worktree, "agency/work", "main", agency.OwnPrograms)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.rec = &record{repo: repo, run: agency.Run{
		ID: "r_work", Name: "work", Handle: "0001-work", Branch: "agency/work", Base: "main", Commit: b.git(b.checkout, "rev-parse", "main"), Worktree: b.worktree,
	}}
	ids := 0
	b.lander = lander.New(lander.Deps{
		Store: b.rec, Runs: b.rec, Marks: b.rec, Repos: b.rec, Git: g, Log: slog.New(slog.DiscardHandler),
		Status: func(*agency.Run) agency.Status { return agency.Status{Label: agency.LabelCompleted} },
		Parse:  func(string, []byte) (agency.Project, error) { return agency.Project{}, nil },
		Settings: func() agency.LandingSettings {
			return agency.LandingSettings{
				Method: agency.LandSquash, Uncommitted: agency.IncludeUncommitted, Checkout: agency.CheckoutDisjoint, After: agency.AfterKeep,
			}
		},
		NewID: func() agency.LandingID { ids++; return agency.LandingID(fmt.Sprintf("l_%d", ids)) },
	})
	return b
}

// git runs the user's git in a folder.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	out, err := b.try(dir, args...)
	if err != nil {
		b.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (b *bench) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *bench) write(dir, name, text string) {
	b.t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// lines counts each line of each file of a commit.
func (b *bench) lines(commit string) map[string]int {
	b.t.Helper()
	count := map[string]int{}
	for line := range strings.Lines(b.git(b.checkout, "grep", "-h", "", commit) + "\n") {
		count[strings.TrimSuffix(line, "\n")]++
	}
	return count
}
