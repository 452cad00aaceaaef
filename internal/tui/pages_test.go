package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
)

// The inbox has alerts and messages, each with its text, its run and what settles it.
func TestInbox(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("A")
	u.sees("inbox 2", "! docs", "Which tone?", "✉ docs", "help.request")
	u.presses("z a j a z")
	u.did("snooze [a1] 3600000", "ack [a1]", "ack [m_1]")
	u.sees("only an alert can be snoozed")
	u.presses("enter")
	u.sees("> ◐ docs", "[Screen]")
	u.presses("z")
	u.did("snooze [a1] 3600000")
	u.sees("docs snoozed for an hour")
	u.presses("g z")
	u.sees("auth-fix: there is no alert to snooze")
}

// Enter on an alert about a session goes to the session.
func TestInboxSession(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.m.desk.Daemon.ListAlerts = func(context.Context, api.ListAlertsRequest) (api.ListAlertsResponse, error) {
		return api.ListAlertsResponse{Alerts: []api.Alert{{ID: "a9", Kind: agency.AlertSessionFailed, SessionID: "s2", SessionName: "older", OpenedAt: noon}}}, nil
	}
	u.presses("A enter")
	u.sees("sessions 2", ">✕ older")
}

// What an alert or a message says can be read whole, with the command that deals with an alert. What
// the user acknowledges leaves the list, and the cursor stays in it.
func TestInboxText(t *testing.T) {
	t.Parallel()
	u := seated(t, 60, 20)
	text := strings.Repeat("one of many words ", 60) + "and the last."
	alerts := []api.Alert{}
	for _, id := range []string{"a1", "a2"} {
		alerts = append(alerts, api.Alert{ID: id, Kind: agency.AlertNeedsInput, RunID: "r_docs", RunName: "docs-" + id, OpenedAt: noon, Payload: []byte(`{"prompt_preview": "` + text + `"}`)})
	}
	u.m.desk.Daemon.ListAlerts = func(context.Context, api.ListAlertsRequest) (api.ListAlertsResponse, error) {
		return api.ListAlertsResponse{Alerts: slices.Clone(alerts)}, nil
	}
	u.m.desk.Daemon.AckAlerts = func(_ context.Context, req api.AckAlertRequest) (api.AlertsResponse, error) {
		for i := range alerts {
			if slices.Contains(req.Alerts, alerts[i].ID) {
				alerts[i].AckedAt = new(noon)
			}
		}
		return api.AlertsResponse{}, u.record("ack %s", req.Alerts)
	}
	u.presses("A j")
	u.sees("inbox 3", ">! docs-a2", "docs-a2 asks: one of many", " 1-14 of ")
	u.presses("J J J")
	u.sees("and the last.", "command   agency answer docs-a2")
	u.presses("k")
	u.sees("docs-a1 asks: one of many", " 1-14 of ")
	u.presses("j a")
	u.did("ack [a2]")
	u.sees("inbox 2", ">✉ docs", "from      docs, now, as help.request")
	u.presses("* n")
	u.did()
	u.presses("* y")
	u.did("ack [a1]", "ack [m_1]")
	u.tell(refreshMsg{})
	u.sees("inbox 1", ">✉ docs")
}

// A session shows its waves as columns, and what each agent waits for.
func TestSessions(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("S")
	u.sees("sessions 2", "◐ release", "✕ older", "wave 1 ─", "▶  wave 2 ─", "✓ schema", "○ e2e", "waits for api", "Which tone?")
	u.seesNot("after schema, api")
	golden(t, u, "sessions-80x24")
	u.presses("p R x n x y t y")
	u.did("pause s1", "resume s1", "cancel s1", "retry s1")
	u.sees("release continues in a new session")
	u.presses("j t y")
	u.did("retry s2")
	u.presses("k enter")
	u.sees("> ◐ docs")
}

