package menu_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/menu"
	"agency/internal/tui/page"
)

// user is a user of the menu, with a daemon that remembers what it was asked to do.
type user struct {
	t       *testing.T
	runs    []api.Run
	daemon  page.Daemon
	asked   []string
	refuse  error // the answer to the next action
	printed string
}

func sit(t *testing.T, runs ...api.Run) *user {
	t.Helper()
	u := &user{t: t, runs: runs}
	u.daemon = page.Daemon{
		Follow: func(context.Context, func(agency.RunID), func()) error { return nil },
		ListRuns: func(_ context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
			return api.ListRunsResponse{Runs: slices.DeleteFunc(slices.Clone(u.runs), func(r api.Run) bool {
				return len(req.RunIDs) > 0 && !slices.Contains(req.RunIDs, r.ID)
			})}, nil
		},
		AnswerRun: func(_ context.Context, req api.AnswerRunRequest) (api.AnswerRunResponse, error) {
			return api.AnswerRunResponse{Confirmed: true}, u.record("answer %s %s %s%s", req.Run, strings.Split(req.PromptID, "@")[0], req.Decision, req.Text)
		},
		ShowScreen: func(context.Context, api.ShowScreenRequest) (api.ShowScreenResponse, error) {
			return api.ShowScreenResponse{Screen: agency.Screen{Rows: [][]agency.StyledText{{{Text: "one "}, {Text: "row"}}, {{Text: "1. Short"}}, {{Text: "2. Long"}}}}}, nil
		},
		SendInput: func(_ context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
			return api.SendInputResponse{Confirmed: true}, u.record("send %s %s", req.Run, req.Text)
		},
		StopRun: func(_ context.Context, req api.RunRequest) (api.StopRunResponse, error) {
			return api.StopRunResponse{}, u.record("stop %s", req.Run)
		},
		InterruptRun: func(_ context.Context, req api.RunRequest) (api.InterruptRunResponse, error) {
			return api.InterruptRunResponse{}, u.record("interrupt %s", req.Run)
		},
		RemoveRun: func(_ context.Context, req api.RemoveRunRequest) (api.RemoveRunResponse, error) {
			return api.RemoveRunResponse{}, u.record("remove %s", req.Run)
		},
		MergeRun: func(_ context.Context, req api.MergeRunRequest) (api.MergeRunResponse, error) {
			return api.MergeRunResponse{}, u.record("merge %s", req.Run)
		},
		VerifyRun: func(_ context.Context, req api.VerifyRunRequest) (api.VerifyRunResponse, error) {
			return api.VerifyRunResponse{}, u.record("verify %s", req.Run)
		},
		CreateRun: func(_ context.Context, req api.CreateRunRequest) (api.CreateRunResponse, error) {
			err := u.record("create %q in %s as %q by %s", req.Spec.Prompt.Text, req.Spec.Repo, req.Spec.Name, req.Spec.Runner.Kind)
			return api.CreateRunResponse{Run: api.Run{Name: req.Spec.Name}}, err
		},
		PlanSession: func(_ context.Context, req api.PlanSessionRequest) (api.PlanSessionResponse, error) {
			resp := api.PlanSessionResponse{Plan: agency.Plan{Name: "release", MaxParallel: 2, Agents: make([]agency.PlanAgent, 2)}, Waves: [][]string{{"schema"}, {"api"}}, Warnings: []string{"no effect"}}
			if strings.HasSuffix(req.Plan.Path, "bad.yaml") {
				resp.Refused = &api.Problem{Code: agency.CodeTrustRequired, Message: "its setup is not trusted", Hint: "agency init"}
			}
			return resp, nil
		},
		StartSession: func(_ context.Context, req api.StartSessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{Session: api.Session{ID: "s1", Name: "release"}}, u.record("start %s", req.Plan.Path)
		},
	}
	u.daemonOfPages()
	return u
}

