package supervisor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/spool"
	"agency/internal/supervisor"
)

func (w *world) resumeRequest(ref string) supervisor.ResumeRequest {
	return supervisor.ResumeRequest{
		Ref: ref, Env: []string{"PATH=/usr/bin"},
		Settings: w.settings(),
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var built []agency.CommandRequest
	w.harness.BuildFunc = func(r agency.CommandRequest, c *agency.Command) {
		built = append(built, r)
		c.ConversationID = r.ConversationID
	}
	r := w.ended("fix-login")
	req := w.resumeRequest("fix-login")
	req.Prompt = "now add a test"
	if _, _, err := w.sup.Marks.Flag(t.Context(), "fix-login", "the test is flaky", agency.User); err != nil {
		t.Fatal(err)
	}
	got, err := w.sup.ResumeRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Continued || got.Note != "" || !built[1].Resume || built[1].ConversationID != r.Attempt.ConversationID {
		t.Errorf("got %+v and %+v", got, built[1])
	}
	if a := got.Run.Attempt; a.Number != 2 || a.State != agency.Running || a.ExitCode != nil {
		t.Errorf("got %+v", a)
	}
	if text := mustRead(t, filepath.Join(r.Worktree, agency.PromptFile)); text != "now add a test" {
		t.Errorf("prompt: got %q", text)
	}
	if text := mustRead(t, filepath.Join(r.Dir, "prompt.md")); text != "make test" {
		t.Errorf("the first prompt: got %q", text)
	}
	if link, err := os.Readlink(filepath.Join(r.Dir, "logs")); err != nil || link != "attempts/2/logs" {
		t.Errorf("logs: got %q, %v", link, err)
	}
	if w.count(r.ID, agency.AttemptCreated) != 1 || w.count(r.ID, agency.AttemptEnded) != 1 || w.count(r.ID, agency.RunUnflagged) != 1 {
		t.Errorf("events: got %v", w.events(r.ID))
	}
	if want := []string{"it is no longer flagged: the test is flaky"}; got.Run.Flag != nil || !slices.Equal(got.Warnings, want) {
		t.Errorf("flag %+v, warnings %q", got.Run.Flag, got.Warnings)
	}
}

// Each refusal leaves the run and its worktree exactly as they were.
func TestResumeIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code agency.Code
		then func(w *world, r *agency.Run, req *supervisor.ResumeRequest)
		live bool
	}{
		"alive": {agency.CodeInvalidState, func(*world, *agency.Run, *supervisor.ResumeRequest) {}, true},
		"removed": {agency.CodeInvalidState, func(w *world, _ *agency.Run, _ *supervisor.ResumeRequest) {
			_, err := w.sup.RemoveRun(w.t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
			if err != nil {
				w.t.Fatal(err)
			}
		}, false},
		"worktree gone": {agency.CodeInvalidState, func(w *world, r *agency.Run, _ *supervisor.ResumeRequest) {
			if err := os.RemoveAll(r.Worktree); err != nil {
				w.t.Fatal(err)
			}
		}, false},
		"repository gone": {agency.CodeInvalidState, func(w *world, _ *agency.Run, _ *supervisor.ResumeRequest) { clear(w.git.repos) }, false},
		"another program": {agency.CodeInvalidState, func(w *world, _ *agency.Run, _ *supervisor.ResumeRequest) {
			w.harness.BuildFunc = func(_ agency.CommandRequest, c *agency.Command) { c.Argv[0] = "/opt/sh" }
		}, false},
		"other arguments": {agency.CodeInvalidState, func(_ *world, _ *agency.Run, req *supervisor.ResumeRequest) {
			req.Settings.DefaultArgs = []string{"--sandbox", "danger-full-access"}
		}, false},
		"blank prompt": {agency.CodeSpecInvalid, func(_ *world, _ *agency.Run, req *supervisor.ResumeRequest) { req.Prompt = " " }, false},
		"unknown":      {agency.CodeRunNotFound, func(_ *world, _ *agency.Run, req *supervisor.ResumeRequest) { req.Ref = "unknown" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var r *agency.Run
			if test.live {
				r, _ = w.started("fix-login")
			} else {
				r = w.ended("fix-login")
			}
			req := w.resumeRequest(string(r.ID))
			test.then(w, r, &req)
			before, seq := w.run(r.ID), w.lastSeq()
			_, err := w.sup.ResumeRun(t.Context(), req)
			wantCode(t, err, test.code)
			if after := w.run(r.ID); after.Attempt.Number != 1 || after.Attempt.State != before.Attempt.State || w.lastSeq() != seq {
				t.Errorf("got %+v and %d events", after.Attempt, w.lastSeq()-seq)
			}
		})
	}
}