// plan gives the user a session with so many waves of so many agents, and returns its agents.
func (u *user) plan(waves, each int, id func(wave, n int) string) []api.SessionAgent {
	resp := api.ShowSessionResponse{Session: api.Session{ID: "s1", Name: "release", Status: agency.SessionRunning}}
	for w := range waves {
		wave := api.Wave{Wave: w + 1}
		for n := range each {
			a := api.SessionAgent{ID: id(w+1, n+1), Wave: w + 1, Status: agency.AgentQueued}
			if w > 0 {
				a.After = []string{id(w, n+1)}
				a.WaitReason = "after " + a.After[0]
			}
			resp.Agents, wave.Agents = append(resp.Agents, a), append(wave.Agents, a.ID)
		}
		resp.Waves = append(resp.Waves, wave)
	}
	u.m.desk.Daemon.ShowSession = func(context.Context, api.SessionRequest) (api.ShowSessionResponse, error) { return resp, nil }
	return resp.Agents
}

// Of many waves, the user sees first those that are not complete.
func TestSessionWaves(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	agents := u.plan(12, 2, func(w, n int) string { return fmt.Sprintf("w%02d-%d", w, n) })
	for i := range agents[:15] { // the last one in wave 8
		agents[i].Status = agency.AgentComplete
	}
	u.presses("S")
	u.sees("waves 1 to 5 are complete", "▶  wave 8 ─", "✓ w08-1", "○ w08-2")
	u.seesNot(" wave 5 ")
	for i := range agents {
		agents[i].Status = agency.AgentComplete
	}
	u.presses("j k")
	u.sees("waves 1 to 10 are complete", "✓ w12-2")
}

// The user moves through the agents of a session, reads all that is known of each, and goes to its run.
func TestSessionAgents(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	agents := u.plan(1, 60, func(_, n int) string { return fmt.Sprintf("agent-%02d", n) })
	agents[0].Status, agents[0].RunID, agents[0].Branch = agency.AgentComplete, "r_idle", "agency/s1/agent-01"
	agents[0].Result = &agency.AgentResult{Commits: 2, Files: 1, Added: 40, Deleted: 3, Tests: "go test ./..."}
	agents[0].Landed = &api.AgentLanding{State: string(agency.WorkLanded), Into: "main"}
	agents[0].StartedAt, agents[0].CompletedAt = new(noon.Add(-time.Hour)), new(noon.Add(-18*time.Minute))
	agents[41].Status, agents[41].NeedsUser, agents[41].Label, agents[41].RunID = agency.AgentRunning, true, agency.NeedsInput, "r_docs"
	agents[41].Note = strings.Repeat("which of the many ways ", 9) + "is right?"
	u.presses("S")
	u.sees("◐ agent-42", "   53 more", " 1-19 of 72 ")
	u.presses("J J J J J J J J")
	u.sees(" 54-72 of 72 ", "✓ agent-01  complete      42m  2 commits, 1 file, +40 -3  → main")
	u.presses("K tab")
	u.sees(">◐ agent-42", "is right?")
	u.presses("G")
	u.sees(">✓ agent-01", "go test ./...", "agency/s1/agent-01", "after 42m00s")
	u.presses("k")
	u.sees(">○ agent-60")
	u.presses("enter")
	u.sees("agent-60 has not started", "sessions 2")
	u.presses("tab enter")
	u.sees("> ◐ docs")
	u.presses("S tab G enter")
	u.sees("> ✓ idle")
}

// The cursor stays on its agent when others overtake it, and a session that is not read yet has none.
func TestSessionAgentsMove(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	agents := u.plan(1, 4, func(_, n int) string { return fmt.Sprintf("agent-%d", n) })
	u.presses("S tab j")
	u.sees(">○ agent-2")
	agents[3].Status, agents[3].NeedsUser, agents[3].RunID = agency.AgentRunning, true, "r_docs"
	u.tell(refreshMsg{})
	u.tell(changedMsg{})
	u.sees(" ◐ agent-4", ">○ agent-2")
	u.presses("tab j enter")
	u.sees("its agents are not read yet", "sessions 2")
}