// daemonOfPages adds what the other lists ask for.
func (u *user) daemonOfPages() {
	d := &u.daemon
	d.DiffRun = func(_ context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{List: []agency.FileDiff{{Status: "M", Path: "login.go", Added: 1, Deleted: 1}}}
		if req.File != "" {
			resp.Patch = "--- a/login.go\n+++ b/login.go\n@@ -3,2 +3,2 @@ func Login() {\n same\n-old\n+\x1b[31mnew\n"
		}
		return resp, nil
	}
	d.AddComments = func(_ context.Context, req api.AddCommentsRequest) (api.CommentsResponse, error) {
		return api.CommentsResponse{}, u.record("comment %s:%d %s %t", req.Comments[0].File, req.Comments[0].Line, req.Comments[0].Text, req.Comments[0].Old)
	}
	d.SendComments = func(_ context.Context, req api.SendCommentsRequest) (api.SendCommentsResponse, error) {
		return api.SendCommentsResponse{Confirmed: true}, u.record("send comments %s", req.Run)
	}
	d.ListSessions = func(context.Context, api.ListSessionsRequest) (api.ListSessionsResponse, error) {
		return api.ListSessionsResponse{Sessions: []api.Session{{ID: "s1", Name: "release", Status: agency.SessionRunning, Summary: agency.Counts{Complete: 1, Queued: 1}}}}, nil
	}
	d.ShowSession = func(_ context.Context, req api.SessionRequest) (api.ShowSessionResponse, error) {
		return api.ShowSessionResponse{Session: api.Session{ID: agency.SessionID(req.Session), Name: "release", Status: agency.SessionRunning}, Agents: []api.SessionAgent{
			{ID: "schema", Status: agency.AgentComplete, RunID: "r_1"}, {ID: "api", Status: agency.AgentQueued, After: []string{"schema"}, WaitReason: "waits for schema"},
		}}, nil
	}
	d.PauseSession = func(_ context.Context, req api.SessionRequest) (api.SessionResponse, error) {
		return api.SessionResponse{}, u.record("pause %s", req.Session)
	}
	d.ListQueue = func(context.Context, api.ListQueueRequest) (api.QueueResponse, error) {
		return api.QueueResponse{Entries: []api.QueueItem{{Entry: agency.QueueEntry{Run: "search", RunID: "r_2", Target: "main", State: agency.EntryHeld}, Why: "it is held by hand"}}, Queues: []agency.Queue{{Target: "main", Paused: true}}}, nil
	}
	d.ChangeQueue = func(_ context.Context, req api.ChangeQueueRequest) (api.QueueResponse, error) {
		return api.QueueResponse{}, u.record("queue %s %s", req.Change, req.Runs)
	}
	d.PauseQueue = func(_ context.Context, req api.PauseQueueRequest) (api.QueueResponse, error) {
		return api.QueueResponse{}, u.record("queue of %s in %s resumed %t", req.Into, req.Dir, req.Resume)
	}
	d.ListAlerts = func(context.Context, api.ListAlertsRequest) (api.ListAlertsResponse, error) {
		return api.ListAlertsResponse{Alerts: []api.Alert{{ID: "a1", Kind: agency.AlertNeedsInput, RunID: "r_1", RunName: "auth-fix", Payload: []byte(`{"prompt_preview": "may it?"}`)}}}, nil
	}
	d.ListMessages = func(context.Context, api.ListMessagesRequest) (api.MessagesResponse, error) {
		return api.MessagesResponse{Messages: []agency.Message{{ID: "m1", From: "r_2", Payload: []byte(`{"text": "which way?"}`)}}}, nil
	}
	d.AckAlerts = func(_ context.Context, req api.AckAlertRequest) (api.AlertsResponse, error) {
		return api.AlertsResponse{}, u.record("ack %s", req.Alerts)
	}
	d.AckMessages = func(_ context.Context, req api.AckMessagesRequest) (api.AckMessagesResponse, error) {
		return api.AckMessagesResponse{}, u.record("ack %s", req.Messages)
	}
	d.SnoozeAlerts = func(_ context.Context, req api.SnoozeAlertRequest) (api.AlertsResponse, error) {
		return api.AlertsResponse{}, u.record("snooze %s %d", req.Alerts, req.ForMS)
	}
}

