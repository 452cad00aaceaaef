package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agency"
)

// facts are what is true of an attempt at its end, regardless of who noticed what and when.
type facts struct {
	start bool
	exit  *agency.Exit
	stop  bool   // requested while it ran
	word  string // the agent's last status
}

func drawFacts(t *rapid.T) facts {
	f := facts{start: rapid.Bool().Draw(t, "start")}
	switch {
	case !f.start && rapid.Bool().Draw(t, "start failed"):
		f.exit = &agency.Exit{ExitCode: 127, EndedBy: agency.EndedByStartFailed, Error: "no such file"}
	case f.start:
		f.exit = rapid.SampledFrom([]*agency.Exit{
			nil,
			{EndedBy: agency.EndedByRunner},
			{ExitCode: 3, EndedBy: agency.EndedByRunner},
			{ExitCode: 137, Signal: "SIGKILL", EndedBy: agency.EndedByRunner},
			{ExitCode: 143, Signal: "SIGTERM", EndedBy: agency.EndedByTimeLimit},
			{ExitCode: 129, Signal: "SIGHUP", EndedBy: agency.EndedBySessionLost},
			{ExitCode: 143, Signal: "SIGTERM", EndedBy: agency.EndedByStop},
			{ExitCode: 143, Signal: "SIGTERM", EndedBy: agency.EndedBySignal},
		}).Draw(t, "exit")
	}
	return f
}

// outcome is the expected record.
type outcome struct {
	State    agency.State
	Started  bool
	ExitCode int // -1 is none
	Signal   string
	EndedBy  agency.EndedBy
	Code     agency.Code
	Removed  bool
	Word     string
	Ended    int // events
	Undone   int
}

func (f facts) outcome() outcome {
	o := outcome{State: agency.Failed, Started: f.start, ExitCode: -1, Ended: 1, Word: f.word}
	switch {
	case f.exit == nil && !f.start:
		return outcome{State: agency.Failed, ExitCode: -1, EndedBy: agency.EndedByStartFailed, Code: agency.CodeStartCutOff, Removed: true, Undone: 1}
	case f.exit == nil:
		o.Code = agency.CodeRunnerDisappeared
	default:
		o.Signal, o.EndedBy = f.exit.Signal, f.exit.EndedBy
		if o.Signal == "" {
			o.ExitCode = f.exit.ExitCode
		}
		if f.exit.EndedBy == agency.EndedByRunner && f.exit.Signal == "" && f.exit.ExitCode == 0 {
			o.State = agency.Completed
		}
		o.Code, _ = f.exit.Failure()
	}
	if f.exit != nil && f.exit.EndedBy == agency.EndedByStartFailed {
		o.Removed, o.Undone = true, 1 // its creation is undone
	}
	if f.stop || o.EndedBy == agency.EndedByStop {
		o.State, o.Code = agency.Killed, ""
	}
	return o
}

func (w *world) outcome(id agency.RunID) outcome {
	r := w.run(id)
	a := &r.Attempt
	o := outcome{
		State: a.State, Started: a.StartedAt != nil, ExitCode: -1, Signal: a.Signal, EndedBy: a.EndedBy, Code: a.ErrorCode,
		Removed: r.RemovedAt != nil, Ended: w.count(id, agency.AttemptEnded), Undone: w.count(id, agency.RunUndone),
	}
	if a.Reported.Contract != nil {
		o.Word = a.Reported.Contract.Summary
	}
	if a.ExitCode != nil {
		o.ExitCode = *a.ExitCode
	}
	return o
}