// A worktree that was moved is found, and the error shows how to move it back.
func TestResumeOfAMovedWorktree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	if err := os.RemoveAll(r.Worktree); err != nil {
		t.Fatal(err)
	}
	w.git.moved = map[string]string{r.Worktree: "/else where"}
	_, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login"))
	wantCode(t, err, agency.CodeInvalidState)
	want := "move it back: git -C " + w.root + " worktree move -- '/else where' " + r.Worktree
	if e := agency.AsError(err); !strings.Contains(e.Message, "/else where") || e.Hint != want {
		t.Errorf("got %q and %q, want %q", e.Message, e.Hint, want)
	}
	_, _, err = w.sup.SnapshotRun(t.Context(), "fix-login")
	if e := agency.AsError(err); e.Hint != want {
		t.Errorf("snapshot: got %v", err)
	}
	got, err := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	if err != nil || len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "/else where") {
		t.Errorf("rm: got %+v, %v", got, err)
	}
}

// A moved data root takes the worktrees along, so that nothing of a run is in its place; a link is
// enough to repair it.
func TestMovedDataFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	before := filepath.Join(t.TempDir(), "data")
	move := func(r *agency.Run) ([]agency.EventDraft, error) {
		r.Dir, r.Worktree = strings.Replace(r.Dir, w.home, before, 1), strings.Replace(r.Worktree, w.home, before, 1)
		return nil, nil
	}
	if _, err := w.store.ChangeRun(t.Context(), r.ID, move); err != nil {
		t.Fatal(err)
	}
	_, resume := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login"))
	_, remove := w.sup.RemoveRun(t.Context(), supervisor.RemoveRequest{Ref: "fix-login"})
	for _, err := range []error{resume, remove} {
		wantCode(t, err, agency.CodeInvalidState)
		if hint := agency.AsError(err).Hint; !strings.HasSuffix(hint, "ln -s "+w.home+" "+before) {
			t.Errorf("the hint is %q", hint)
		}
	}
	if w.run(r.ID).RemovedAt != nil {
		t.Error("it is removed")
	}
}

func TestResumeWithForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("fix-login")
	w.harness.BuildFunc = func(_ agency.CommandRequest, c *agency.Command) { c.Argv[0] = "/opt/sh" }
	req := w.resumeRequest("fix-login")
	req.Force = true
	if _, err := w.sup.ResumeRun(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.StopRun(t.Context(), "fix-login"); err != nil {
		t.Fatal(err)
	}
	req.Force = false // the run is now recorded with the new program
	if _, err := w.sup.ResumeRun(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.started("fix-login")
	req := w.resumeRequest("fix-login")
	req.Restart, req.Fresh = true, true
	w.git.facts = agency.GitFacts{Dirty: true}
	got, err := w.sup.ResumeRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := w.store.Attempts(t.Context(), r.ID)
	if err != nil || len(attempts) != 2 || attempts[0].State != agency.Killed || attempts[1].State != agency.Running {
		t.Errorf("got %+v, %v", attempts, err)
	}
	if got.Continued || got.Note == "" || got.Snapshot == nil || !strings.HasSuffix(got.Snapshot.Ref, "/1") {
		t.Errorf("got %+v", got)
	}
}

// An agent that chose the id of its conversation reported it during the run.
func TestResumeFindsTheConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Spec.Headless = new(true)
	var p *wrapper
	w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
	r, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	evidence := agency.Evidence{Source: agency.FromStream, Signal: agency.SignalSession, Conversation: "c-1"}
	if err := spool.Append(filepath.Join(p.dir, agency.EventsFile), evidence); err != nil {
		t.Fatal(err)
	}
	p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
	var built agency.CommandRequest
	w.harness.BuildFunc = func(r agency.CommandRequest, _ *agency.Command) { built = r }
	got, err := w.sup.ResumeRun(t.Context(), w.resumeRequest(r.Handle))
	if err != nil || !got.Continued || built.ConversationID != "c-1" || !built.Resume {
		t.Errorf("got %+v, %v with %+v", got, err, built)
	}
}

// An attempt that fails before its runner starts is failed; the worktree stays, and the run can be
// resumed again.
func TestFailedResume(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"archive", "files", "session", "started"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.ended("fix-login")
			w.store.FinishStepFunc = func(name string) error {
				if name == step {
					return errBoom
				}
				return nil
			}
			if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err == nil {
				t.Fatal("got no error")
			}
			w.wantFailedAttempt(r, 2)
			w.store.FinishStepFunc = nil
			w.resume("fix-login")
		})
	}
}

// wantFailedAttempt fails unless a run's attempt failed and only its worktree is left.
func (w *world) wantFailedAttempt(r *agency.Run, number int) {
	w.t.Helper()
	a := w.run(r.ID).Attempt
	if a.Number != number || a.State != agency.Failed || w.count(r.ID, agency.AttemptEnded) != number {
		w.t.Errorf("got %+v", a)
	}
	if a.ErrorCode == agency.CodeRunnerDisappeared || a.EndedBy == agency.EndedBySessionLost {
		w.t.Errorf("what agency ended is evidence as the act of another: %+v", a)
	}
	if n := w.sup.Observer.LiveRuns(); n != 0 || len(w.tmux.left()) != 0 {
		w.t.Errorf("%d live runs, sessions %v", n, w.tmux.left())
	}
	if _, err := os.Lstat(r.Worktree); err != nil {
		w.t.Error(err)
	}
}