func (u *user) record(format string, args ...any) error {
	u.asked = append(u.asked, fmt.Sprintf(format, args...))
	err := u.refuse
	u.refuse = nil
	return err
}

// types runs the menu with lines that the user types, divided by spaces: _ is a space, . an empty line.
func (u *user) types(lines string) {
	u.t.Helper()
	typed := strings.Builder{}
	for line := range strings.FieldsSeq(lines) {
		typed.WriteString(strings.TrimSuffix(strings.ReplaceAll(line, "_", " "), ".") + "\n")
	}
	var out strings.Builder
	u.asked = nil
	u.reads(strings.NewReader(typed.String()), &out)
	u.printed = out.String()
	if strings.Contains(u.printed, "\x1b") {
		u.t.Errorf("an escape sequence is in %q", u.printed)
	}
}

func (u *user) reads(in io.Reader, out io.Writer) {
	u.t.Helper()
	err := menu.Run(u.t.Context(), menu.Options{
		In: in, Out: out, Dir: "/home/me/web", Daemon: u.daemon, Command: func(args ...string) *exec.Cmd { return exec.Command("true", args...) },
		Runner: func(name string) (agency.RunnerKind, string) { return agency.RunnerKind(name), "" },
	})
	if err != nil {
		u.t.Fatal(err)
	}
}

// hears checks that texts were printed, in their order.
func (u *user) hears(texts ...string) {
	u.t.Helper()
	rest := u.printed
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			u.t.Fatalf("%q does not follow in\n%s", text, u.printed)
		}
		rest = after
	}
}

// did checks what the daemon was asked to do.
func (u *user) did(want ...string) {
	u.t.Helper()
	if !slices.Equal(want, u.asked) {
		u.t.Errorf("asked %q, want %q", u.asked, want)
	}
}

// team is a run that asks for permission, and one that works.
func team() []api.Run {
	return []api.Run{
		{ID: "r_2", Name: "search", Status: agency.Working, State: agency.Running, Summary: "editing", Repo: "/home/me/web"},
		{
			ID: "r_1", Name: "auth-fix", Status: agency.NeedsInput, State: agency.Running, Summary: "may it? \x1b[2Jevil", Repo: "/home/me/web",
			Request: &agency.Request{ID: "p1", Kind: agency.AsksPermission, Tool: "Bash", Text: "npm test"},
		},
	}
}

// Everything is chosen by a number, what needs the user comes first, and no command of an agent
// reaches the terminal.
func TestMenu(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("1 1 2 1 nonsense 99 b q")
	u.hears("1. auth-fix, needs input: may it? evil\n2. search, working: editing\n", "it asks: Bash npm test\n1. allow it once\n2. reject it\n", "answered\n",
		"1. read its screen", "one row\n1. Short", `"nonsense" is not a number of the list`, `"99" is not a number`)
	u.did("answer r_1 p1 allow")
	u.refuse = agency.Errorf(agency.CodeInvalidState, "it has ended").WithHint("agency rm search")
	u.types("2 9 n 2 9 y")
	u.hears("are you sure? y/n", "are you sure? y/n", "error: it has ended\nagency rm search\n")
	u.did("stop r_2")
	u.types("/auth / q")
	u.hears("1. auth-fix, needs input", "number of a run", "1. auth-fix, needs input", "2. search")
	u.runs[0].Mode = agency.ModeProtocol // in which agency interrupts
	u.types("2 10 2 8 q")
	u.did("interrupt r_2", "send r_2 q")
}