// insert records a run whose creation got as far as its session, and adds its wrapper to this host.
func (w *world) insert(t *rapid.T) *wrapper {
	id := agency.NewRunID(time.Now(), [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "id")))
	r := &agency.Run{
		ID: id, Handle: string(id), Branch: string(id), Repo: agency.Repo{Fingerprint: "5c0f", Root: w.root},
		Worktree: filepath.Join(w.home, "worktrees", "5c0f", string(id)), Dir: filepath.Join(w.home, "runs", string(id)),
		Runner: agency.Runner{Kind: agency.Shell, Name: "shell", Args: []string{}}, Tags: []string{},
		Attempt: agency.Attempt{Number: 1, State: agency.Queued},
	}
	dir := filepath.Join(r.Dir, "attempts", "1")
	for _, folder := range []string{dir, filepath.Join(r.Worktree, agency.StateDir)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := agency.Creation{Spec: []byte("{}"), TokenHash: agency.TokenHash("token"), Steps: []string{"files", "scaffold", "started"}}
	if err := w.store.CreateRun(context.Background(), r, c, agency.EventDraft{Type: agency.RunCreated}); err != nil {
		t.Fatal(err)
	}
	w.git.mu.Lock()
	w.git.repos[w.root] = agency.Repo{Root: w.root, Toplevel: w.root, CommonDir: filepath.Join(w.root, ".git"), Fingerprint: "5c0f"}
	w.git.worktrees[r.Worktree] = r.Branch
	w.git.mu.Unlock()
	if err := w.store.FinishSteps(context.Background(), id, 1, "files", "scaffold"); err != nil {
		t.Fatal(err)
	}
	p := w.wrap(agency.Launch{RunID: id, Attempt: 1, Token: "token", AttemptDir: dir})
	p.link.StopFunc = nil // it receives a stop, and ends when the test decides
	return p
}

// Whatever is noticed first and how often, an attempt ends the same way, and once.
func TestFactsAloneDecideTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		s := &story{w: w, facts: drawFacts(t), p: w.insert(t)}
		if s.facts.exit != nil {
			s.facts.exit.RunID, s.facts.exit.Attempt, s.facts.exit.EndedAt = s.p.id, 1, time.Now().UTC().Truncate(time.Millisecond)
		}
		actions := []string{"connect", "update", "disconnect", "restart", "save start", "word", "stop", "exit", "old update", "release"}
		for i, action := range rapid.SliceOfN(rapid.SampledFrom(actions), 0, 12).Draw(t, "actions") {
			s.act(t, i, action)
		}
		s.saveStart()
		w.attempts.change(s.p.dir, func(h *onHost) { h.exit, h.locked = s.facts.exit, false })
		w.restart()
		if diff := cmp.Diff(s.facts.outcome(), w.outcome(s.p.id)); diff != "" {
			t.Fatalf("outcome (-want +got):\n%s", diff)
		}
		if n := w.sup.Observer.LiveRuns(); n != 0 {
			t.Fatalf("%d live runs", n)
		}
		before, seq := w.run(s.p.id), w.lastSeq()
		w.restart()
		s.update(t, s.facts.exit)
		if diff := cmp.Diff(before, w.run(s.p.id)); diff != "" || w.lastSeq() != seq {
			t.Fatalf("settled again it changed, %d events:\n%s", w.lastSeq()-seq, diff)
		}
	})
}

// story is an attempt to which things happen that its facts allow, in any order.
type story struct {
	w        *world
	facts    facts
	p        *wrapper
	recorded *agency.Exit // the exit that the wrapper has written
	released bool
	greeted  bool // a wrapper introduces itself first, and a daemon looks for wrappers when it starts
}

// act lets the i-th thing happen, unless it cannot happen now.
func (s *story) act(t *rapid.T, i int, action string) {
	switch {
	case action == "restart":
		s.w.restart()
		s.greeted = true
	case action == "disconnect":
		s.w.sup.Wrappers.Disconnect(s.p.id, 1, s.p.link)
	case action == "stop":
		_, err := s.w.store.ChangeRun(context.Background(), s.p.id, s.stop)
		fine(t, err)
	case s.released:
		// A wrapper that is gone sends nothing.
	case action == "connect":
		s.p.link = &fakeLink{}
		fine(t, s.p.connect())
		s.greeted = true
	case action == "save start":
		s.saveStart()
	case action == "word" && s.facts.start && s.recorded == nil:
		s.facts.word = fmt.Sprintf("step %d", i)
		s.w.say(t, s.p.id, s.facts.word)
	case action == "update" && s.greeted:
		s.update(t, s.recorded)
	case action == "old update" && s.greeted:
		s.update(t, nil)
	case action == "exit" && s.facts.exit != nil:
		s.saveStart()
		s.recorded = s.facts.exit
		s.w.attempts.change(s.p.dir, func(h *onHost) { h.exit = s.recorded })
	case action == "release" && (s.facts.exit == nil || s.recorded != nil):
		s.saveStart()
		s.released = true
		s.w.attempts.change(s.p.dir, func(h *onHost) { h.locked = false })
	}
}