// Sessions of any shape and names of any length keep to their columns.
func TestSessionShapes(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]struct {
		waves, each int
		id          func(wave, n int) string
	}{
		"many": {30, 3, func(w, n int) string { return fmt.Sprintf("w%02d-%d", w, n) }},
		"long": {3, 2, func(w, n int) string { return fmt.Sprintf("the-feature-with-a-long-name-%02d-part-%02d", w, n) }},
		"wide": {3, 2, func(w, n int) string {
			return fmt.Sprintf("翻訳された長い名前のエージェント第%d波の%d番", w, n)
		}},
	} {
		for _, size := range [][2]int{{80, 24}, {160, 50}} {
			u := seated(t, size[0], size[1])
			u.plan(shape.waves, shape.each, shape.id)
			u.presses("S")
			golden(t, u, fmt.Sprintf("sessions-%s-%dx%d", name, size[0], size[1]))
		}
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("Q")
	u.sees("landing queues 2", "  1 idle", "→ main", "checking", "its checks run", "queue     paused")
	u.presses("h j")
	u.sees("queue     paused; continue: agency queue resume")
	u.presses("r t D y")
	u.did("queue hold [r_idle] of main", "queue resume [r_flaky] of main", "queue retry [r_flaky] of main", "queue remove [r_flaky] of main")
	u.presses("p")
	u.did("queue of main in /home/me/api paused false")
	u.sees("the queue of main continues")
	u.presses("enter")
	u.sees("> ✕ flaky")
}

// Each entry has its place, its state and since when, and its reason can be read whole.
func TestQueueText(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	entry := func(n int, state agency.QueueState, why string) api.QueueItem {
		return api.QueueItem{Position: n, Why: why, Entry: agency.QueueEntry{
			Seq: int64(n), Run: fmt.Sprintf("a-run-with-a-name-of-forty-characters-%02d", n), RunID: "r_idle", Target: "main", State: state, Source: "0123456789abcdef", By: "r_docs",
			AddedAt: noon.Add(-2 * time.Hour), ChangedAt: noon.Add(-7 * time.Minute),
		}}
	}
	u.m.desk.Daemon.ListQueue = func(context.Context, api.ListQueueRequest) (api.QueueResponse, error) {
		return api.QueueResponse{Entries: []api.QueueItem{
			entry(1, agency.EntryChecking, "the checks of main run"), entry(2, agency.EntryFixing, strings.Repeat("lint does not pass; ", 90)+"its agent mends it"),
		}, Queues: []agency.Queue{{Target: "main", Note: "the disk is full"}}}, nil
	}
	u.presses("Q")
	u.sees(">  1 a-run-with…acters-01", "→ main  checking   7m  the checks of main run", "checking for 7m, number 1 in the queue", "queue     the disk is full", "2h ago by docs", "0123456789ab")
	u.presses("j")
	u.sees("fixing for 7m", " 1-19 of ")
	u.seesNot("its agent mends it")
	u.presses("J J J")
	u.sees("its agent mends it", "queue     the disk is full")
}

