package tui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/diff"
	"agency/internal/tui/form"
	"agency/internal/tui/inbox"
	"agency/internal/tui/page"
	"agency/internal/tui/queue"
	"agency/internal/tui/session"
)

var update = flag.Bool("update", false, "write the golden files and the keys of docs/tui.md again")

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {160, 50}, {300, 90}, {40, 12}} {
		golden(t, seated(t, size[0], size[1]), fmt.Sprintf("team-%dx%d", size[0], size[1]))
	}
	golden(t, sit(t, 80, 24), "none-80x24")
	u := seated(t, 80, 24)
	u.presses("?")
	golden(t, u, "help-80x24")
	u = seated(t, 160, 50)
	u.presses("w")
	golden(t, u, "question-160x50")
}

// A permission is allowed with one key, and the answer names the very request that was shown.
func TestAllow(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.sees("Bash: npm test -- login", "a allow")
	u.presses("a")
	u.did("answer r_auth-fix toolu_auth-fix@" + stamp(-2*time.Minute) + " allow")
	u.sees("auth-fix: allowed")
	u.presses("r")
	u.did("answer r_auth-fix toolu_auth-fix@" + stamp(-2*time.Minute) + " deny")
	u.presses("q")
	if !u.quit {
		t.Error("q did not leave")
	}
}

func stamp(after time.Duration) string { return fmt.Sprint(noon.Add(after).UnixMilli()) }

// A key that was meant for another request answers none: not when the request changes under the
// cursor, and not when the cursor has just moved to it.
func TestDeadKeys(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	changed := team()
	changed[0] = permission("auth-fix", "rm -rf /")
	changed[0].Request.ID = "toolu_2"
	u.changes(changed...)
	u.presses("a")
	u.did()
	u.sees("Bash: rm -rf /", "only just appeared")
	u.waits(deadKeys)
	u.presses("w 1")
	u.did()
	u.waits(deadKeys)
	u.presses("1")
	u.did("answer r_docs q1@" + stamp(-9*time.Minute) + " Short")
}

// A request that another client answered meanwhile is not shown as an error; other errors are, such as that of an
// agent that has ended.
func TestAnsweredByAnother(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "auth-fix no longer waits for it")
	u.runs[0] = run("auth-fix", agency.Working, "testing")
	u.presses("a")
	u.sees("auth-fix: already answered", "testing")
	u.seesNot("no longer waits")
	u = seated(t, 80, 24)
	u.refuse = agency.Errorf(agency.CodeInputRefused, "a user types there")
	u.presses("a")
	u.sees("a user types there")
	u = seated(t, 80, 24)
	u.refuse = agency.Errorf(agency.CodeInvalidState, "auth-fix is not live")
	u.runs[0] = run("auth-fix", agency.LabelKilled, "")
	u.runs[0].State = agency.Killed
	u.presses("a")
	u.sees("auth-fix is not live")
	u.seesNot("already answered")
}

// A reply that a run has not got is there again, also after an answer to another run.
func TestRefusedReplyIsKept(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("j")
	u.waits(deadKeys)
	u.presses("i")
	u.types("short")
	u.refuse = agency.Errorf(agency.CodeInputRefused, "a user types there")
	u.presses("enter")
	u.sees("a user types there")
	u.waits(readFor)
	u.presses("k")
	u.waits(deadKeys)
	u.presses("a j")
	u.waits(deadKeys)
	u.presses("i")
	u.sees("reply to docs> short")
	u.presses("enter i")
	u.seesNot("> short")
	u.did("answer r_docs q1@"+stamp(-9*time.Minute)+" short", "answer r_auth-fix toolu_auth-fix@"+stamp(-2*time.Minute)+" allow", "answer r_docs q1@"+stamp(-9*time.Minute)+" short")
}

// A reply is typed on the last row, and goes to the run that it was begun for.
func TestReply(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("w")
	u.waits(deadKeys)
	u.presses("i")
	u.types("Shrot")
	u.tell(tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl})
	u.types("Short, please")
	u.sees("reply to docs> Short, please")
	u.changes(slices.Insert(team(), 0, permission("urgent", "make"))...)
	u.presses("enter")
	u.did("answer r_docs q1@" + stamp(-9*time.Minute) + " Short, please")
}