// The attempt is recorded before its token: if the token cannot be recorded, the attempt must not
// stay queued for ever.
func TestResumeWithoutAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	w.store.SetTokenFunc = func() error { return errBoom }
	if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err == nil {
		t.Fatal("got no error")
	}
	w.wantFailedAttempt(r, 2)
}

func TestRunnerEnv(t *testing.T) {
	t.Parallel()
	caller := []string{
		"PATH=/usr/bin", "TMUX=/tmp/tmux,1,0", "TMUX_PANE=%1", "TMUX_TMPDIR=/tmp", "AGENCY_HOME=/h", "AGENCY_TOKEN=t", "agency_CONFIG=/c",
		"SECRET_ONE=1", "MY_SECRET=2", "EMPTY=", "=C:=oddity", "novalue", "TOKEN=a=b", "LANG=C",
		"GIT_DIR=.git", "GIT_INDEX_FILE=.git/index", "GIT_WORK_TREE=.", "GIT_AUTHOR_NAME=Test",
	}
	set := []string{"LANG=de_DE.UTF-8", "SECRET_ONE=wanted"}
	got := supervisor.RunnerEnv(caller, set, []string{"SECRET_*", "*_SECRET", "T[O]KEN"})
	want := []string{"PATH=/usr/bin", "agency_CONFIG=/c", "EMPTY=", "LANG=C", "GIT_AUTHOR_NAME=Test", "LANG=de_DE.UTF-8", "SECRET_ONE=wanted"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := supervisor.RunnerEnv(nil, nil, nil); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

// The variables that the run sets come last, and the last one is used.
func TestTheRunsEnvironmentWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	req := w.request("fix-login")
	req.Env, req.Spec.Env = []string{"A=caller", "B=caller"}, []string{"A=run"}
	req.Settings.EnvDeny = []string{"B"}
	w.harness.BuildFunc = func(_ agency.CommandRequest, c *agency.Command) { c.Env = []string{"C=harness"} }
	var env []string
	w.tmux.OnStart = func(l agency.Launch) error { env = l.Env; return w.wrap(l).begin() }
	r, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = value
	}
	for name, want := range map[string]string{
		"A": "run", "C": "harness", "AGENCY_RUN_ID": string(r.ID), "AGENCY_ATTEMPT": "1", "AGENCY_WORKTREE": r.Worktree,
		"AGENCY_STATE_DIR": filepath.Join(r.Worktree, agency.StateDir), "AGENCY_HOME": w.home,
	} {
		if last[name] != want {
			t.Errorf("%s: got %q, want %q", name, last[name], want)
		}
	}
	if _, ok := last["B"]; ok {
		t.Error("B is denied and was passed on")
	}
}

func TestResumeAtOnceByTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login"))
			results <- err
		}()
	}
	var codes []agency.Code
	for range 2 {
		select {
		case err := <-results:
			codes = append(codes, codeOf(err))
		case <-time.After(time.Minute):
			t.Fatal("no answer")
		}
	}
	slices.Sort(codes)
	if !slices.Equal(codes, []agency.Code{"", agency.CodeInvalidState}) || w.run(r.ID).Attempt.Number != 2 {
		t.Errorf("got %q and attempt %d", codes, w.run(r.ID).Attempt.Number)
	}
}

// The values of the first start are not kept: missing names are reported, and values that are given
// again are set.
func TestResumeEnv(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set     []string
		missing string
		code    agency.Code
	}{
		{nil, "the first start was given TOKEN, MODE; ", ""},
		{[]string{"TOKEN=again"}, "the first start was given MODE; ", ""},
		{[]string{"TOKEN=again", "MODE="}, "", ""},
		{[]string{"AGENCY_TOKEN=x"}, "", agency.CodeSpecInvalid},
		{[]string{"TOKEN"}, "", agency.CodeSpecInvalid},
	} {
		w := newWorld(t)
		var built agency.CommandRequest
		w.harness.BuildFunc = func(r agency.CommandRequest, _ *agency.Command) { built = r }
		var p *wrapper
		w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
		create := w.request("fix-login")
		create.Spec.Env = []string{"TOKEN=secret", "MODE=test", "PATH=/bin"}
		if _, err := w.createRun(t.Context(), create); err != nil {
			t.Fatal(err)
		}
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		req := w.resumeRequest("fix-login")
		req.Set = test.set
		got, err := w.sup.ResumeRun(t.Context(), req)
		if err != nil || test.code != "" {
			wantCode(t, err, test.code)
			continue
		}
		warned := strings.Join(got.Warnings, "\n")
		if (test.missing == "") != (warned == "") || !strings.Contains(warned, test.missing) || strings.Contains(warned, "secret") {
			t.Errorf("%q: warned %q", test.set, warned)
		}
		for _, kv := range test.set {
			if !slices.Contains(built.Env, kv) {
				t.Errorf("%q is not in %q", kv, built.Env)
			}
		}
	}
}