// A question is answered by the number of an option, or in the user's own words. What agency knows
// only the beginning of is not allowed.
func TestMenuQuestion(t *testing.T) {
	t.Parallel()
	runs := team()
	runs[1].Request = &agency.Request{ID: "q1", Kind: agency.AsksQuestion, Text: "Which tone?"}
	u := sit(t, runs...)
	u.types("1 2 1 3 as_you_like")
	u.hears("1. answer: Short\n2. answer: Long\n3. reply in your own words\n4. reject it\n")
	u.did("answer r_1 q1 Long", "answer r_1 q1 as you like")
	u.runs[1].Request = &agency.Request{ID: "p2", Kind: agency.AsksPermission, Tool: "Bash", Text: strings.Repeat("x", agency.EvidenceText-3) + agency.CutMark}
	u.types("1 1")
	u.hears("agency keeps only the beginning of what it asks for", "1. reject it")
	u.did("answer r_1 p2 deny")
}

// An ended run is resumed and removed, and not stopped; its work lands.
func TestMenuEnded(t *testing.T) {
	t.Parallel()
	u := sit(t, api.Run{ID: "r_3", Name: "idle", Status: agency.LabelCompleted, State: agency.Completed})
	u.types("1 8 y 1 9 1 10 y")
	u.did("remove r_3", "verify r_3", "merge r_3")
	u.hears("7. resume it", "idle is removed", "the checks did not pass: agency verify idle", "idle is merged")
	if strings.Contains(u.printed, "stop it") || strings.Contains(u.printed, "attach") {
		t.Errorf("an ended run can be stopped:\n%s", u.printed)
	}
}

// A file is read line by line, with the numbers by which a user comments.
func TestMenuDiff(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("2 2 1 4_why_new? 1 -4_keep_it 1 s b b")
	u.hears("1. M login.go, +1 -1 lines", "at line 3 func Login() {\n3: same\ndeleted -4: old\nadded 4: new\n", "comment on line 4 of login.go kept", "the comments are sent")
	u.did("comment login.go:4 why new? false", "comment login.go:4 keep it true", "send comments r_2")
}

// A run is started from a task of several lines; what is said of it can be changed before.
func TestMenuNewRun(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.refuse = agency.Errorf(agency.CodeNotGitRepo, "no repository")
	u.types("n 1 fix_it all_of_it . 3 fixer 5 codex 1 1")
	u.hears("2. repository, a folder in it: /home/me/web\n3. name: from the task", "error: no repository", "fixer started", "1. auth-fix")
	u.did(`create "fix it\nall of it" in /home/me/web as "fixer" by codex`, `create "fix it\nall of it" in /home/me/web as "fixer" by codex`)
	u.types("n 2 bad.yaml n 2 plan.yaml y")
	u.hears("error: it cannot start: its setup is not trusted\nagency init", "plan release, 2 agents, at most 2 at once\nwave 1: schema\nwave 2: api\nwarning: no effect", "release started")
	u.did("start /home/me/web/plan.yaml")
}

// Sessions, landing queues and the inbox are lists of the same kind.
func TestMenuLists(t *testing.T) {
	t.Parallel()
	u := sit(t, team()...)
	u.types("s 1 2 1 1 b b")
	u.hears("1. release, running", "schema, complete\napi, queued; waits for schema\n1. the run of schema\n2. pause", "release is paused", "auth-fix, needs input")
	u.did("pause s1")
	u.types("l 1 2 1 5 1 1 b b")
	u.hears("1. search to main, held: it is held by hand", "2. let it continue", "search continues", "the queue of main continues", "search, working")
	u.did("queue resume [r_2]", "queue of main in /home/me/web resumed true")
	u.types("i 1 1 1 2 2 1 b")
	u.hears("1. auth-fix asks: may it?\n2. search wrote: which way?", "command: agency answer auth-fix", "acknowledged", "snoozed for an hour", "which way?")
	u.did("ack [a1]", "snooze [a1] 3600000", "ack [m1]")
}

// The end of the input ends the menu, wherever it is.
func TestMenuEnd(t *testing.T) {
	t.Parallel()
	lines := strings.Fields("1 7 . n 1 task . 2 i 1 s 1 l 1")
	for i := range lines {
		u := sit(t, team()...)
		u.types(strings.Join(lines[:i], " "))
	}
	u := sit(t, team()...)
	u.reads(strings.NewReader("1\n1"), io.Discard) // the rest of the line did not come
	u.did()
}
