package supervisor_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/supervisor"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Spec.Env = []string{"SECRET=hush"}
	req.Spec.Limits.MaxMinutes = 30
	var launch agency.Launch
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { launch = l; p = w.wrap(l); return p.begin() }
	r, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if r.Attempt.State != agency.Running || r.Attempt.Number != 1 || r.Attempt.Pane != "%7" || *r.Attempt.RunnerProcess != p.start.Runner {
		t.Errorf("attempt: got %+v", r.Attempt)
	}
	if r.Branch != "agency/"+r.Handle || w.git.branches[r.Branch] != baseCommit || w.git.worktrees[r.Worktree] != r.Branch {
		t.Errorf("branch %s, branches %v, worktrees %v", r.Branch, w.git.branches, w.git.worktrees)
	}
	if !slices.Contains(w.tmux.left(), r.Session()) {
		t.Error("there is no session")
	}
	if got := mustRead(t, filepath.Join(r.Worktree, agency.PromptFile)); got != "make test" {
		t.Errorf("prompt in the worktree: got %q", got)
	}
	if launch.Dir != r.Worktree || launch.TimeLimit.Minutes() != 30 || !slices.Contains(launch.Env, "SECRET=hush") {
		t.Errorf("launch: got %+v", launch)
	}
	for _, name := range []string{"meta.json", "meta.yaml", "spec.json", "prompt.md", "inputs.json", "state.json"} {
		if text := mustRead(t, filepath.Join(r.Dir, name)); strings.Contains(text, "hush") || strings.Contains(text, launch.Token) {
			t.Errorf("%s holds a secret:\n%s", name, text)
		}
	}
	steps, err := w.store.Steps(t.Context(), r.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step.DoneAt == nil {
			t.Errorf("step %s is not done", step.Name)
		}
	}
	if w.count(r.ID, agency.RunCreated) != 1 || w.count(r.ID, agency.AttemptStarted) != 1 {
		t.Errorf("events: got %v", w.events(r.ID))
	}
}

// A runner that ends at once does not fail the creation.
func TestCreateOfARunnerThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tmux.OnStart = func(l agency.Launch) error {
		p := w.wrap(l)
		return errors.Join(p.begin(), p.end(agency.Exit{ExitCode: 3, EndedBy: agency.EndedByRunner}))
	}
	r := w.create("quick")
	if r.Attempt.State != agency.Failed || *r.Attempt.ExitCode != 3 || r.RemovedAt != nil {
		t.Errorf("got %+v", r.Attempt)
	}
	if n := w.sup.Observer.LiveRuns(); n != 0 {
		t.Errorf("live runs: got %d", n)
	}
}

// The session starts while git makes the worktree, and the runner when the record has the worktree.
func TestSessionStartsBesideTheWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	connected := make(chan *wrapper, 1)
	w.tmux.OnStart = func(l agency.Launch) error {
		p := w.wrap(l)
		defer func() { connected <- p }()
		return p.begin()
	}
	w.git.AddWorktreeFunc = func(string) error {
		if p := <-connected; p.runs.Load() || w.run(p.id).Attempt.State != agency.Queued {
			t.Error("the runner runs without a worktree")
		}
		return nil
	}
	r := w.create("fix-login")
	if r.Attempt.State != agency.Running {
		t.Errorf("got %+v", r.Attempt)
	}
	steps, err := w.store.Steps(t.Context(), r.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if step.DoneAt == nil {
			t.Errorf("the step %s is not done", step.Name)
		}
	}
}

var errBoom = errors.New("boom")

// failures make a step of a creation fail.
var failures = map[string]struct {
	code   agency.Code
	breaks func(w *world)
}{
	"exclude": {agency.CodeInternal, func(w *world) { w.git.ExcludeFunc = func() error { return errBoom } }},
	"worktree": {agency.CodeWorktreeFailed, func(w *world) {
		w.git.AddWorktreeFunc = func(string) error { return agency.Errorf(agency.CodeWorktreeFailed, "boom") }
	}},
	"half a worktree": {agency.CodeWorktreeFailed, func(w *world) {
		w.git.AddWorktreeFunc = func(path string) error {
			mustWrite(w.t, filepath.Join(path, "half"), "")
			return agency.Errorf(agency.CodeWorktreeFailed, "boom")
		}
	}},
	"scaffold": {agency.CodeInternal, func(w *world) {
		// AddWorktree returns a folder with a file in the place of agency's own.
		w.git.AddWorktreeFunc = func(string) error {
			w.scaffold = func(string, []byte, time.Time) error { return errBoom }
			return nil
		}
	}},
	"session": {agency.CodeTmuxStartFailed, func(w *world) {
		w.tmux.OnStart = func(agency.Launch) error { return agency.Errorf(agency.CodeTmuxStartFailed, "boom") }
	}},
	"runner": {agency.CodeRunnerStartFailed, func(w *world) {
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			if err := p.connect(); err != nil {
				return err
			}
			e := &agency.Exit{RunID: l.RunID, Attempt: 1, EndedAt: p.start.StartedAt, ExitCode: 127, EndedBy: agency.EndedByStartFailed, Error: "no such file"}
			w.attempts.change(p.dir, func(h *onHost) { h.exit, h.locked = e, false })
			return w.sup.Wrappers.Update(context.Background(), p.id, 1, agency.WrapperUpdate{Exit: e})
		}
	}},
	"step files":    failingStep("files"),
	"step worktree": failingStep("worktree"),
	"step scaffold": failingStep("scaffold"),
	"step session":  failingStep("session"),
	"step started":  failingStep("started"),
}

