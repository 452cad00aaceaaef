package tui

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
)

// Work lands from the list: its checks run, it is merged after a y, or it waits in the queue.
func TestLanding(t *testing.T) {
	t.Parallel()
	u := seated(t, 100, 30)
	u.presses("V")
	u.did("verify r_auth-fix")
	u.sees("auth-fix passed the checks")
	u.presses("j j V")
	u.did("verify r_flaky")
	u.sees("flaky: the checks did not pass")
	u.waits(readFor)
	u.presses("j M")
	u.sees("merge translate?")
	u.presses("enter")
	u.did()
	u.presses("M y")
	u.did("merge r_translate")
	u.sees("merged")
	u.presses("L")
	u.sees("queue translate to land?")
	u.presses("y")
	u.did("queue r_translate")
	u.sees("queued to land")
}

// Checks may take hours: the dashboard waits for them until they end.
func TestLongChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := seated(t, 100, 30)
		verify, merge := u.m.desk.Daemon.VerifyRun, u.m.desk.Daemon.MergeRun
		u.m.desk.Daemon.VerifyRun = func(ctx context.Context, req api.VerifyRunRequest) (api.VerifyRunResponse, error) {
			if err := passes(ctx, 2*time.Hour); err != nil {
				return api.VerifyRunResponse{}, err
			}
			return verify(ctx, req)
		}
		u.m.desk.Daemon.MergeRun = func(ctx context.Context, req api.MergeRunRequest) (api.MergeRunResponse, error) {
			if err := passes(ctx, 2*time.Hour); err != nil {
				return api.MergeRunResponse{}, err
			}
			return merge(ctx, req)
		}
		u.presses("V")
		u.sees("auth-fix passed the checks")
		u.presses("M y")
		u.sees("auth-fix merged")
		u.did("verify r_auth-fix", "merge r_auth-fix")
	})
}

// passes waits until a time has passed, and returns an error if ctx ends before that.
func passes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Actions are for the marked runs, or for the one at the cursor; what ends something is asked first.
func TestActions(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("x")
	u.sees("stop auth-fix?")
	u.presses("n")
	u.did()
	u.presses("x y")
	u.did("stop r_auth-fix")
	u.sees("auth-fix stopped")
	u.presses("space space")
	u.sees("2 marked")
	u.presses("s")
	u.types("go on")
	u.sees("send to 2 runs> go on")
	u.presses("enter")
	u.did("send r_auth-fix go on", "send r_docs go on")
	u.seesNot("marked")
	u.refuse = agency.Errorf(agency.CodeInvalidState, "it still runs").WithHint("x stops it")
	u.presses("g space space D y")
	u.did("remove r_auth-fix", "remove r_docs")
	u.sees("auth-fix: it still runs (x stops it)", "1 marked") // the one that failed
	u.presses("esc G b R y I enter")
	u.did("snapshot r_idle", "resume r_idle", "interrupt r_idle", "exec")
}

// What a filter hides is not acted on, and the marks that it hides are not lost.
func TestMarksBehindAFilter(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("space /")
	u.types("flaky")
	u.presses("enter")
	u.sees("1 marked, 1 of them hidden")
	u.presses("b")
	u.sees("the filter hides the marked runs: esc ends it")
	u.did()
	u.presses("space b")
	u.did("snapshot r_flaky")
	u.presses("esc")
	u.sees("1 marked", "+◐ auth-fix")
	u.presses("esc *")
	u.sees("6 marked")
	u.presses("* g b")
	u.seesNot("marked")
	u.did("snapshot r_auth-fix")
}

// An error stays until it is read, with its way out, on as many rows as it needs.
func TestErrorStays(t *testing.T) {
	t.Parallel()
	u := seated(t, 60, 24)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "the worktree has changes that no commit has").WithHint("agency snapshot take auth-fix, or agency attach auth-fix")
	u.presses("x y")
	u.sees("auth-fix: the worktree has changes", "or agency attach auth-fix)")
	u.tell(toastedMsg(u.m.notice.count))
	u.presses("j")
	u.sees("or agency attach auth-fix)")
	u.tell(toastedMsg(u.m.notice.count))
	u.presses("/") // what the user types hides it
	u.types("x")
	u.waits(readFor)
	u.types("y")
	u.presses("esc")
	u.sees("or agency attach auth-fix)")
	u.tell(againMsg{}) // which would say that another daemon answers
	u.sees("or agency attach auth-fix)")
	u.presses("j")
	u.seesNot("the worktree has changes")
}