// started returns the record of the start; nil when the runner did not start.
func (s *story) started() *agency.Start {
	if !s.facts.start {
		return nil
	}
	return &s.p.start
}

// saveStart writes the record of the start, which is written before the end.
func (s *story) saveStart() {
	s.w.attempts.change(s.p.dir, func(h *onHost) { h.start = s.started() })
}

// update sends what the wrapper knows.
func (s *story) update(t *rapid.T, exit *agency.Exit) {
	fine(t, s.w.sup.Wrappers.Update(context.Background(), s.p.id, 1, agency.WrapperUpdate{Start: s.started(), Exit: exit}))
}

// stop is a client's request for a stop while it sees the run running.
func (s *story) stop(r *agency.Run) ([]agency.EventDraft, error) {
	if r.Attempt.State != agency.Running || s.facts.stop {
		return nil, nil
	}
	s.facts.stop, r.Attempt.StopRequestedAt = true, new(time.Now())
	return []agency.EventDraft{{Type: agency.AttemptStopping}}, nil
}

// fine fails the test for an error other than the refusal of an ended attempt, which is fenced.
func fine(t *rapid.T, err error) {
	if err != nil && !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Fatal(err)
	}
}

// say makes the agent of a run write its status file.
func (w *world) say(t *rapid.T, id agency.RunID, summary string) {
	c := agency.NewContract(time.Now())
	c.Summary = summary
	data, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.run(id).Worktree, agency.ContractFile), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) lastSeq() int64 {
	w.t.Helper()
	seq, err := w.store.LastSeq(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return seq
}

// A wrapper that dies closes its connection, and its attempt is settled without a restart.
func TestDisconnectOfADeadWrapper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		w.sup.Wrappers.Disconnect(p.id, 1, &fakeLink{}) // of an older connection: no effect
		w.sup.Wrappers.Disconnect(p.id, 1, p.link)
		time.Sleep(time.Minute)
		if got := w.run(r.ID).Attempt.State; got != agency.Running {
			t.Fatalf("the wrapper lives and the attempt is %s", got)
		}
		w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
		time.Sleep(2 * time.Second)
		a := w.run(r.ID).Attempt
		if a.State != agency.Failed || a.ErrorCode != agency.CodeRunnerDisappeared {
			t.Errorf("got %+v", a)
		}
		if len(w.attempts.ended) == 0 || w.attempts.ended[0] != p.start.Runner {
			t.Errorf("ended: got %+v, want the runner", w.attempts.ended)
		}
		if n := w.sup.Observer.LiveRuns(); n != 0 {
			t.Errorf("%d live runs", n)
		}
	})
}

// A start that agency undid stays undone, with agency as the cause, whichever part notices its end,
// and when.
func TestStartTakenBack(t *testing.T) {
	t.Parallel()
	for name, notices := range map[string]func(p *wrapper) error{
		"the next daemon":          func(*wrapper) error { return nil },
		"it, and the wrapper ends": func(p *wrapper) error { p.w.hangUp(agency.SessionPrefix + string(p.id)); return nil },
		"it, and the wrapper dies": func(p *wrapper) error {
			p.w.attempts.change(p.dir, func(h *onHost) { h.locked = false })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, p := w.started("fix-login")
			w.sup.Stop()
			_, err := w.store.ChangeRun(t.Context(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
				r.Attempt.ErrorCode, r.Attempt.Error = agency.CodeDBError, "no room"
				return nil, nil
			})
			if err == nil {
				err = notices(p)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.start()
			if now := w.run(r.ID); now.Attempt.State != agency.Failed || now.Attempt.ErrorCode != agency.CodeDBError || now.RemovedAt == nil || len(w.tmux.left()) != 0 {
				t.Errorf("got %+v, sessions %v", now, w.tmux.left())
			}
		})
	}
}

