package standby_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor/standby"
)

// fakeGit keeps standbys in memory; their folders are real.
type fakeGit struct {
	mu      sync.Mutex
	key     string
	files   int
	at      map[string]string // the state of each standby, by path
	branch  map[string]bool   // those that are on a branch
	headErr error             // of every look at one
	addErr  error
	refuses bool // no standby can be moved
}

func (g *fakeGit) CheckoutKey(context.Context, agency.Repo) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.key, nil
}

func (g *fakeGit) AddStandby(_ context.Context, _ agency.Repo, path, commit string, begin func() (func(), error)) error {
	unlock, err := begin()
	if err != nil {
		return err
	}
	defer unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[path] = commit
	return errors.Join(os.MkdirAll(path, 0o700), g.addErr)
}

func (g *fakeGit) MoveStandby(_ context.Context, _ agency.Repo, path, _, to string, _ []string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.refuses {
		g.at[path] = to
	}
	return !g.refuses, nil
}

func (g *fakeGit) StandbyState(_ agency.Repo, path string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch state, ok := g.at[path]; {
	case g.headErr != nil:
		return "", g.headErr
	case g.branch[path]:
		return "", agency.Errorf(agency.CodeInvalidState, "on a branch")
	case !ok:
		return "", agency.Errorf(agency.CodeNotGitRepo, "no worktree")
	default:
		return state, nil
	}
}

func (g *fakeGit) CountFiles(agency.Repo, string) (int, error) { return g.files, nil }

func (g *fakeGit) RemoveWorktree(_ context.Context, _ agency.Repo, path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.at, path)
	return os.RemoveAll(path)
}

// world is a data root with a pool, in a bubble of its own time.
type world struct {
	*standby.Pool

	t     *testing.T
	home  string
	git   *fakeGit
	count atomic.Int64
	boot  string
	spare atomic.Pointer[error]
	runs  map[string]bool // worktrees of runs
	ids   int
	end   func()
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, home: home, boot: "one", runs: map[string]bool{},
			git: &fakeGit{key: "key", files: 3000, at: map[string]string{}, branch: map[string]bool{}},
		}
		w.count.Store(1)
		w.start()
		defer func() { w.end() }()
		test(w)
	})
}

// start starts a daemon.
func (w *world) start() {
	w.Pool = standby.New(standby.Deps{
		Home: w.home, Git: w.git, Boot: w.boot,
		NewID: func() string { w.ids++; return fmt.Sprintf("r_%d", w.ids) },
		Lock:  func(context.Context, string) (func(), error) { return func() {}, nil },
		Taken: func(_ context.Context, path string) (bool, error) { return w.runs[path], nil },
		End:   func(context.Context, string) error { return nil },
		Count: func() int { return int(w.count.Load()) },
		Spare: func() error {
			if why := w.spare.Load(); why != nil {
				return *why
			}
			return nil
		},
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	w.Load(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	w.end = func() { cancel(); <-done }
	synctest.Wait()
}

// restart ends the daemon and starts another.
func (w *world) restart() {
	w.end()
	w.start()
}

// pass lets time pass until the pool has nothing to do.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func want(commit string) standby.Want {
	return standby.Want{Repo: agency.Repo{Fingerprint: "f", Root: "/repo", CommonDir: "/repo/.git"}, Base: "main", Commit: commit}
}

// withSetup adds a setup to a want; done counts how often it is done.
func withSetup(w standby.Want, key string, done *int) standby.Want {
	w.Setup = &standby.Setup{Key: key, Do: func(_ context.Context, path, log string) error {
		*done++
		return errors.Join(os.WriteFile(filepath.Join(path, "deps"), nil, 0o600), os.WriteFile(log, nil, 0o600))
	}}
	return w
}

// wantReady checks how many standbys are ready, and that nothing else is left in the data root.
func (w *world) wantReady(n int) {
	w.t.Helper()
	list := w.List()
	trees, _ := filepath.Glob(filepath.Join(w.home, "worktrees", "f", "*"))
	files, _ := filepath.Glob(filepath.Join(w.home, "standby", "f", "*.json"))
	if len(list) != n || len(trees) != n+len(w.runs) || len(files) != n {
		w.t.Fatalf("got %+v, worktrees %v and files %v, want %d ready", list, trees, files, n)
	}
	for i := range list {
		if !list[i].Ready {
			w.t.Errorf("%+v is not ready", list[i])
		}
	}
}

func TestTakenOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		if got := w.Take(t.Context(), want("a")); got != nil {
			t.Fatalf("got %+v from an empty pool", got)
		}
		w.Refill(want("a"), "")
		w.wantReady(0)
		w.pass(2 * time.Second)
		w.wantReady(1)
		first := w.Take(t.Context(), want("a"))
		if first == nil || w.Take(t.Context(), want("a")) != nil {
			t.Fatalf("got %+v, and not only once", first)
		}
		w.Return(first)
		again := w.Take(t.Context(), want("a"))
		if again == nil || again.Worktree != first.Worktree {
			t.Fatalf("got %+v after %+v was returned", again, first)
		}
		w.runs[again.Worktree] = true
		w.Keep(again)
		w.wantReady(0)
		w.Refill(want("a"), "")
		w.pass(2 * time.Second)
		w.wantReady(1)
	})
}