// The cursor stays on its run when others come, change their group or go, and goes to a neighbour
// when its own run is removed.
func TestCursorStays(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("w j")
	u.sees("> ✕ flaky")
	u.changes(append([]api.Run{permission("new", "ls")}, team()...)...)
	u.sees("> ✕ flaky", "◐ new")
	u.changes(slices.Delete(team(), 3, 4)...)
	u.seesNot("flaky")
	u.sees("> ")
	u.changes()
	u.sees("No run yet")
	u.changes(team()...)
	u.sees("> ◐ auth-fix")
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]string{
		"afx": "auth-fix", "s:needs": "auth-fix docs", "s:failed": "flaky", "t:night": "flaky", "r:api": "flaky", "r:web s:work": "search", "index.go": "search", "zzz": "",
	} {
		u := seated(t, 80, 24)
		u.presses("/")
		u.types(filter)
		u.sees("/" + filter)
		u.presses("enter")
		got := []string{}
		for _, r := range team() {
			if strings.Contains(ansi.Strip(u.m.Frame()), " "+r.Name+" ") {
				got = append(got, r.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s shows %q, want %q", filter, got, want)
		}
		u.presses("esc")
		u.sees("auth-fix", "search")
	}
}

// While the daemon does not answer, the dashboard shows that, keeps what it has, and continues.
func TestDaemonAway(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.tell(awayMsg("it was stopped"))
	u.sees("no daemon: it was stopped", "auth-fix")
	u.runs = u.runs[1:]
	u.tell(againMsg{})
	u.sees("another daemon answers now")
	u.seesNot("auth-fix")
	u.seesNot("no daemon")
	u.tell(runsMsg{err: errors.New("boom")})
	u.sees("no daemon: ", "docs")
}

// Nothing that an agent writes reaches the terminal as a command, wherever it stands.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;pwned\x07\x1b[2J\u202e\x9bnow\r\nx\x07"
	r := permission("auth-fix", evil)
	r.Name, r.Repo, r.Handle, r.Summary, r.Problem, r.Tags = evil, "/tmp/"+evil, evil, evil, evil, []string{evil}
	other := run("other", agency.Working, "x")
	u := sit(t, 160, 50)
	u.screens[r.ID] = agency.Screen{Live: true, Revision: "1", Cursor: &agency.ScreenCursor{}, Rows: [][]agency.StyledText{{{Text: evil, Foreground: "1;5m" + evil, Background: "#12345m", Attributes: evil}}}}
	u.changes(r, other)
	u.tell(awayMsg(evil))
	u.presses("r")
	frame := u.m.Frame()
	for _, part := range strings.Split(frame, "\x1b[")[1:] {
		if codes, _, _ := strings.Cut(part, "m"); strings.Trim(codes, "0123456789;") != "" {
			t.Fatalf("a sequence that is no style: %q", part[:min(len(part), 20)])
		}
	}
	if strings.ContainsFunc(strings.ReplaceAll(frame, "\x1b[", ""), func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' }) {
		t.Errorf("a control character is in the frame: %q", frame)
	}
}

// Any size is drawn without a mistake, whatever is shown.
func TestEverySize(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	for width := 1; width < 200; width += 7 {
		for height := 1; height < 60; height += 3 {
			u.tell(tea.WindowSizeMsg{Width: width, Height: height})
			for _, keys := range []string{"w", "+", "_", "_", "?", "q", "G", "K", "g"} {
				u.presses(keys)
				lines := strings.Split(u.m.Frame(), "\n")
				if len(lines) > max(height, 1) {
					t.Fatalf("%dx%d: %d rows", width, height, len(lines))
				}
				for _, line := range lines {
					if w := ansi.StringWidth(line); w > width {
						t.Fatalf("%dx%d: %d columns: %q", width, height, w, line)
					}
				}
			}
			u.quit = false
		}
	}
}

// Each tab is read when it is shown, also for the next run.
func TestTabs(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 40)
	u.sees("[Screen]", "❯ 1. Yes")
	u.presses("j e")
	u.sees("[Why]", "rule 7: it asks", "* hook")
	u.presses("j l")
	u.sees("[Log]", "a line of the log")
	u.presses("m")
	u.sees("[Messages]", "docs help.request, waits", "Which way for r_flaky?")
	u.presses("]")
	u.sees("[Timeline]", "run.started pid 12")
	u.presses("g v")
	u.sees("[Screen]", "❯ 1. Yes")
}

