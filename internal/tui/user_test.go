package tui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
)

// user is a user in front of the dashboard, with a daemon that knows the runs and remembers what it
// was asked.
type user struct {
	t        *testing.T
	m        *Model
	now      time.Time
	runs     []api.Run
	screens  map[agency.RunID]agency.Screen
	comments []agency.LineComment
	asked    []string // what the daemon was asked to do, and what ran on the terminal
	refuse   error    // the answer to the next action
	quit     bool
	object   string                       // the content of login.go, when it is another
	marked   map[agency.ReviewedFile]bool // by the user, as reviewed
}

func sit(t *testing.T, width, height int, runs ...api.Run) *user {
	t.Helper()
	u := &user{t: t, now: noon, marked: map[agency.ReviewedFile]bool{}, runs: runs, screens: map[agency.RunID]agency.Screen{}}
	u.m = New(t.Context(), Options{
		Daemon: u.daemon(), Now: func() time.Time { return u.now },
		Dir: "/home/me/web", Env: []string{"EDITOR=vi"}, Runner: func(name string) (agency.RunnerKind, string) { return agency.RunnerKind(name), "" }, Runners: []string{"claude_code", "codex"}, Presets: []string{"reviewer"},
		Command: func(args ...string) *exec.Cmd { return exec.Command("agency", args...) },
	})
	u.m.desk.Later = func(_ time.Duration, msg tea.Msg) tea.Cmd {
		switch msg.(type) {
		case lookMsg:
			if u.m.board.eye.pane.Run == u.m.board.eye.run {
				return nil // the next look would wait for a change
			}
			return func() tea.Msg { return msg }
		case fetchMsg:
			return func() tea.Msg { return msg }
		default:
			return nil
		}
	}
	u.do(u.m.Init())
	u.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return u
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func (u *user) daemon() page.Daemon {
	return page.Daemon{
		ListRuns: func(_ context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
			runs := slices.Clone(u.runs)
			if len(req.RunIDs) > 0 {
				runs = slices.DeleteFunc(runs, func(r api.Run) bool { return !slices.Contains(req.RunIDs, r.ID) })
			}
			if req.Run != "" {
				runs = slices.DeleteFunc(runs, func(r api.Run) bool { return string(r.ID) != req.Run })
			}
			return api.ListRunsResponse{Runs: runs}, nil
		},
		ShowScreen: func(_ context.Context, req api.ShowScreenRequest) (api.ShowScreenResponse, error) {
			return api.ShowScreenResponse{RunID: agency.RunID(req.Run), Screen: u.screens[agency.RunID(req.Run)]}, nil
		},
		AnswerRun: func(_ context.Context, req api.AnswerRunRequest) (api.AnswerRunResponse, error) {
			err := u.record("answer %s %s %s%s", req.Run, req.PromptID, req.Decision, req.Text)
			return api.AnswerRunResponse{Confirmed: true}, err
		},
		CreateRun: func(_ context.Context, req api.CreateRunRequest) (api.CreateRunResponse, error) {
			if err := u.record("create %+v in %s", req.Spec.Prompt, req.Spec.Repo); err != nil {
				return api.CreateRunResponse{}, err
			}
			r := run(req.Spec.Name, agency.Working, "beginning")
			u.runs = append(u.runs, r)
			return api.CreateRunResponse{Run: r}, nil
		},
		ListAlerts: func(_ context.Context, req api.ListAlertsRequest) (api.ListAlertsResponse, error) {
			alerts := []api.Alert{{ID: "a1", Kind: agency.AlertNeedsInput, RunID: "r_docs", RunName: "docs", OpenedAt: noon.Add(-time.Hour), Payload: []byte(`{"prompt_preview": "Which tone?"}`)}}
			if req.Run != "" && req.Run != "r_docs" {
				alerts = nil
			}
			return api.ListAlertsResponse{Alerts: alerts}, nil
		},
		AckAlerts: func(_ context.Context, req api.AckAlertRequest) (api.AlertsResponse, error) {
			return api.AlertsResponse{}, u.record("ack %s", req.Alerts)
		},
		AckMessages: func(_ context.Context, req api.AckMessagesRequest) (api.AckMessagesResponse, error) {
			return api.AckMessagesResponse{}, u.record("ack %s", req.Messages)
		},
		SnoozeAlerts: func(_ context.Context, req api.SnoozeAlertRequest) (api.AlertsResponse, error) {
			return api.AlertsResponse{}, u.record("snooze %s %d", req.Alerts, req.ForMS)
		},
		ListSessions: func(context.Context, api.ListSessionsRequest) (api.ListSessionsResponse, error) {
			return api.ListSessionsResponse{Sessions: []api.Session{{ID: "s1", Name: "release", Status: agency.SessionRunning, Waiting: 1, Summary: agency.Counts{Complete: 1, Running: 1, Queued: 1}}, {ID: "s2", Name: "older", Status: agency.SessionFailed}}}, nil
		},
		ShowSession: func(_ context.Context, req api.SessionRequest) (api.ShowSessionResponse, error) {
			return api.ShowSessionResponse{Session: api.Session{ID: agency.SessionID(req.Session)}, Agents: []api.SessionAgent{
				{ID: "schema", Status: agency.AgentComplete, RunID: "r_idle", StartedAt: new(noon.Add(-time.Hour)), CompletedAt: new(noon.Add(-18 * time.Minute))},
				{ID: "api", Status: agency.AgentRunning, After: []string{"schema"}, StartedAt: new(noon.Add(-12 * time.Minute)), NeedsUser: true, Label: agency.NeedsInput, RunID: "r_docs", Note: "Which tone?"},
				{ID: "e2e", Status: agency.AgentQueued, After: []string{"schema", "api"}, WaitReason: "waits for api"},
			}, Waves: []api.Wave{{Wave: 1, Agents: []string{"schema"}}, {Wave: 2, Agents: []string{"api"}}, {Wave: 3, Agents: []string{"e2e"}}}}, nil
		},
		PlanSession: func(_ context.Context, req api.PlanSessionRequest) (api.PlanSessionResponse, error) {
			resp := api.PlanSessionResponse{
				Plan:  agency.Plan{Name: "release", MaxParallel: 3, OnFailure: agency.StopOnFailure, Agents: []agency.PlanAgent{{ID: "schema"}, {ID: "api", After: []string{"schema"}}}},
				Waves: [][]string{{"schema"}, {"api"}}, Agents: []api.PlannedAgent{{Runner: "codex"}, {Runner: "claude_code"}}, Warnings: []string{"the timeout of api has no effect"},
			}
			if u.refuse != nil {
				resp.Refused, u.refuse = &api.Problem{Message: u.refuse.Error(), Hint: "agency init"}, nil
			}
			return resp, u.record("plan %s in %s", req.Plan.Path, req.Dir)
		},
		StartSession: func(_ context.Context, req api.StartSessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{Session: api.Session{ID: "s1", Name: "release"}}, u.record("start %s as %q", req.Plan.Path, req.Plan.Name)
		},
		PauseSession: func(_ context.Context, req api.SessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{}, u.record("pause %s", req.Session)
		},
		ResumeSession: func(_ context.Context, req api.ResumeSessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{}, u.record("resume %s", req.Session)
		},
		CancelSession: func(_ context.Context, req api.SessionRequest) (api.SessionResponse, error) {
			return api.SessionResponse{}, u.record("cancel %s", req.Session)
		},
		RetrySession: func(_ context.Context, req api.RetrySessionRequest) (api.RetrySessionResponse, error) {
			return api.RetrySessionResponse{}, u.record("retry %s", req.Session)
		},
		ListRefs: func(context.Context, api.RefsRequest) (api.RefsResponse, error) {
			return api.RefsResponse{Names: []string{"main", "next"}}, nil
		},
		ListQueue: func(context.Context, api.ListQueueRequest) (api.QueueResponse, error) {
			return api.QueueResponse{Entries: []api.QueueItem{
				{Entry: agency.QueueEntry{Seq: 1, Run: "idle", RunID: "r_idle", Target: "main", State: agency.EntryChecking}, Position: 1, Why: "its checks run"},
				{Entry: agency.QueueEntry{Seq: 2, Run: "flaky", RunID: "r_flaky", Target: "main", State: agency.EntryHeld}, Why: "it is held by hand"},
			}, Queues: []agency.Queue{{Target: "main", Paused: true}}}, nil
		},
		ChangeQueue: func(_ context.Context, req api.ChangeQueueRequest) (api.QueueResponse, error) {
			return api.QueueResponse{}, u.record("queue %s %s of %s", req.Change, req.Runs, req.Into)
		},
		InterruptRun: func(_ context.Context, req api.RunRequest) (api.InterruptRunResponse, error) {
			return api.InterruptRunResponse{Confirmed: true}, u.record("interrupt %s", req.Run)
		},
		PauseQueue: func(_ context.Context, req api.PauseQueueRequest) (api.QueueResponse, error) {
			return api.QueueResponse{}, u.record("queue of %s in %s paused %t", req.Into, req.Dir, !req.Resume)
		},
		StopRun: func(_ context.Context, req api.RunRequest) (api.StopRunResponse, error) {
			return api.StopRunResponse{}, u.record("stop %s", req.Run)
		},
		RemoveRun: func(_ context.Context, req api.RemoveRunRequest) (api.RemoveRunResponse, error) {
			return api.RemoveRunResponse{}, u.record("remove %s", req.Run)
		},
		ResumeRun: func(_ context.Context, req api.ResumeRunRequest) (api.ResumeRunResponse, error) {
			if req.Mode != "" {
				return api.ResumeRunResponse{Continued: true}, u.record("mode %s %s %q, idle %t", req.Run, req.Mode, req.Prompt, req.Idle)
			}
			return api.ResumeRunResponse{Continued: true}, u.record("resume %s", req.Run)
		},
		TakeSnapshot: func(_ context.Context, req api.RunRequest) (api.TakeSnapshotResponse, error) {
			return api.TakeSnapshotResponse{Snapshot: &agency.Saved{}}, u.record("snapshot %s", req.Run)
		},
		VerifyRun: func(_ context.Context, req api.VerifyRunRequest) (api.VerifyRunResponse, error) {
			return api.VerifyRunResponse{Passed: req.Run != "r_flaky"}, u.record("verify %s", req.Run)
		},
		MergeRun: func(_ context.Context, req api.MergeRunRequest) (api.MergeRunResponse, error) {
			return api.MergeRunResponse{}, u.record("merge %s", req.Run)
		},
		AddToQueue: func(_ context.Context, req api.AddToQueueRequest) (api.QueueResponse, error) {
			return api.QueueResponse{}, u.record("queue %s", strings.Join(req.Runs, " "))
		},
		SendInput: func(_ context.Context, req api.SendInputRequest) (api.SendInputResponse, error) {
			return api.SendInputResponse{Confirmed: true}, u.record("send %s %s", req.Run, req.Text)
		},
		DiffRun: u.diff,
		ReviewRun: func(context.Context, api.ReviewRunRequest) (api.ReviewRunResponse, error) {
			return api.ReviewRunResponse{Comments: u.comments}, nil
		},
		AddComments: func(_ context.Context, req api.AddCommentsRequest) (api.CommentsResponse, error) {
			for _, c := range req.Comments {
				u.comments = append(u.comments, agency.LineComment{Number: len(u.comments) + 1, File: c.File, Line: c.Line, Now: c.Line, Text: c.Text, State: agency.CommentOpen, Side: map[bool]string{true: agency.SideOld, false: agency.SideNew}[c.Old]})
			}
			return api.CommentsResponse{}, u.record("comment %s %+v", req.Run, req.Comments)
		},
		DiscardComments: func(_ context.Context, req api.DiscardCommentsRequest) (api.CommentsResponse, error) {
			u.comments = slices.DeleteFunc(u.comments, func(c agency.LineComment) bool { return slices.Contains(req.Numbers, c.Number) })
			return api.CommentsResponse{}, u.record("discard %v of %s", req.Numbers, req.Run)
		},
		SendComments: func(_ context.Context, req api.SendCommentsRequest) (api.SendCommentsResponse, error) {
			return api.SendCommentsResponse{Confirmed: true}, u.record("send comments %s", req.Run)
		},
		MarkReviewed: func(_ context.Context, req api.MarkReviewedRequest) (api.RunResponse, error) {
			if err := u.record("mark %v", req.Files); err != nil {
				return api.RunResponse{}, err
			}
			u.marked[req.Files[0]] = !req.Undo
			return api.RunResponse{}, nil
		},
		ListMessages: func(_ context.Context, req api.ListMessagesRequest) (api.MessagesResponse, error) {
			return api.MessagesResponse{Messages: []agency.Message{{ID: "m_1", Type: "help.request", From: "r_docs", Payload: []byte(`{"text": "Which way for ` + req.Recipient + `?"}`), CreatedAt: noon}}}, nil
		},
		ListEvents: func(_ context.Context, _ api.ListEventsRequest) (api.ListEventsResponse, error) {
			return api.ListEventsResponse{Events: []agency.Event{{Type: "run.created", At: noon}, {Type: "run.started", At: noon, Data: []byte(`{"pid": 12}`)}}}, nil
		},
		ExplainRun: func(context.Context, api.RunRequest) (api.ExplainRunResponse, error) {
			return api.ExplainRunResponse{Explanation: agency.Explanation{Rule: 7, When: "it asks", Status: agency.Status{Label: agency.NeedsInput}, Findings: []agency.Finding{{Source: "hook", Trust: agency.TrustAgent, Says: "PermissionRequest", Decided: true}}}}, nil
		},
		ShowOutput: func(context.Context, api.ShowOutputRequest) (api.ShowOutputResponse, error) {
			return api.ShowOutputResponse{Lines: []string{"a line of the log"}}, nil
		},
	}
}

func (u *user) record(format string, args ...any) error {
	u.asked = append(u.asked, fmt.Sprintf(format, args...))
	err := u.refuse
	u.refuse = nil
	return err
}

// do runs a command and what follows from it.
func (u *user) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			u.do(c)
		}
	case tea.QuitMsg:
		u.quit = true
	default:
		if strings.HasPrefix(fmt.Sprintf("%T", msg), "tea.exec") {
			u.asked = append(u.asked, "exec")
			return
		}
		u.tell(msg)
	}
}

