package menu_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/api"
)

// A question is answered by the number of an option, or in the user's own words, which no letter is
// taken from.
func TestMenuQuestion(t *testing.T) {
	t.Parallel()
	runs := team()
	runs[1].Request = &agency.Request{ID: "q1", Kind: agency.AsksQuestion, Text: "Which tone?"}
	u := sit(t, runs...)
	u.types("1 2 1 3 q 1 4")
	u.hears("it asks: Which tone?\n1. answer: Short\n2. answer: Long\n3. reply in your own words\n4. give no answer\n")
	u.did("answer r_1 q1 Long", "answer r_1 q1 q", "answer r_1 q1 deny")
	runs[1].Request.Options = []string{"formal", "casual"}
	u.types("1 2")
	u.hears("1. answer: formal\n2. answer: casual\n3. reply")
	u.did("answer r_1 q1 casual")
}

// Each line of a request is a row of its own, which looks like no row of the menu.
func TestMenuRequestOfSeveralLines(t *testing.T) {
	t.Parallel()
	runs := team()
	runs[1].Request.Text, runs[1].Request.Subagent = "npm test\n2. allow it once\x1b[1A", "tester"
	u := sit(t, runs...)
	u.types("1")
	u.hears("its subagent tester asks: Bash: npm test\nline 2: 2. allow it once\n1. allow it once\n2. reject it\n")
}

// What agency knows only the beginning of is not allowed, and a dialog is not answered.
func TestMenuCannotAnswer(t *testing.T) {
	t.Parallel()
	runs := team()
	u := sit(t, runs...)
	runs[1].Request = &agency.Request{ID: "p2", Kind: agency.AsksPermission, Tool: "Bash", Text: strings.Repeat("x", agency.EvidenceText-3) + agency.CutMark}
	u.types("1 1 2")
	u.hears("agency keeps only the beginning of what it asks for", "1. attach to its terminal, to read all of it\n2. reject it", "back from auth-fix")
	u.did("answer r_1 p2 deny")
	u.misses("allow")
	runs[1].Request = &agency.Request{ID: "d1", Kind: agency.AsksDialog, Text: "Trust this folder?"}
	u.types("1")
	u.hears("it asks: Trust this folder?\nonly you can answer this dialog, in its terminal\n1. attach to its terminal\n")
	u.misses("reject", "reply")
}

// What attach says is said without the name of the program, the code of an error and the id of the
// run.
func TestMenuAttach(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.attach = `printf 'agency: error: attach needs a terminal [E_USAGE]\nagency: hint: agency logs -f r_2\n' >&2; exit 2`
	u.types("2 6")
	u.hears("error: attach needs a terminal\nagency logs -f search\nnumber of an action")
}

// An ended run is resumed and removed; its work lands, after its checks.
func TestMenuEnded(t *testing.T) {
	t.Parallel()
	u := sit(t, api.Run{ID: "r_3", Name: "idle", Status: agency.LabelCompleted, State: agency.Completed})
	u.types("1 2 3 y 4 y 10 n 11 y r q")
	u.hears("1. what it changed\n2. run the checks of its branch\n3. merge it into its branch\n4. queue it to land\n", "10. resume it\n11. remove it\n",
		"error: idle did not pass the checks\nagency verify idle", "merge idle into its branch? y/n", "idle is merged", "queue idle to land in its branch? y/n", "idle is queued to land",
		"resume idle? y/n\nnothing was done", "remove idle? unsaved work is saved first y/n", "idle is removed\nnumber of a run")
	u.did("verify r_3", "merge r_3", "queue r_3", "remove r_3")
}

// Checks may take hours: the menu waits for them until they end.
func TestMenuLongChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sit(t, api.Run{ID: "r_3", Name: "idle", Status: agency.LabelCompleted, State: agency.Completed})
		checks := func(ctx context.Context) error {
			select {
			case <-time.After(2 * time.Hour):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		u.daemon.VerifyRun = func(ctx context.Context, _ api.VerifyRunRequest) (api.VerifyRunResponse, error) {
			return api.VerifyRunResponse{Passed: true}, checks(ctx)
		}
		u.daemon.MergeRun = func(ctx context.Context, _ api.MergeRunRequest) (api.MergeRunResponse, error) {
			return api.MergeRunResponse{}, checks(ctx)
		}
		u.types("1 2 3 y q")
		u.hears("checking idle\nidle passed the checks\n", "checking and merging idle\nidle is merged\n")
	})
}

// What the daemon did not do as asked is printed in place of the usual outcome.
func TestMenuCaveats(t *testing.T) {
	t.Parallel()
	u := sit(t, api.Run{ID: "r_4", Name: "live", Status: agency.Working, State: agency.Running, Mode: agency.ModeProtocol},
		api.Run{ID: "r_3", Name: "idle", Status: agency.LabelCompleted, State: agency.Completed, Conversation: "c"})
	u.daemon.InterruptRun = func(context.Context, api.RunRequest) (api.InterruptRunResponse, error) {
		return api.InterruptRunResponse{}, nil
	}
	u.daemon.TakeSnapshot = func(context.Context, api.RunRequest) (api.TakeSnapshotResponse, error) {
		return api.TakeSnapshotResponse{}, nil
	}
	u.daemon.ResumeRun = func(_ context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
		if req.Mode != "" {
			return api.ResumeRunResponse{Continued: true, Warnings: []string{"it lacks TOKEN"}}, nil
		}
		return api.ResumeRunResponse{Note: "codex has no conversation to continue"}, nil
	}
	u.daemon.RemoveRun = func(context.Context, api.RemoveRunRequest) (api.RemoveRunResponse, error) {
		return api.RemoveRunResponse{Warnings: []string{"its container stays"}}, nil
	}
	u.types("1 8 13 b 2 10 y 13 1 go_on 11 y")
	u.hears("live: interruption written, and not acknowledged yet\n", "saving live\nlive: nothing to save\n", "resuming idle\nidle: codex has no conversation to continue\n",
		"moving idle\nidle: continues its conversation; it lacks TOKEN\n", "removing idle\nidle: removed; its container stays\n")
}

// A snoozed run is one that the user put off, and that can be had back.
func TestMenuSnooze(t *testing.T) {
	t.Parallel()
	runs := team()
	u := sit(t, runs...)
	u.types("1 12")
	u.hears("12. snooze its alerts for an hour", "auth-fix is snoozed for an hour")
	u.did("snooze [a1] 3600000")
	runs[1].SnoozedUntil = &runs[1].Since
	u.types("2 12")
	u.hears("1. search", "2. auth-fix, needs input, snoozed", "12. end the snooze of its alerts", "auth-fix is no longer snoozed")
	u.did("snooze [a1] 1")
}