// A notice that covers a part of a request keeps it from being allowed.
func TestNoticeCoversARequest(t *testing.T) {
	t.Parallel()
	u := sit(t, 80, 24, permission("long", strings.Repeat("echo one\n", 18)+"rm -rf build"))
	u.waits(deadKeys)
	u.presses("+")
	u.sees("rm -rf build")
	u.refuse = agency.Errorf(agency.CodeInvalidState, "the worktree has changes that no commit has, and it is said in so many words that they need two rows")
	u.presses("x y")
	u.seesNot("rm -rf build")
	u.asked = nil
	u.presses("a")
	u.did()
	u.waits(readFor)
	u.presses("j")
	u.sees("rm -rf build")
	u.presses("a")
	u.did("answer r_long toolu_long@" + stamp(-2*time.Minute) + " allow")
}

// A message that was typed, but not seen accepted, has not failed: sent again, the agent would get it
// twice. What the daemon refused is there again.
func TestSendWithoutConfirmation(t *testing.T) {
	t.Parallel()
	u := seated(t, 100, 24)
	send := u.m.desk.Daemon.SendInput
	u.m.desk.Daemon.SendInput = func(ctx context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
		_, err := send(ctx, req)
		return api.SendInputResponse{}, err
	}
	u.refuse = agency.Errorf(agency.CodeInvalidState, "its agent is at work")
	u.presses("s")
	u.types("hello")
	u.presses("enter")
	u.sees("auth-fix: its agent is at work")
	u.waits(readFor)
	u.presses("space space s")
	u.sees("send to 2 runs> hello")
	u.asked = nil
	u.presses("enter")
	u.did("send r_auth-fix hello", "send r_docs hello")
	u.sees("2 of 2: agency typed the message, but did not see the agent accept it")
	u.seesNot("marked")
	u.presses("s")
	u.seesNot("> hello")
}

// What the daemon did not do as asked is shown in place of the usual outcome.
func TestCaveats(t *testing.T) {
	t.Parallel()
	u := seated(t, 120, 24)
	d := &u.m.desk.Daemon
	u.presses("I")
	u.sees("auth-fix interrupted")
	d.InterruptRun = func(context.Context, api.RunRequest) (api.InterruptRunResponse, error) {
		return api.InterruptRunResponse{}, nil
	}
	u.presses("I")
	u.sees("auth-fix: interruption written, and not acknowledged yet")
	d.InterruptRun = func(context.Context, api.RunRequest) (api.InterruptRunResponse, error) {
		return api.InterruptRunResponse{Confirmed: true, Queued: 2}, nil
	}
	u.presses("I")
	u.sees("auth-fix: interrupted; messages that it begins with now: 2")
	d.TakeSnapshot = func(_ context.Context, req api.RunRequest) (api.TakeSnapshotResponse, error) {
		if req.Run == "r_docs" {
			return api.TakeSnapshotResponse{Snapshot: &agency.Saved{Nested: []string{"lib"}}}, nil
		}
		return api.TakeSnapshotResponse{}, nil
	}
	u.presses("b")
	u.sees("auth-fix: nothing to save")
	u.presses("j b")
	u.sees("docs: saved; lib is a repository of its own and is not saved")
	d.ResumeRun = func(_ context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
		if req.Mode != "" {
			return api.ResumeRunResponse{Continued: true, Warnings: []string{"it lacks TOKEN"}}, nil
		}
		return api.ResumeRunResponse{Note: "codex has no conversation to continue", Warnings: []string{"it lacks TOKEN"}}, nil
	}
	u.presses("R y")
	u.sees("docs: codex has no conversation to continue; it lacks TOKEN")
	u.presses("c enter")
	u.sees("docs: continues its conversation; it lacks TOKEN")
	d.MergeRun = func(context.Context, api.MergeRunRequest) (api.MergeRunResponse, error) {
		return api.MergeRunResponse{Warnings: []string{"its branch stays"}}, nil
	}
	u.presses("M y")
	u.sees("docs: merged; its branch stays")
	d.RemoveRun = func(context.Context, api.RemoveRunRequest) (api.RemoveRunResponse, error) {
		return api.RemoveRunResponse{Warnings: []string{"its container stays"}}, nil
	}
	u.presses("D y")
	u.sees("docs: removed; its container stays")
}