// A stop that was requested before the daemon ended is finished by the next one.
func TestStopIsFinishedAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		w.sup.Stop()
		if !p.link.closed {
			t.Error("the link is open after the end of the daemon")
		}
		_, err := w.store.ChangeRun(t.Context(), r.ID, func(r *agency.Run) ([]agency.EventDraft, error) {
			r.Attempt.StopRequestedAt = new(time.Now())
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a := w.run(r.ID).Attempt; a.State != agency.Killed || a.EndedBy != agency.EndedByStop {
			t.Errorf("got %+v", a)
		}
		if len(w.tmux.left()) != 0 {
			t.Errorf("left: sessions %v", w.tmux.left())
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	var intended bool
	stop := p.link.StopFunc
	p.link.StopFunc = func(by agency.EndedBy) error {
		intended = w.run(r.ID).Attempt.StopRequestedAt != nil
		return stop(by)
	}
	got, err := w.sup.StopRun(t.Context(), "fix-login")
	if err != nil {
		t.Fatal(err)
	}
	if !intended {
		t.Error("the wrapper was asked before the intent was written")
	}
	if got.Attempt.State != agency.Killed || got.RemovedAt != nil || len(w.tmux.left()) != 0 || w.count(r.ID, agency.AttemptEnded) != 1 {
		t.Errorf("got %+v, sessions %v", got.Attempt, w.tmux.left())
	}
	if _, err := os.Lstat(r.Worktree); err != nil {
		t.Error(err)
	}
	_, err = w.sup.StopRun(t.Context(), "fix-login")
	wantCode(t, err, agency.CodeInvalidState)
}

// A stop of an earlier attempt does not affect the one that a user has started meanwhile.
func TestStopOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.ended("fix-login")
	if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err != nil {
		t.Fatal(err)
	}
	seq := w.lastSeq()
	wantCode(t, w.sup.StopAttempt(t.Context(), r.ID, 1), agency.CodeInvalidState)
	if a := w.run(r.ID).Attempt; a.State != agency.Running || a.StopRequestedAt != nil || w.lastSeq() != seq || len(w.tmux.left()) != 1 {
		t.Errorf("got %+v and sessions %v", a, w.tmux.left())
	}
	if err := w.sup.StopAttempt(t.Context(), r.ID, 2); err != nil {
		t.Fatal(err)
	}
	if a := w.run(r.ID).Attempt; a.State != agency.Killed {
		t.Errorf("got %+v", a)
	}
}

// Between the end of a stopped attempt and that of its session a user starts the next one, whose
// session has the same name.
func TestStopLeavesTheNextAttemptItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, p := w.started("fix-login")
	stop := p.link.StopFunc
	p.link.StopFunc = func(by agency.EndedBy) error {
		if err := stop(by); err != nil {
			return err
		}
		_, err := w.sup.ResumeRun(context.Background(), w.resumeRequest("fix-login"))
		return err
	}
	if _, err := w.sup.StopRun(t.Context(), "fix-login"); err != nil {
		t.Fatal(err)
	}
	if a := w.run(r.ID).Attempt; a.Number != 2 || a.State != agency.Running || len(w.tmux.left()) != 1 {
		t.Errorf("got %+v and sessions %v", a, w.tmux.left())
	}
}

// Without a connection the wrapper is ended with a signal, and settled once it is dead.
func TestStopBySignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		w.sup.Wrappers.Disconnect(p.id, 1, p.link)
		w.attempts.SignalFunc = func(to agency.Process, _ syscall.Signal) error {
			if to != p.start.Wrapper {
				t.Errorf("signal to %+v", to)
			}
			w.attempts.change(p.dir, func(h *onHost) {
				h.locked, h.exit = false, &agency.Exit{ExitCode: 143, Signal: "SIGTERM", EndedBy: agency.EndedByStop, EndedAt: time.Now()}
			})
			return nil
		}
		got, err := w.sup.StopRun(t.Context(), "fix-login")
		if err != nil || got.Attempt.State != agency.Killed {
			t.Errorf("got %v, %v", got, err)
		}
		if n := w.count(r.ID, agency.AttemptEnded); n != 1 {
			t.Errorf("%d ends", n)
		}
	})
}

// beat updates the attempt's heartbeat like a wrapper.
func (p *wrapper) beat(t *testing.T) {
	path := filepath.Join(p.dir, "heartbeat")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Error(err)
	}
}