// The race detector finds a list that reads what is being written. (In the bubble, the list is done
// before the sleep ends, without being waited for.)
func TestListedWhileMade(t *testing.T) {
	inWorld(t, func(w *world) {
		listed, wanted := 0, want("a")
		wanted.Setup = &standby.Setup{Key: "k", Do: func(_ context.Context, _, log string) error {
			go func() { listed = len(w.List()) }()
			time.Sleep(time.Second)
			return os.WriteFile(log, nil, 0o600)
		}}
		w.Refill(wanted, "")
		w.pass(3 * time.Second)
		w.wantReady(1)
		if listed != 1 {
			t.Errorf("the list had %d standbys while one was made", listed)
		}
	})
}

func TestOnlyWhatFits(t *testing.T) {
	inWorld(t, func(w *world) {
		done := 0
		w.Refill(withSetup(want("a"), "npm", &done), "")
		w.pass(2 * time.Second)
		w.wantReady(1)
		for name, other := range map[string]standby.Want{"no setup": want("a"), "another setup": withSetup(want("a"), "pip", &done)} {
			if got := w.Take(t.Context(), other); got != nil {
				t.Errorf("%s: got %+v", name, got)
			}
		}
		// At another commit it is moved; where that does not give the same, it is made anew.
		moved := w.Take(t.Context(), withSetup(want("b"), "npm", &done))
		if moved == nil || moved.Commit != "b" || !moved.Setup || done != 1 {
			t.Fatalf("got %+v, done %d times", moved, done)
		}
		w.Return(moved)
		w.git.refuses = true
		if got := w.Take(t.Context(), withSetup(want("c"), "npm", &done)); got != nil {
			t.Errorf("got %+v", got)
		}
		w.pass(0)
		w.wantReady(0)
		// What a run needs next takes the place of what was there.
		w.Refill(withSetup(want("c"), "npm", &done), "")
		w.pass(2 * time.Second)
		w.git.mu.Lock()
		w.git.key = "other line endings"
		w.git.mu.Unlock()
		w.Refill(withSetup(want("c"), "npm", &done), "")
		w.pass(2 * time.Second)
		w.wantReady(1)
		if done != 3 {
			t.Errorf("the setup was done %d times", done)
		}
	})
}

func TestNoneIsMade(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"the user wants none":  func(w *world) { w.count.Store(0) },
		"few files":            func(w *world) { w.git.files = 2000 },
		"nothing to spare":     func(w *world) { w.spare.Store(new(errors.New("on battery"))) },
		"more than its commit": func(w *world) { w.git.key = "" },
		"git fails":            func(w *world) { w.git.addErr = errors.New("no") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				prepare(w)
				w.Refill(want("a"), "")
				w.pass(time.Minute)
				w.wantReady(0)
			})
		})
	}
}

func TestRemoved(t *testing.T) {
	for name, event := range map[string]func(w *world){
		"unused for a day":     func(w *world) { w.pass(agency.StandbyAge + time.Hour) },
		"the disk is short":    func(w *world) { w.spare.Store(new(errors.New("full"))); w.pass(2 * time.Minute) },
		"the user wants none":  func(w *world) { w.count.Store(0); w.pass(2 * time.Minute) },
		"gc":                   func(w *world) { w.Clear(w.t.Context()) },
		"the machine restarts": func(w *world) { w.boot = "two"; w.restart() },
		"another git wrote": func(w *world) {
			for path := range w.git.at {
				w.git.at[path] = "elsewhere"
			}
			w.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Refill(want("a"), "")
				w.pass(2 * time.Second)
				w.wantReady(1)
				event(w)
				w.pass(0)
				w.wantReady(0)
			})
		})
	}
}

func TestNextDaemonFindsThem(t *testing.T) {
	inWorld(t, func(w *world) {
		w.count.Store(2)
		w.Refill(want("a"), "")
		w.pass(2 * time.Second)
		w.wantReady(2)
		w.restart()
		w.wantReady(2)
		// The record has a run in the worktree of one, whose file was not removed yet.
		taken := w.Take(t.Context(), want("a"))
		w.runs[taken.Worktree] = true
		w.git.branch[taken.Worktree] = true
		w.restart()
		w.wantReady(1)
		// A record that was restored does not know the run of the other: its worktree stays.
		taken = w.Take(t.Context(), want("a"))
		w.git.branch[taken.Worktree] = true
		w.restart()
		w.runs[taken.Worktree] = true
		w.wantReady(0)
	})
}

// A standby whose HEAD the daemon cannot read stays, with its files: the user may have switched it to
// a branch.
func TestUnreadableStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Refill(want("a"), "")
		w.pass(2 * time.Second)
		path := w.List()[0].Worktree
		w.git.headErr = fmt.Errorf("open HEAD: %w", syscall.EMFILE)
		w.Clear(t.Context())
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		w.git.headErr = nil
		w.git.branch[path] = true // the user switched it to one
		w.restart()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	})
}

// A daemon that ended while it made one, or took it to another commit, leaves nothing for runs.
func TestUnfinishedIsRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		made := want("a")
		made.Setup = &standby.Setup{Key: "npm", Do: func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }}
		w.Refill(made, "")
		w.pass(2 * time.Second)
		if list := w.List(); len(list) != 1 || list[0].Ready || w.Take(t.Context(), made) != nil {
			t.Fatalf("got %+v", list)
		}
		w.restart()
		w.wantReady(0)
	})
}