func lineWith(frame, text string) string {
	for line := range strings.SplitSeq(frame, "\n") {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// A run whose alerts were put off sinks below all others, and w does not go to it.
func TestSnoozedSinks(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("z")
	runs := team()
	runs[0].SnoozedUntil = new(noon.Add(time.Hour))
	u.changes(runs...)
	u.sees("◐1", "SNOOZED 1")
	frame := ansi.Strip(u.m.Frame())
	if strings.Index(frame, "auth-fix") < strings.Index(frame, "idle") {
		t.Errorf("it is not at the end:\n%s", frame)
	}
	u.presses("w w w")
	u.sees("> ◐ docs")
	u.presses("G z")
	u.sees("there is no alert to snooze")
	u.changes(team()...) // it is over
	u.sees("◐2")
	u.seesNot("SNOOZED")
}

// A snooze can be taken back.
func TestSnoozeTakenBack(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("w z")
	u.did("snooze [a1] 3600000")
	u.runs[1].SnoozedUntil = new(noon.Add(time.Hour))
	u.changes(u.runs...)
	u.sees("SNOOZED 1")
	u.presses("G z")
	u.did("snooze [a1] 1")
	u.sees("docs no longer snoozed")
}

// Those that ask come first, then what failed, is stuck, offers its work or waits, the longest first.
func TestOrder(t *testing.T) {
	t.Parallel()
	runs := []api.Run{}
	for i, l := range []agency.Label{agency.Working, agency.Stalled, agency.Waiting, agency.ReadyForReview, agency.Blocked, agency.LabelFailed, agency.NeedsInput, agency.NeedsAttention} {
		r := run(strings.ReplaceAll(string(l), " ", "-"), l, "")
		r.Since = noon.Add(time.Duration(i) * time.Minute)
		runs = append(runs, r)
	}
	u := sit(t, 80, 40, runs...)
	frame, at := ansi.Strip(u.m.Frame()), 0
	for _, text := range []string{"NEEDS YOU 2", "needs-input", "needs-attention", "FAILED 1", "STUCK 2", "blocked", "stalled", "READY 1", "WAITING 1", "WORKING 1"} {
		if i := strings.Index(frame[at:], text); i < 0 {
			t.Fatalf("%s is not below what comes before it:\n%s", text, frame)
		} else {
			at += i
		}
	}
	u.sees("1 of 5")
	u.presses("w w w w w w")
	u.sees("2 of 5", "> ◐ needs-attention")
}

// The list can be grouped by repository, session and tag. The cursor stays on its run.
func TestGroups(t *testing.T) {
	t.Parallel()
	runs := team()
	runs[3].Tags, runs[3].Type = []string{"nightly", "batch"}, "batch" // a type is not a tag to group by
	runs[2].Member = &agency.Membership{Session: "20261126-120000-abcdef12", Name: "release", Agent: "search"}
	u := seated(t, 80, 40)
	u.changes(runs...)
	u.presses("o")
	u.sees("by repository", " api 1  /home/me", " web 5  ◐2", "> ◐ auth-fix")
	u.seesNot("NEEDS YOU")
	u.presses("o")
	u.sees("by session", " release 1", " no session 5")
	u.presses("o")
	u.sees("by tag", " nightly 1", " no tag 5", "> ◐ auth-fix")
	u.presses("o")
	u.sees("NEEDS YOU 2")
}

// w says when a filter hides what needs the user.
func TestNextBehindAFilter(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.sees("1 of 2")
	u.presses("w")
	u.sees("2 of 2")
	u.presses("/")
	u.types("flaky")
	u.presses("enter w")
	u.sees("0 of 2, 2 hidden", "the filter hides what needs you (2): esc ends it")
	u.presses("esc w")
	u.sees("> ◐ auth-fix", "1 of 2")
}

// A message to the user changes a page, but no run: the runs are not asked for.
func TestEventAboutNoRun(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	runs, alerts := 0, 0
	d := &u.m.desk.Daemon
	listRuns, listAlerts := d.ListRuns, d.ListAlerts
	d.ListRuns = func(ctx context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
		runs++
		return listRuns(ctx, req)
	}
	d.ListAlerts = func(ctx context.Context, req api.ListAlertsRequest) (api.ListAlertsResponse, error) {
		alerts++
		return listAlerts(ctx, req)
	}
	u.presses("A")
	u.tell(messageOf(page.Change{}))
	if runs != 0 || alerts != 2 {
		t.Errorf("%d times runs and %d times alerts were asked for", runs, alerts)
	}
	u.tell(messageOf(page.Change{All: true}))
	if runs != 1 {
		t.Errorf("%d times runs were asked for", runs)
	}
}

// A click on the footer does what the key does, and one on a tab shows it.
func TestClicks(t *testing.T) {
	t.Parallel()
	u := seated(t, 120, 24)
	at := func(text string) (click tea.MouseClickMsg) {
		for y, line := range strings.Split(ansi.Strip(u.m.Frame()), "\n") {
			if before, _, found := strings.Cut(line, text); found {
				click = tea.MouseClickMsg{X: ansi.StringWidth(before), Y: y, Button: tea.MouseLeft}
			}
		}
		return click
	}
	u.tell(at("allow  r"))
	u.did("answer r_auth-fix toolu_auth-fix@" + stamp(-2*time.Minute) + " allow")
	u.tell(at("Timeline"))
	u.sees("[Timeline]", "run.started")
	u.tell(at("Diff"))
	u.sees("[Diff]", "+3     -1  login.go")
	u.tell(at("flaky"))
	u.sees("> ✕ flaky")
}

// In the help, / finds a key by letters of what it does.
func TestHelpFinds(t *testing.T) {
	t.Parallel()
	u := seated(t, 80, 24)
	u.presses("? j")
	u.tell(tea.KeyPressMsg{Code: tea.KeyPgDown})
	u.sees("Look")
	u.presses("/")
	u.types("hide")
	u.sees("hide the pane")
	u.presses("enter")
	u.seesNot("[Screen]")
}

// The options that an agent names itself are those of its question.
func TestNamedOptions(t *testing.T) {
	t.Parallel()
	r := run("tone", agency.NeedsInput, "Which tone?")
	r.Request = &agency.Request{ID: "q9", Kind: agency.AsksQuestion, Text: "Which tone?", At: noon, Options: []string{"Short", "Long"}}
	u := sit(t, 80, 24, r)
	u.waits(deadKeys)
	u.sees("1 Short  2 Long")
	u.presses("2")
	u.did("answer r_tone q9@" + stamp(0) + " Long")
	u.presses("_ 2")
	u.did()
	u.sees("not all of the question is seen")
}

// allBindings returns the keys of all screens.
func allBindings(m *Model) []page.Binding {
	r := run("any", agency.Working, "")
	table := m.board.Bindings()
	for _, p := range []page.Page{diff.New(m.desk, &r), form.New(m.desk), inbox.New(m.desk), session.New(m.desk), queue.New(m.desk)} {
		table = append(table, p.Bindings()...)
	}
	everywhere := m.pages()
	for _, b := range m.bindings() {
		if b.Group == groupAll {
			everywhere = append(everywhere, b)
		}
	}
	return append(table, everywhere...)
}

// An event about one run brings that run anew: the others are not asked for, and its row goes where
// it belongs now.
func TestOneRunChanges(t *testing.T) {
	t.Parallel()
	u := sit(t, 160, 50, team()...)
	u.sees("FAILED 1")
	asked := [][]agency.RunID{}
	list := u.m.desk.Daemon.ListRuns
	u.m.desk.Daemon.ListRuns = func(ctx context.Context, req api.ListRunsRequest) (api.ListRunsResponse, error) {
		asked = append(asked, req.RunIDs)
		return list(ctx, req)
	}
	added := run("added", agency.Working, "has begun")
	u.runs = append(u.runs, added)
	u.tell(changedMsg{added.ID})
	u.sees("has begun")
	u.runs[len(u.runs)-1].Status = agency.LabelFailed
	u.tell(changedMsg{added.ID})
	u.sees("FAILED 2")
	u.runs = u.runs[:len(u.runs)-1]
	u.tell(changedMsg{added.ID})
	u.sees("FAILED 1")
	u.seesNot("has begun")
	if diff := cmp.Diff([][]agency.RunID{{added.ID}, {added.ID}, {added.ID}}, asked); diff != "" {
		t.Fatal(diff)
	}
}