// A run is started from a form, and the cursor goes to it.
func TestForm(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("n")
	u.sees("new run", "> prompt", "/home/me/web", "ctrl-s start")
	u.tell(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.sees("the agent needs a prompt", "new run")
	u.types("fix it")
	u.presses("tab tab")
	u.types("fixer")
	u.refuse = agency.Errorf(agency.CodeNotGitRepo, "/home/me/web is in no repository").WithHint("git init")
	u.tell(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.did("create {Path: Text:fix it} in /home/me/web")
	u.sees("/home/me/web is in no repository", "git init", "fixer")
	u.tell(tea.PasteMsg{Content: "-2"})
	u.presses("tab tab tab tab tab tab")
	u.tell(tea.PasteMsg{Content: ": all of it\nand more\n"})
	u.presses("enter")
	u.types("please")
	u.sees("fix it: all of it", "              and more", "              please")
	u.presses("tab")
	u.sees("prompt      fix it: all of it  … 4 lines")
	u.tell(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.did("create {Path: Text:fix it: all of it\nand more\n\nplease} in /home/me/web")
	u.sees("> ● fixer-2", "fixer-2 started")
}

// A row offers what it most likely holds, and esc keeps the form for the next time.
func TestFormChoices(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	choose := func(key rune) { u.tell(tea.KeyPressMsg{Code: key, Mod: tea.ModCtrl}) }
	u.presses("n tab")
	u.sees("ctrl-n: /home/me/api, /home/me/web")
	choose('n')
	u.presses("tab tab")
	choose('n')
	u.sees("preset      reviewer")
	u.presses("tab")
	choose('p')
	u.sees("runner      codex", "ctrl-n: claude_code, codex")
	choose('n')
	choose('n')
	u.sees("runner      claude_code")
	u.presses("tab")
	u.sees("ctrl-n: main, next")
	u.presses("esc")
	u.sees("> ◐ auth-fix")
	u.presses("n")
	u.sees("preset      reviewer", "runner      claude_code", "> base")
}

// While the daemon starts a run, the form stays as it was sent. Keys that were meant for it do nothing
// to the list, which takes its place.
func TestFormWhileItStarts(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("n")
	u.types("fix it")
	_, start := u.m.Update(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.types(" more")
	u.sees("starting", "fix it ")
	u.seesNot("more")
	u.do(start)
	u.did("create {Path: Text:fix it} in /home/me/web")
	u.presses("b I")
	u.did()
	u.waits(deadKeys)
	u.presses("b")
	if len(u.asked) != 1 {
		t.Errorf("asked %q", u.asked)
	}
}

// A run that starts while the user is elsewhere does not take them away from there.
func TestFormLeftWhileItStarts(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("n")
	u.types("fix it")
	_, start := u.m.Update(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.presses("esc A")
	u.do(start)
	u.sees("inbox 2")
	u.did("create {Path: Text:fix it} in /home/me/web")
	u.presses("q n")
	u.sees("what the agent is to do")
	u.types("next")
	u.refuse = agency.Errorf(agency.CodeNotGitRepo, "web is in no repository")
	_, start = u.m.Update(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.presses("esc")
	u.do(start)
	u.sees("web is in no repository", "> ◐ auth-fix")
}

// A plan is checked, and its session starts after a y.
func TestFormOfAPlan(t *testing.T) {
	t.Parallel()
	u := seated(t, 60, 20)
	start := func() { u.tell(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl}) }
	u.presses("n")
	u.types("fix it")
	u.tell(tea.KeyPressMsg{Code: tea.KeyUp})
	u.types("plan.yaml")
	start()
	u.sees("a plan says the prompt of each agent itself")
	u.presses("tab")
	u.tell(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	u.refuse = agency.Errorf(agency.CodeTrustRequired, "its setup is not trusted")
	start()
	u.did("plan /home/me/web/plan.yaml in /home/me/web")
	u.sees("it cannot start: its setup is not trusted", "agency init")
	start() // back to the form
	start()
	u.sees("plan release", "2 agents, at most 3 at once", "! the timeout of api has no effect", "wave 2", "api  claude_code  after schema", "ctrl-s start 2 agents")
	u.presses("enter")
	u.sees("plan        plan.yaml")
	u.did("plan /home/me/web/plan.yaml in /home/me/web")
	start()
	start()
	u.did("plan /home/me/web/plan.yaml in /home/me/web", `start /home/me/web/plan.yaml as ""`)
	u.sees("sessions 2", "release started")
}

// The palette finds commands by their words or their letters, those of the page that is shown.
func TestPalette(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses(":")
	u.types("snap")
	u.sees(":snap", "> b         save its work in a snapshot")
	u.presses("enter")
	u.did("snapshot r_auth-fix")
	u.presses(":")
	u.types("lndgqs")
	u.presses("enter")
	u.sees("landing queues 2")
	u.presses(":")
	u.types("hold")
	u.presses("enter")
	u.did("queue hold [r_idle] of main")
	u.presses(":")
	u.types("zzz")
	u.sees("no command has these letters")
	u.presses("esc")
	u.sees("landing queues 2")
}

// All pages are drawn at any size.
func TestPageSizes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"n", "A", "S", "Q", ":", "d"} {
		for _, size := range [][2]int{{20, 5}, {21, 7}, {60, 20}, {119, 30}, {300, 90}} {
			u := seated(t, size[0], size[1])
			u.presses(key)
			u.types("j界")
			golden(t, u, "")
			u.presses("?")
			golden(t, u, "")
			if t.Failed() {
				t.Fatal(fmt.Sprint(key, size))
			}
		}
	}
}

// What quits other programs quits this one, and lines that a terminal pastes stay lines.
func TestHabits(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses(":")
	u.types("q")
	u.presses("enter")
	if u.did(); !u.quit {
		t.Error(":q does not quit")
	}
	u = seated(t, 80, 24)
	u.presses("n")
	u.tell(tea.PasteMsg{Content: "line one\rline two\r\nline three"})
	u.sees("line one ", "              line two ", "              line three ")
}
