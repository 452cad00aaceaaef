package menu_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// Everything is chosen by a number, what needs the user comes first, and no command of an agent
// reaches the terminal.
func TestMenu(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("1 1 2 1 nonsense 99 b q")
	u.hears("1. auth-fix, needs input: may it? evil\n2. search, working: editing\n", "it asks: Bash: npm test\n1. allow it once\n2. reject it\n", "auth-fix is answered\n",
		"search, working: editing\n1. read its screen", "one row\n1. Short", `"nonsense" is not a number of the list`, `"99" is not a number`, "number of a run")
	u.did("answer r_1 p1 allow")
}

// The user stays with a run, whose actions keep their numbers, and is asked before what cannot be
// taken back. An error comes with its way out, and without its code.
func TestMenuStays(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "it has ended").WithHint("agency rm search")
	u.types("2 11 n 11 Y 7 q 1 b 1")
	u.hears("11. stop it\n", "stop search? the worktree stays y/n\nnothing was done\n", "stopping search\nerror: it has ended\nagency rm search\n",
		"the message, an empty line for none\nsearch got the message\n", "one row", "number of a run", "auth-fix, needs input")
	u.did("stop r_2", "send r_2 q")
	u.misses("E_")
}

// A run that changed is told again before its numbers mean something else.
func TestMenuTellsAgain(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.daemon.StopRun = func(context.Context, api.RunRequest) (api.StopRunResponse, error) {
		u.runs[0].State, u.runs[0].Status = agency.Killed, agency.LabelKilled
		return api.StopRunResponse{}, nil
	}
	u.types("2 11 y r b")
	u.hears("11. stop it", "search is stopped", "search, stopped\n1. read its screen", "6. resume it\n7. remove it", "search, stopped\n1. read", "number of a run")
	u.runs = u.runs[1:]
	u.types("1 b r")
	u.misses("search")
}

// ? says what the letters do.
func TestMenuHelp(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("? 2 ? b i ? b")
	u.hears("?: help\nn: start a run", "s: the sessions", "q: leave", "b: back to where", "number of an alert", "b: back to where")
}

// A filter shows some of the runs, and with the numbers of several, one action is done with each.
func TestMenuSeveral(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "it has ended").WithHint("agency show search")
	u.types("/auth / 2_1 1_2 1 y 1")
	u.hears("1 of 2 runs match the filter auth; / ends it\n1. auth-fix", "number of a run", "2. search", "search, auth-fix\n1. stop it\n2. save its work in a snapshot\nnumber of", `"1 2" is not a number of the list`,
		"stop search, auth-fix? the worktree stays y/n\nstopping search, auth-fix\nerror: search: it has ended\nagency show search\nauth-fix is stopped\nnumber of a run", "auth-fix, needs input")
	u.did("stop r_2", "stop r_1")
}

// What can only be refused is not offered.
func TestMenuOffersWhatWorks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		run     api.Run
		has, no string
	}{
		{api.Run{Status: agency.Working, State: agency.Running}, "attach, send, stop, queue it", "interrupt, merge, resume, remove, mode, reply, snooze"},
		{api.Run{Status: agency.Working, State: agency.Running, Mode: agency.ModeProtocol}, "interrupt", "merge"},
		{api.Run{Status: agency.LabelQueued, State: agency.Queued}, "stop", "attach, send, merge, queue it, snapshot"},
		{api.Run{Status: agency.ReadyForReview, State: agency.Completed, Conversation: "c"}, "merge, resume, remove, mode, snooze", "attach, send, stop"},
		{api.Run{Status: agency.Merged, State: agency.Completed}, "what it changed, remove", "merge it, resume, queue it, checks"},
		{api.Run{Status: agency.LabelRemoving, State: agency.Completed}, "log", "merge, resume, remove it, snapshot"},
		{api.Run{Status: agency.NeedsInput, State: agency.Completed}, "resume", "reply, attach"},
	} {
		tt.run.ID, tt.run.Name = "r_1", "one"
		u := sit(t, tt.run)
		u.types("1")
		u.hears("one, " + tt.run.Status.String())
		for has := range strings.SplitSeq(tt.has, ", ") {
			u.hears(has)
		}
		u.misses(strings.Split(tt.no, ", ")...)
	}
}

// A run continues in another mode, when its agent is at rest.
func TestMenuMode(t *testing.T) {
	t.Parallel()
	u := sit(t, api.Run{ID: "r_1", Name: "idle", Status: agency.Idle, State: agency.Running, Mode: agency.ModeTerminal, Conversation: "c"})
	u.types("1 14 2 . 14 1 . 14 1 all_of_it")
	u.hears("14. continue it in another mode", "1. headless\n2. protocol\n", "idle continues in the mode protocol", "needs a task; nothing was done", "idle continues in the mode headless")
	u.did("resume r_1 protocol ", "resume r_1 headless all of it")
}

// A long text is read a part at a time, the end of a log first.
func TestMenuLog(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("2 3 . 9 . 3 b 1")
	u.hears("line 31\n", "line 50\n30 earlier rows, an empty line: read on, b: back", "line 11\n", "line 30\n10 earlier rows", `"9" is not`, "line 10\nnumber of an action", "line 50", "number of an action", "one row")
}

// A run that begins to need the user is told at once, while the user types nothing.
func TestMenuNews(t *testing.T) {
	t.Parallel()
	u := sit(t, team()[:1]...)
	typed, keys := io.Pipe()
	var said strings.Builder
	u.daemon.Follow = func(ctx context.Context, changed func(page.Change), _ func()) error {
		changed(page.Change{Run: "r_1"})
		<-ctx.Done()
		return nil
	}
	lists, listRuns := 0, u.daemon.ListRuns
	u.daemon.ListRuns = func(ctx context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
		if lists++; lists > 1 { // it comes after the first list
			u.runs = team()
		}
		return listRuns(ctx, req)
	}
	u.reads(typed, writer(func(p []byte) (int, error) {
		if strings.HasPrefix(string(p), "news: auth-fix, needs input: may it? evil") {
			go func() { _ = keys.Close() }()
		}
		return said.Write(p)
	}))
	if strings.Count(said.String(), "auth-fix") != 1 {
		t.Errorf("it is told more than once:\n%s", said.String())
	}
}

// Nothing is read of the terminal that another program has.
func TestMenuLeavesTheTerminalToAttach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := sit(t, team()...)
		lines, reads := []string{"2\n", "6\n", "q\n"}, 0
		u.attaches = func() {
			if synctest.Wait(); reads != 2 {
				t.Errorf("%d lines were read", reads)
			}
		}
		u.reads(reader(func(p []byte) (int, error) {
			if reads == len(lines) {
				return 0, io.EOF
			}
			reads++
			return copy(p, lines[reads-1]), nil
		}), io.Discard)
	})
}

// The end of the input ends the menu, wherever it is.
func TestMenuEnd(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"1 3 . b 1 1 x b", "n 1 task . 3 name 1", "n 2 plan.yaml 1 y 1 b", "i 1 2", "s 1 4 3 y", "l 1 2", "2 8 1 4_why x_1 y s y", "2 3 . . 11 y", "1_2 1 y"} {
		lines := strings.Fields(way)
		for i := range lines {
			u := sit(t, team()...)
			u.types(strings.Join(lines[:i], " "))
		}
	}
	u := sit(t, team()...)
	u.reads(strings.NewReader("1\n1"), io.Discard) // the rest of the line did not come
	u.did()
}