func (u *user) tell(msg tea.Msg) {
	_, cmd := u.m.Update(msg)
	u.do(cmd)
}

// presses presses keys, by their names: "w a enter".
func (u *user) presses(keys string) {
	for key := range strings.FieldsSeq(keys) {
		press := tea.KeyPressMsg{Text: key}
		switch key {
		case "enter":
			press = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			press = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "space":
			press = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case "tab":
			press = tea.KeyPressMsg{Code: tea.KeyTab}
		}
		if press.Code == 0 {
			press.Code = []rune(key)[0]
		}
		u.tell(press)
	}
}

func (u *user) types(text string) {
	for _, r := range text {
		u.tell(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// waits lets time pass.
func (u *user) waits(d time.Duration) { u.now = u.now.Add(d) }

// changes replaces the runs, as when the daemon reports an event.
func (u *user) changes(runs ...api.Run) {
	u.runs = runs
	u.tell(changedMsg{})
}

func (u *user) sees(texts ...string) {
	u.t.Helper()
	frame := ansi.Strip(u.m.Frame())
	for _, text := range texts {
		if !strings.Contains(frame, text) {
			u.t.Fatalf("%q is not on the screen:\n%s", text, frame)
		}
	}
}

func (u *user) seesNot(text string) {
	u.t.Helper()
	if frame := ansi.Strip(u.m.Frame()); strings.Contains(frame, text) {
		u.t.Fatalf("%q is on the screen:\n%s", text, frame)
	}
}

// did checks what the daemon was asked to do since the last check.
func (u *user) did(want ...string) {
	u.t.Helper()
	if diff := cmp.Diff(want, u.asked); diff != "" {
		u.t.Fatal(diff)
	}
	u.asked = nil
}

func run(name string, label agency.Label, summary string) api.Run {
	return api.Run{
		ID: agency.RunID("r_" + name), Handle: "1125-" + name + "-a1b2", Name: name, Status: label, Summary: summary,
		Since: noon.Add(-2 * time.Minute), Repo: "/home/me/web", Tags: []string{},
	}
}

func permission(name, command string) api.Run {
	r := run(name, agency.NeedsInput, "may it use Bash? "+command)
	r.Request = &agency.Request{ID: "toolu_" + name, Kind: agency.AsksPermission, Tool: "Bash", Text: command, At: noon.Add(-2 * time.Minute), Confidence: 1}
	return r
}

func screenOf(lines ...string) agency.Screen {
	s := agency.Screen{Live: true, Width: 80, Height: 24, Rows: [][]agency.StyledText{}}
	for _, line := range lines {
		s.Rows = append(s.Rows, []agency.StyledText{{Text: line}})
	}
	s.Stamp()
	return s
}

// team is a team of runs of all kinds.
func team() []api.Run {
	question := run("docs", agency.NeedsInput, "Which tone?")
	question.Request = &agency.Request{ID: "q1", Kind: agency.AsksQuestion, Text: "Which tone?", At: noon.Add(-9 * time.Minute), Confidence: 1}
	failed := run("flaky", agency.LabelFailed, "")
	failed.Problem, failed.Repo, failed.Tags = "(exit 1)", "/home/me/api", []string{"nightly"}
	search := run("search", agency.Working, "editing index.go")
	search.Diff = &agency.ChangeSize{Files: 3, Added: 120, Deleted: 8}
	wide := run("translate", agency.ReadyForReview, "翻訳が完了しました: 界界界 strings are translated 👩‍👩‍👧 now")
	return []api.Run{permission("auth-fix", "npm test -- login"), question, search, failed, wide, run("idle", agency.LabelCompleted, "All done")}
}

// seated is a user with the team, whose screens show something.
func seated(t *testing.T, width, height int) *user {
	u := sit(t, width, height)
	u.screens["r_auth-fix"] = agency.Screen{Live: true, Width: 80, Height: 24, Revision: "1", Rows: [][]agency.StyledText{
		{{Text: "● ", Foreground: "2"}, {Text: "Bash", Attributes: "b"}, {Text: "(npm test -- login)"}}, {}, {{Text: " Do you want to proceed?"}}, {{Text: " ❯ 1. Yes"}}, {{Text: "   2. No"}},
	}}
	u.screens["r_docs"] = screenOf("Which tone?", " ❯ 1. Short  in one line", "   2. Full   with examples", "   3. Type something")
	u.changes(team()...)
	u.waits(time.Second)
	return u
}

// golden compares a frame, without its styles, with the file of a name, if it has one, and checks
// that it has the size of the terminal.
func golden(t *testing.T, u *user, name string) {
	t.Helper()
	frame := ansi.Strip(u.m.Frame())
	lines := strings.Split(frame, "\n")
	if len(lines) != u.m.height {
		t.Errorf("the frame has %d rows, want %d", len(lines), u.m.height)
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > u.m.width {
			t.Errorf("%d columns, want at most %d: %q", w, u.m.width, line)
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if name == "" {
		return
	}
	path := filepath.Join("testdata", name+".txt")
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test ./internal/tui -update writes it again):\n%s", path, diff)
	}
}