func TestFailedCreateIsUndone(t *testing.T) {
	t.Parallel()
	for name, test := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.breaks(w)
			_, err := w.createRun(t.Context(), w.request("fix-login"))
			wantCode(t, orInternal(err), test.code)

			runs, err := w.store.Runs(t.Context(), agency.Filter{Removed: true})
			if err != nil || len(runs) != 1 {
				t.Fatalf("got %d runs and %v", len(runs), err)
			}
			r := runs[0]
			if r.Attempt.State != agency.Failed || r.RemovedAt == nil || r.Attempt.ErrorCode != test.code || r.Attempt.Error == "" {
				t.Errorf("got removed %v and %+v", r.RemovedAt, r.Attempt)
			}
			if w.count(r.ID, agency.RunUndone) != 1 {
				t.Errorf("events: got %v", w.events(r.ID))
			}
			if _, ok := w.git.branches[r.Branch]; ok {
				t.Error("left: the branch")
			}
			w.wantNothing()

			// The name is free, and a restart has nothing to settle.
			before, err := w.store.LastSeq(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.restart()
			if after, err := w.store.LastSeq(t.Context()); err != nil || after != before {
				t.Errorf("a restart wrote %d events (%v)", after-before, err)
			}
			w.store.FinishStepFunc, w.git.ExcludeFunc, w.git.AddWorktreeFunc, w.scaffold = nil, nil, nil, nil
			w.started("fix-login")
		})
	}
}

func failingStep(name string) struct {
	code   agency.Code
	breaks func(w *world)
} {
	return struct {
		code   agency.Code
		breaks func(w *world)
	}{agency.CodeInternal, func(w *world) {
		w.store.FinishStepFunc = func(step string) error {
			if step == name {
				return errBoom
			}
			return nil
		}
	}}
}

// orInternal gives errors of other packages the code that users see.
func orInternal(err error) error {
	if err == nil {
		return nil
	}
	return agency.AsError(err)
}

// A run whose program could not be started can be removed as soon as that is recorded, while its
// creation is still being undone: it is removed once.
func TestRemoveBesideAnUndo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		started := make(chan agency.RunID, 1)
		w.tmux.OnKill = func(string) { time.Sleep(time.Second) }
		w.tmux.OnStart = func(l agency.Launch) error {
			p := w.wrap(l)
			if err := p.connect(); err != nil {
				return err
			}
			started <- l.RunID
			e := &agency.Exit{RunID: l.RunID, Attempt: 1, EndedAt: p.start.StartedAt, ExitCode: 127, EndedBy: agency.EndedByStartFailed, Error: "no such file"}
			w.attempts.change(p.dir, func(h *onHost) { h.exit, h.locked = e, false })
			return w.sup.Wrappers.Update(context.Background(), p.id, 1, agency.WrapperUpdate{Exit: e})
		}
		w.call(func() { _, _ = w.createRun(context.Background(), w.request("broken")) })
		id := <-started
		time.Sleep(500 * time.Millisecond)
		if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: string(id)}); err != nil {
			t.Error(err)
		}
		w.calls.Wait()
		if removed, undone := w.count(id, agency.RunRemoved), w.count(id, agency.RunUndone); removed != 0 || undone != 1 {
			t.Errorf("removed %d times, undone %d times", removed, undone)
		}
	})
}

