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

	comments []agency.LineComment
	sessions []api.Session
	agents   []api.SessionAgent
	entries  []agency.QueueEntry
	patch    string
	attach   string // the script in place of agency attach
	attaches func() // is called before it
	based    string // what the work was compared with last
	reviewed bool   // the file of the difference
}

type (
	reader func(p []byte) (int, error)
	writer func(p []byte) (int, error)
)

func (r reader) Read(p []byte) (int, error)  { return r(p) }
func (w writer) Write(p []byte) (int, error) { return w(p) }

func sit(t *testing.T, runs ...api.Run) *user {
	t.Helper()
	u := &user{t: t, runs: runs, patch: "--- a/login.go\n+++ b/login.go\n@@ -3,2 +3,2 @@ func Login() {\n \tsame\n-old\n+\x1b[31mnew\n"}
	u.daemon = page.Daemon{
		Follow: func(context.Context, func(page.Change), func()) error { return nil },
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
		StopRun: func(_ context.Context, req api.RunRequest) (api.StopRunResponse, error) {
			return api.StopRunResponse{}, u.record("stop %s", req.Run)
		},
		InterruptRun: func(_ context.Context, req api.RunRequest) (api.InterruptRunResponse, error) {
			return api.InterruptRunResponse{Confirmed: true}, u.record("interrupt %s", req.Run)
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
		AddToQueue: func(_ context.Context, req api.AddToQueueRequest) (api.QueueResponse, error) {
			return api.QueueResponse{}, u.record("queue %s", req.Runs[0])
		},
		CreateRun: func(_ context.Context, req api.CreateRunRequest) (api.CreateRunResponse, error) {
			err := u.record("create %q in %s as %q by %s", req.Spec.Prompt.Text, req.Spec.Repo, req.Spec.Name, req.Spec.Runner.Kind)
			return api.CreateRunResponse{Run: api.Run{Name: req.Spec.Name}}, err
		},
		SendInput: func(_ context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
			return api.SendInputResponse{Confirmed: true}, u.record("send %s %s", req.Run, req.Text)
		},
		ResumeRun: func(_ context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
			return api.ResumeRunResponse{Continued: true}, u.record("resume %s %s %s", req.Run, req.Mode, req.Prompt)
		},
		ShowOutput: func(context.Context, api.ShowOutputRequest) (api.ShowOutputResponse, error) {
			lines := make([]string, 50)
			for i := range lines {
				lines[i] = fmt.Sprintf("line %d", i+1)
			}
			return api.ShowOutputResponse{Lines: lines}, nil
		},
		PlanSession: func(_ context.Context, req api.PlanSessionRequest) (api.PlanSessionResponse, error) {
			plan := agency.Plan{Name: "release", MaxParallel: 2, OnFailure: agency.StopOnFailure, Agents: []agency.PlanAgent{{ID: "schema"}, {ID: "api", After: []string{"schema"}}}}
			resp := api.PlanSessionResponse{Plan: plan, Agents: []api.PlannedAgent{{ID: "schema", Runner: "codex"}}, Waves: [][]string{{"schema"}, {"api"}}, Warnings: []string{"no effect"}}
			if strings.HasSuffix(req.Plan.Path, "bad.yaml") {
				resp.Refused = &api.Problem{Code: agency.CodeTrustRequired, Message: "its setup is not trusted", Hint: "agency init"}
			}
			return resp, nil
		},
		StartSession: func(_ context.Context, req api.StartSessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{Session: api.Session{ID: "s1", Name: "release"}}, u.record("start %s as %s in %s", req.Plan.Path, req.Plan.Name, req.Dir)
		},
	}
	u.daemonOfPages()
	return u
}

// daemonOfPages adds what the other lists ask for.
func (u *user) daemonOfPages() {
	d := &u.daemon
	d.DiffRun = func(_ context.Context, req api.DiffRunRequest) (api.DiffRunResponse, error) {
		resp := api.DiffRunResponse{List: []agency.FileDiff{{Status: "M", Path: "login.go", Added: 1, Deleted: 1, Object: "o1", Reviewed: u.reviewed}}}
		if req.File != "" {
			resp.Patch = u.patch
		}
		u.based = req.Base
		return resp, nil
	}
	d.AddComments = func(_ context.Context, req api.AddCommentsRequest) (api.CommentsResponse, error) {
		return api.CommentsResponse{}, u.record("comment %s:%d %s, deleted %t", req.Comments[0].File, req.Comments[0].Line, req.Comments[0].Text, req.Comments[0].Old)
	}
	d.DiscardComments = func(_ context.Context, req api.DiscardCommentsRequest) (api.CommentsResponse, error) {
		return api.CommentsResponse{}, u.record("discard %d", req.Numbers)
	}
	d.ReviewRun = func(context.Context, api.ReviewRunRequest) (api.ReviewRunResponse, error) {
		return api.ReviewRunResponse{Comments: u.comments}, nil
	}
	d.MarkReviewed = func(_ context.Context, req api.MarkReviewedRequest) (api.RunResponse, error) {
		u.reviewed = !req.Undo
		return api.RunResponse{}, u.record("mark %v", req.Files)
	}
	d.SendComments = func(_ context.Context, req api.SendCommentsRequest) (api.SendCommentsResponse, error) {
		return api.SendCommentsResponse{Confirmed: true}, u.record("send comments %s", req.Run)
	}
	u.sessions = []api.Session{{ID: "s1", Name: "release", Status: agency.SessionRunning, Summary: agency.Counts{Total: 2, Complete: 1, Queued: 1}}}
	u.agents = []api.SessionAgent{
		{ID: "schema", Status: agency.AgentComplete, RunID: "r_1"}, {ID: "api", Status: agency.AgentQueued, After: []string{"schema"}, WaitReason: "waits for schema"},
	}
	d.ListSessions = func(context.Context, api.ListSessionsRequest) (api.ListSessionsResponse, error) {
		return api.ListSessionsResponse{Sessions: u.sessions}, nil
	}
	d.ShowSession = func(context.Context, api.SessionRequest) (api.ShowSessionResponse, error) {
		return api.ShowSessionResponse{Session: u.sessions[0], Agents: u.agents}, nil
	}
	d.CancelSession = func(_ context.Context, req api.SessionRequest) (api.SessionResponse, error) {
		return api.SessionResponse{}, u.record("cancel %s", req.Session)
	}
	d.ResumeSession = func(_ context.Context, req api.ResumeSessionRequest) (api.SessionResponse, error) {
		return api.SessionResponse{}, u.record("resume %s", req.Session)
	}
	d.RetrySession = func(_ context.Context, req api.RetrySessionRequest) (api.RetrySessionResponse, error) {
		return api.RetrySessionResponse{}, u.record("retry %s", req.Session)
	}
	d.PauseSession = func(_ context.Context, req api.SessionRequest) (api.SessionResponse, error) {
		return api.SessionResponse{}, u.record("pause %s", req.Session)
	}
	u.entries = []agency.QueueEntry{{Run: "search", RunID: "r_2", Target: "main", State: agency.EntryHeld}}
	d.ListQueue = func(context.Context, api.ListQueueRequest) (api.QueueResponse, error) {
		resp := api.QueueResponse{Queues: []agency.Queue{{Target: "main", Paused: true, Note: "main is dirty"}}}
		for _, e := range u.entries {
			resp.Entries = append(resp.Entries, api.QueueItem{Entry: e, Why: "it is " + string(e.State)})
		}
		return resp, nil
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
		In: in, Out: out, Dir: "/home/me/web", Daemon: u.daemon, Command: func(...string) *exec.Cmd {
			if u.attaches != nil {
				u.attaches()
			}
			return exec.Command("sh", "-c", u.attach)
		},
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

// misses checks that texts were not printed.
func (u *user) misses(texts ...string) {
	u.t.Helper()
	for _, text := range texts {
		if strings.Contains(u.printed, text) {
			u.t.Errorf("%q is in\n%s", text, u.printed)
		}
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