// A message that a run has not got is not lost by what succeeds meanwhile: another action, or the same
// message to another run.
func TestRefusedMessageIsKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 100, 24)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "it shows a dialog")
	u.presses("space space s")
	u.types("hello")
	u.presses("enter")
	u.did("send r_auth-fix hello", "send r_docs hello")
	u.sees("auth-fix: it shows a dialog", "1 marked")
	u.waits(readFor)
	u.presses("s")
	u.sees("send to auth-fix> hello")
	u.presses("esc b")
	u.did("snapshot r_auth-fix")
	u.presses("g s")
	u.sees("send to auth-fix> hello")
	u.presses("enter")
	u.did("send r_auth-fix hello")
	u.presses("s")
	u.seesNot("> hello")
}

// An action on several runs ends when the user wants it to. The reasons of failures are told.
func TestEndOfAnAction(t *testing.T) {
	t.Parallel()
	u := seated(t, 100, 24)
	u.presses("*")
	_, verify := u.m.Update(tea.KeyPressMsg{Code: 'V', Text: "V"})
	u.presses("esc")
	u.sees("it ends after the present run", "6 marked")
	u.do(verify)
	u.did("verify r_auth-fix")
	u.sees("ended after 1 of 6 runs", "5 marked")
	u.m.desk.Daemon.StopRun = func(_ context.Context, req api.RunRequest) (api.StopRunResponse, error) {
		return api.StopRunResponse{}, agency.Errorf(agency.CodeInvalidState, "%s cannot be stopped", req.Run)
	}
	u.presses("x y")
	u.sees("5 of 5 failed: docs: r_docs cannot be stopped; flaky: r_flaky cannot be stopped; translate", "and 2 more")
}

// While something is done, the first row shows what, and how far it is.
func TestProgress(t *testing.T) {
	t.Parallel()
	u := seated(t, 100, 24)
	u.presses("space space")
	_, verify := u.m.Update(tea.KeyPressMsg{Code: 'V', Text: "V"})
	u.sees("… verifying auth-fix (1 of 2)")
	u.do(verify)
	u.did("verify r_auth-fix", "verify r_docs")
	u.sees("2 runs passed the checks")
	u.seesNot("verifying")
}

// A conversation continues in another mode: the one that is offered, or what the user types.
func TestMode(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("c")
	u.sees("mode of auth-fix> protocol")
	u.presses("esc")
	u.did()
	u.presses("c enter")
	u.did(`mode r_auth-fix protocol "", idle true`)
	u.sees("auth-fix moved to another mode")
	u.presses("c ctrl+u")
	u.types("headless  now the changelog")
	u.presses("enter")
	u.did(`mode r_auth-fix headless "now the changelog", idle true`)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "its agent is at work")
	u.presses("c enter")
	u.sees("auth-fix: its agent is at work")
}

// A permission is allowed only where all of what it asks for is seen.
func TestAllowsWhatIsSeen(t *testing.T) {
	t.Parallel()
	asks := run("long", agency.NeedsInput, "may it?")
	asks.Request = &agency.Request{ID: "p1", Kind: agency.AsksPermission, At: noon, Tool: "Bash", Text: strings.Repeat("echo one && ", 60) + "rm -rf build"}
	u := sit(t, 80, 24, asks)
	u.now = u.now.Add(time.Second)
	u.presses("a")
	u.sees("…", "not all of the request is seen: + shows more")
	u.did()
	u.presses("_ a")
	u.sees("not all of the request is seen")
	u.did()
	u.presses("+")
	u.sees("rm -rf build")
	u.presses("a")
	u.did("answer r_long p1@" + stamp(0) + " allow")
	asks.Request = &agency.Request{ID: "p2", Kind: agency.AsksPermission, At: noon, Tool: "Bash", Text: strings.Repeat("x", agency.EvidenceText-3) + agency.CutMark}
	u.changes(asks) // nobody knows the rest of it
	u.now = u.now.Add(time.Second)
	u.presses("a")
	u.sees("not all of the request is seen")
	u.did()
}