// What could not be written when an attempt ended is written later, by the same daemon or by the
// next one.
func TestStateFileIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(w *world){
		"by the same daemon": func(*world) { time.Sleep(rescan + time.Second) },
		"by the next one":    func(w *world) { w.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p := w.started("fix-login")
				meta, state := filepath.Join(r.Dir, "meta.json"), filepath.Join(r.Dir, "state.json")
				if err := errors.Join(os.Rename(meta, meta+".away"), os.Mkdir(meta, 0o700)); err != nil { // it cannot be replaced
					t.Fatal(err)
				}
				p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
				if got := mustRead(t, state); !strings.Contains(got, "ACTIVE") {
					t.Fatalf("it was written: %s", got)
				}
				if err := errors.Join(os.Remove(meta), os.Rename(meta+".away", meta)); err != nil {
					t.Fatal(err)
				}
				later(w)
				synctest.Wait()
				if got := mustRead(t, state) + mustRead(t, meta); !strings.Contains(got, "DONE") || !strings.Contains(got, `"completed"`) {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// A live wrapper whose heartbeat stops shows nothing about its agent, until the heartbeat returns.
func TestSilentWrapper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		p.beat(t)
		is := func(after time.Duration, label agency.Label, summary string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != label || got.Summary != summary {
				t.Errorf("got %s %q, want %s %q", got.Label, got.Summary, label, summary)
			}
		}
		is(14*time.Second, agency.Active, "")
		is(2*time.Second, agency.Stalled, "(unknown: its wrapper does not answer)")
		w.restart()
		is(0, agency.Stalled, "(unknown: its wrapper does not answer)")
		p.beat(t)
		is(0, agency.Active, "")
		w.says(r, asking("Which one?"))
		is(time.Minute, agency.NeedsInput, "Which one?")
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Problem != "unknown: its wrapper does not answer" {
			t.Errorf("got the problem %q", got.Problem)
		}
	})
}

// state.json is for other programs.
func TestStateFile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then func(w *world, p *wrapper)
		want string
	}{
		"alive":  {func(*world, *wrapper) {}, "ACTIVE"},
		"quiet":  {func(*world, *wrapper) { time.Sleep(stallThreshold + rescan) }, "STALLED"},
		"silent": {func(_ *world, p *wrapper) { p.beat(t); time.Sleep(20 * time.Second) }, "STALLED"},
		"beating": {func(_ *world, p *wrapper) {
			for range 20 {
				p.beat(t)
				time.Sleep(5 * time.Second)
			}
		}, "ACTIVE"},
		"a beat after the end": {func(w *world, p *wrapper) {
			_ = p.end(agency.Exit{ExitCode: 3, EndedBy: agency.EndedByRunner})
			p.beat(t)
			time.Sleep(2 * rescan)
			w.restart()
		}, "CRASHED"},
		"completed": {func(_ *world, p *wrapper) { _ = p.end(agency.Exit{EndedBy: agency.EndedByRunner}) }, "DONE"},
		"failed":    {func(_ *world, p *wrapper) { _ = p.end(agency.Exit{ExitCode: 3, EndedBy: agency.EndedByRunner}) }, "CRASHED"},
		"killed":    {func(w *world, p *wrapper) { _, _ = w.sup.StopRun(context.Background(), string(p.id)) }, "CRASHED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				r, p := w.started("fix-login")
				test.then(w, p)
				synctest.Wait()
				var got struct {
					Status        string
					PID           *int
					SessionID     *string    `json:"session_id"`
					LastHeartbeat *time.Time `json:"last_heartbeat"`
					Error         *string
					Attempt       int
				}
				if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(r.Dir, "state.json"))), &got); err != nil {
					t.Fatal(err)
				}
				if got.Status != test.want || got.Attempt != 1 {
					t.Errorf("got %+v, want %s", got, test.want)
				}
				if alive := test.want == "ACTIVE" || test.want == "STALLED"; alive != (got.PID != nil && *got.PID == 101) {
					t.Errorf("pid: got %v", got.PID)
				}
				if crashed := test.want == "CRASHED"; crashed != (got.Error != nil) {
					t.Errorf("error: got %v", got.Error)
				}
			})
		})
	}
}