// A creation that cannot be undone leaves a failed run, and its files show that.
func TestUndoThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git.ExcludeFunc = func() error {
		w.git.mu.Lock()
		defer w.git.mu.Unlock()
		w.git.discoverErr = errBoom // also for the undo
		return errBoom
	}
	_, err := w.createRun(t.Context(), w.request("fix-login"))
	wantCode(t, err, agency.CodeCleanupFailed)
	runs, err := w.store.Runs(t.Context(), agency.Filter{})
	if err != nil || len(runs) != 1 || runs[0].Attempt.State != agency.Failed {
		t.Fatalf("got %+v and %v", runs, err)
	}
	for name, want := range map[string]string{"meta.json": `"failed"`, "state.json": `"CRASHED"`} {
		if text := mustRead(t, filepath.Join(runs[0].Dir, name)); !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A daemon that can record nothing more, as it begins again with the record that it restored, takes
// no start back: the next daemon follows the agent.
func TestCreateWhileTheRecordIsRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ends atomic.Bool
	refuse := func() error {
		if !ends.Load() {
			return nil
		}
		return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon is stopping")
	}
	w.store.ChangeRunErr = refuse
	w.store.FinishStepFunc = func(name string) error {
		ends.CompareAndSwap(false, name == "session")
		return refuse()
	}
	_, err := w.createRun(t.Context(), w.request("fix-login"))
	wantCode(t, err, agency.CodeDaemonLost)
	runs, err := w.store.Runs(t.Context(), agency.Filter{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("got %+v and %v", runs, err)
	}
	ends.Store(false)
	w.restart()
	r := w.run(runs[0].ID)
	if r.Attempt.State != agency.Running || r.RemovedAt != nil {
		t.Errorf("got removed %v and %+v", r.RemovedAt, r.Attempt)
	}
	for _, path := range []string{r.Dir, r.Worktree} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// A branch that another program made meanwhile is not touched.
func TestUndoKeepsAForeignBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Spec.Branch = "fix/login"
	w.git.ExcludeFunc = func() error {
		w.git.mu.Lock()
		defer w.git.mu.Unlock()
		w.git.branches["fix/login"] = baseCommit
		return nil
	}
	_, err := w.createRun(t.Context(), req)
	wantCode(t, err, agency.CodeBranchExists)
	if w.git.branches["fix/login"] != baseCommit {
		t.Error("the branch of the user is gone")
	}
	w.wantNothing()
}

// A live wrapper that sends nothing is given up after half a minute; a wrapper that died during the
// start is noticed at once.
func TestCreateOfASilentWrapper(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lives bool
		code  agency.Code
		after time.Duration
	}{
		"silent": {true, agency.CodeTmuxStartFailed, 30 * time.Second},
		"dead":   {false, agency.CodeStartCutOff, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.tmux.OnStart = func(l agency.Launch) error {
					p := w.wrap(l)
					w.attempts.change(p.dir, func(h *onHost) { h.locked = test.lives })
					return nil
				}
				begin := time.Now()
				_, err := w.createRun(t.Context(), w.request("silent"))
				wantCode(t, err, test.code)
				if took := time.Since(begin); took != test.after {
					t.Errorf("took %s, want %s", took, test.after)
				}
				w.wantNothing()
			})
		})
	}
}

// The first contract is agency's own and no report of the agent, also when the record of the run is
// written in the next second.
func TestFirstContractIsNoReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.OnCreateRun = func() { time.Sleep(time.Second) }
		r, _ := w.started("fix-login")
		if got := w.label(r.ID); got != agency.Active {
			t.Errorf("before a word of the agent: got %s, want %s", got, agency.Active)
		}
	})
}

// A client that goes away during a creation leaves a complete run or none.
func TestCreateGoesOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.git.ExcludeFunc = func() error { cancel(); return nil }
	r, err := w.createRun(ctx, w.request("alone"))
	if err != nil || r.Attempt.State != agency.Running {
		t.Fatalf("got %v, %v", r, err)
	}
}

func TestBadInputLeavesNoRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code agency.Code
		spec func(w *world, s *agency.Spec)
	}{
		"name":             {agency.CodeUsage, func(_ *world, s *agency.Spec) { s.Name = "Not A Name" }},
		"kind":             {agency.CodeSpecInvalid, func(_ *world, s *agency.Spec) { s.Runner.Kind = "" }},
		"no repository":    {agency.CodeNotGitRepo, func(_ *world, s *agency.Spec) { s.Repo = "/" }},
		"own data":         {agency.CodeInvalidPath, func(w *world, s *agency.Spec) { s.Repo = w.inside() }},
		"empty prompt":     {agency.CodeSpecInvalid, func(_ *world, s *agency.Spec) { s.Prompt.Text = " \n" }},
		"prompt not there": {agency.CodeInvalidPath, func(_ *world, s *agency.Spec) { s.Prompt = agency.SpecPrompt{Path: "nowhere.md"} }},
		"prompt is folder": {agency.CodeInvalidPath, func(_ *world, s *agency.Spec) { s.Prompt = agency.SpecPrompt{Path: "."} }},
		"base":             {agency.CodeBadRef, func(_ *world, s *agency.Spec) { s.BaseRef = "nowhere" }},
		"branch exists": {agency.CodeBranchExists, func(w *world, s *agency.Spec) {
			s.Branch, w.git.branches["main"] = "main", baseCommit
		}},
		"input": {agency.CodeInvalidPath, func(_ *world, s *agency.Spec) { s.Inputs = []agency.SpecInput{{Path: "nowhere"}} }},
		"runner": {agency.CodeRunnerNotConfigured, func(w *world, _ *agency.Spec) {
			w.harness.FindExecFunc = func() error { return agency.Errorf(agency.CodeRunnerNotConfigured, "no program") }
		}},
		"tmux": {agency.CodeTmuxNotFound, func(w *world, _ *agency.Spec) {
			w.tmux.VersionFunc = func() error { return agency.Errorf(agency.CodeTmuxNotFound, "no tmux") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			req := w.request("fix-login")
			test.spec(w, &req.Spec)
			_, err := w.createRun(t.Context(), req)
			wantCode(t, err, test.code)
			runs, err := w.store.Runs(t.Context(), agency.Filter{Removed: true})
			if err != nil || len(runs) != 0 {
				t.Errorf("got %d runs and %v", len(runs), err)
			}
			if seq, err := w.store.LastSeq(t.Context()); err != nil || seq != 0 {
				t.Errorf("got %d events and %v", seq, err)
			}
			w.wantNothing()
		})
	}
}

// inside returns a repository in the data root.
func (w *world) inside() string {
	dir := filepath.Join(w.home, "repo")
	w.git.repos[dir] = agency.Repo{Root: dir, Toplevel: dir}
	return dir
}

func TestNamesAndBranchesAreTakenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	_, err := w.createRun(t.Context(), w.request("fix-login"))
	wantCode(t, err, agency.CodeNameExists)
	if _, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"}); err != nil {
		t.Fatal(err)
	}
	again := w.create("fix-login")
	if again.ID == r.ID || again.Handle == r.Handle || again.Branch == r.Branch {
		t.Errorf("got %s %s twice", r.Handle, r.Branch)
	}
}

// The stored request contains nothing that could be secret, and no default is left open.
func TestMaterialisedSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Spec.Env = []string{"TOKEN=a=b", "EMPTY="}
	r, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var spec agency.Spec
	if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(r.Dir, "spec.json"))), &spec); err != nil {
		t.Fatal(err)
	}
	if spec.Repo != w.root || spec.Branch != r.Branch || spec.Prompt.Path != agency.PromptFile || spec.Prompt.Text != "" {
		t.Errorf("got %+v", spec)
	}
	if !slices.Equal(spec.Env, []string{"TOKEN", "EMPTY"}) {
		t.Errorf("env: got %q", spec.Env)
	}
	if !slices.Equal(req.Spec.Env, []string{"TOKEN=a=b", "EMPTY="}) {
		t.Errorf("the request itself was changed: %q", req.Spec.Env)
	}
}

// Two runs on the same task with the same random hash get different names, whether the store
// reports the handle or the branch first.
func TestHandleClash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	drawn := 0
	w.random = func(b []byte) {
		_, _ = rand.Read(b)
		if len(b) == 2 { // a hash
			if drawn++; drawn <= 3 {
				clear(b)
			}
		}
	}
	w.tmux.OnStart = func(l agency.Launch) error { return w.wrap(l).begin() }
	first, err := w.createRun(t.Context(), w.request(""))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.createRun(t.Context(), w.request(""))
	if err != nil {
		t.Fatal(err)
	}
	if first.Handle == second.Handle || first.Branch == second.Branch || second.Branch != "agency/"+second.Handle || drawn != 4 {
		t.Errorf("%s on %s and %s on %s after %d hashes", first.Handle, first.Branch, second.Handle, second.Branch, drawn)
	}
}

// An agent cannot make git run programs that it was not to run when its own run began; a user
// decides.
func TestCreateByAnAgentWithNewPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git.programs = "a filter"
	boss := w.create("boss")
	request := func(name, owner string) supervisor.NewRun {
		req := w.request(name)
		req.Owner = owner
		return req
	}
	if _, err := w.createRun(t.Context(), request("one", string(boss.ID))); err != nil {
		t.Fatal(err)
	}
	w.git.programs = "a filter and a hook"
	_, err := w.createRun(t.Context(), request("two", string(boss.ID)))
	wantCode(t, err, agency.CodeTrustRequired)
	if _, err := w.createRun(t.Context(), request("two", agency.User)); err != nil {
		t.Fatal(err)
	}
	w.git.programs = ""
	if _, err := w.createRun(t.Context(), request("three", string(boss.ID))); err != nil {
		t.Fatal(err)
	}
}
