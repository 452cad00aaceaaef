package tui

import (
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"

	"agency"
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

// A session shows its waves as columns, and what each agent waits for.
func TestSessions(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("S")
	u.sees("sessions 2", "◐ release", "✕ older", "wave 1 ─", "▶  wave 2 ─", "✓ schema", "○ e2e", "after schema, api", "waits for api", "Which tone?")
	golden(t, u, "sessions-80x24")
	u.presses("p R x n x y t y")
	u.did("pause s1", "resume s1", "cancel s1", "retry s1")
	u.sees("release continues in a new session")
	u.presses("j t y")
	u.did("retry s2")
	u.presses("k enter")
	u.sees("> ◐ docs")
}

func TestQueue(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("Q")
	u.sees("landing queues 2", "  1 idle", "→ main", "checking", "its checks run", "the queue of main is paused")
	u.presses("h j r t D y")
	u.did("queue hold [idle] of main", "queue resume [flaky] of main", "queue retry [flaky] of main", "queue remove [flaky] of main")
	u.presses("enter")
	u.sees("> ✕ flaky")
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
	u.sees("fix it: all of it", "3 lines")
	u.tell(tea.KeyPressMsg{Code: 's', Mod: tea.ModCtrl})
	u.did("create {Path: Text:fix it: all of it\nand more\n} in /home/me/web")
	u.sees("> ● fixer-2", "fixer-2 started")
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
	start()
	u.sees("plan release", "2 agents, at most 3 at once", "! the timeout of api has no effect", "wave 2", "api  claude_code  after schema", "start 2 agents?")
	u.presses("n")
	u.did("plan /home/me/web/plan.yaml in /home/me/web")
	start()
	u.presses("y")
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
	u.did("queue hold [idle] of main")
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
	u.sees("3 lines")
}
