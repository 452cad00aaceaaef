package terminal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/test/fixture"
)

// asksPermission is a Claude Code without a model: it asks for a permission with its hook and its
// dialog, and prints the key that it was answered with.
const asksPermission = `#!/bin/sh
hook() { printf '{"session_id": "s", "hook_event_name": "%s", "tool_name": "Bash", "tool_input": {"command": "touch made"}}' "$1" | "$AGENCY" hook claude_code; }
case $1 in --version) echo '2.1.329 (Claude Code)'; exit ;; esac
stty raw -echo
hook PreToolUse
hook PermissionRequest
printf '────────────────────\r\n Bash command\r\n touch made\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel · Tab to amend\r\n'
key=$(head -c 1 | od -An -c | tr -d ' ')
printf '\033[2J\033[Hanswered with %s\r\n' "$key"
hook PostToolUse
exec sleep 1000
`

// permissions starts a run whose agent waits for a permission.
func permissions(t *testing.T, f *fixture.Fixture, name string) api.Run {
	t.Helper()
	program := filepath.Join(f.Root, "claude")
	script := strings.ReplaceAll(asksPermission, "$AGENCY", filepath.Join(bin, "agency"))
	config, err := os.ReadFile(f.Config)
	if err == nil && !strings.Contains(string(config), program) {
		err = os.WriteFile(f.Config, append(config, "\n[runners.claude_code]\nexec = "+strconv.Quote(program)+"\n"...), 0o600)
	}
	if err == nil {
		err = fixture.WriteProgram(program, script)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := decode[api.RunResponse](t, f, "run", "--runner", "claude_code", "--name", name, "--prompt", "go").Run
	succeeds(t, f.Agency("wait", string(r.ID), "--for", "needs-input", "--timeout", "1m"))
	return r
}

// sitsAt starts the dashboard in a terminal of the user.
func sitsAt(t *testing.T, f *fixture.Fixture, columns, rows int) *pane {
	t.Helper()
	p := shell(t, server(t, f), columns, rows)
	p.enters("clear; agency tui; echo left with $?")
	p.shows("? help")
	return p
}

// A permission is allowed with one key, from what the screen shows of it, and the terminal is as it
// was when the user leaves.
func TestTUIAllows(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "other")
	permissions(t, f, "asks")
	p := sitsAt(t, f, 80, 24)
	p.shows("> ◐ asks")
	p.shows("Bash: touch made")
	p.shows("❯ 1. Yes") // the screen of the agent
	p.until("the key works", func(string) bool {
		p.types("a") // it does nothing in the first half second
		screen := p.screen()
		return strings.Contains(screen, "answering asks") || strings.Contains(screen, "asks: allowed") || strings.Contains(screen, "answered with 1")
	})
	p.shows("answered with 1")
	p.until("the run works on", func(screen string) bool {
		return strings.Contains(screen, "◐0") && strings.Contains(screen, "● asks")
	})
	p.types("q")
	p.line("left with 0")
	p.enters("stty -a | grep -c ' -echo '; echo counted") // the terminal is as it was
	p.until("no line that says -echo", func(screen string) bool { return strings.Contains(screen, "\n0\ncounted") })
}

// What another client answers meanwhile is seen, and is not answered again.
func TestTUIAnsweredByAnother(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	first := permissions(t, f, "first")
	p := sitsAt(t, f, 120, 40)
	p.shows("> ◐ first")
	succeeds(t, f.Agency("answer", string(first.ID), "deny"))
	p.shows("answered with 033")
	p.until("it no longer asks", func(screen string) bool { return strings.Contains(screen, "◐0") })
	p.types("a")
	p.shows("first asks nothing")
	second := permissions(t, f, "second")
	p.shows("◐ second")
	p.types("w")
	p.shows("> ◐ second")
	p.keys("Enter")
	p.shows("F12: leave")
	p.shows("Do you want to proceed?")
	p.keys("F12")
	p.shows("? help")
	if got := show(t, f, second).Run.Status; got != agency.NeedsInput {
		t.Errorf("after a look the run is %s", got)
	}
}

// The dashboard outlives the daemon: it shows what the next one knows.
func TestTUIDaemonKilled(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "one")
	p := sitsAt(t, f, 80, 24)
	p.shows("hello from the agent")
	pid := decode[api.DaemonStatusResponse](t, f, "daemon", "status").PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	start(t, f, echo, "--name", "two")
	p.shows("● two")
	succeeds(t, f.Agency("send", "one", "news"))
	p.types("g")
	p.until("what the agent wrote meanwhile", func(string) bool {
		p.types("j")
		return strings.Contains(p.screen(), "got news")
	})
	succeeds(t, f.Agency("daemon", "stop"))
	p.shows("no daemon: it was stopped")
	succeeds(t, f.Agency("ls"))
	p.until("it is over", func(screen string) bool {
		return !strings.Contains(screen, "no daemon") && strings.Contains(screen, "● two")
	})
	p.types("q")
	p.line("left with 0")
}

// A terminal that cannot show it is refused, with what can.
func TestTUIRefuses(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	refused(t, f.Agency("tui"), agency.CodeUsage, "needs a terminal", "agency tui --plain")
	p := shell(t, server(t, f), 100, 24)
	p.enters("clear; TERM=dumb agency tui; echo left with $?")
	p.line("left with 2")
	p.shows("TERM=dumb")
	p.enters("clear; NO_COLOR=1 agency tui")
	p.shows("No run yet")
	p.enters("q")
}

// A terminal that grows is drawn whole, and nothing of an older frame stays.
func TestTUIResized(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, echo, "--name", "one")
	p := sitsAt(t, f, 80, 24)
	p.shows("[Screen]")
	succeeds(t, p.tmux("resize-window", "-t", p.id, "-x", "120", "-y", "40"))
	p.until("the pane is beside the list", func(screen string) bool { return strings.Contains(strings.Split(screen, "\n")[1], "[Screen]") })
	p.types("?")
	p.until("the keys and nothing else", func(screen string) bool {
		return strings.HasPrefix(screen, " agency") && strings.Contains(screen, "K         scroll the pane up") && !strings.ContainsAny(screen, "│─┄")
	})
	p.types("q")
	p.shows("[Screen]")
}

// A user reads what a run changed, comments on a line, and the agent gets the comment.
func TestTUIDiff(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	start(t, f, `printf 'blue\nred\n' >colour.txt; `+echo, "--name", "paint")
	p := sitsAt(t, f, 120, 40)
	p.shows("hello from the agent")
	p.types("d")
	p.shows("> A colour.txt")
	p.shows("    2 +red")
	p.types("jjj")
	p.types("c")
	p.shows("comment on colour.txt:2>")
	p.types("make it green")
	p.keys("Enter")
	p.shows("◆ make it green")
	p.types("S")
	p.shows("send 1 comment to the agent of paint?")
	p.types("y")
	p.shows("◆ (sent) make it green")
	p.types("x")
	p.shows("1/1 reviewed")
	p.types("qq")
	p.line("left with 0")
	p.enters("clear; agency tui")
	p.shows("> ● paint")
	p.types("d")
	p.shows("1/1 reviewed") // it outlived the dashboard
	p.types("q")
	p.shows("got > red")
	p.shows("got make it green")
}

// agency alone is the dashboard where that can be shown, and the help where it cannot.
func TestTUIAlone(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	p := shell(t, server(t, f), 80, 24)
	p.enters("clear; agency; echo left with $?")
	p.shows("No run yet")
	p.types("q")
	p.line("left with 0")
	p.enters("clear; TERM=dumb agency | tail -3; agency --help | grep -c See.also")
	p.line("1")
	p.enters("clear; agency tui --plain; echo left with $?")
	p.shows("no run yet")
	p.enters("q")
	p.line("left with 0")
}

// reversedHello is the text behind an attribute of tmux, with only colours between.
var reversedHello = regexp.MustCompile(`\[[0-9;]*7m(\x1b\[[0-9;]*m)*hello`)

// A run that was put off sinks below the others, and its terminal can be searched.
func TestTUISnoozesAndFinds(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	permissions(t, f, "asks")
	start(t, f, echo, "--name", "other")
	p := sitsAt(t, f, 80, 24)
	p.shows("> ◐ asks")
	p.until("there is an alert", func(string) bool { return strings.Contains(succeeds(t, f.Agency("alerts")), "asks") })
	p.types("z")
	p.shows("SNOOZED 1")
	p.until("it is the last one", func(screen string) bool {
		return strings.Contains(screen, "◐0") && strings.Index(screen, "● other") < strings.Index(screen, "◐ asks")
	})
	p.types("z")
	p.shows("NEEDS YOU 1")
	p.types("z")
	p.shows("SNOOZED 1")
	p.types("gv+")
	p.shows("hello from the agent")
	p.types("/hello")
	p.keys("Enter")
	p.until("the text is marked", func(string) bool {
		return reversedHello.MatchString(succeeds(t, p.tmux("capture-pane", "-p", "-e", "-t", p.id)))
	})
}

var secondsOfFirst = regexp.MustCompile(`● first [1-9]\d*s → `)

// A plan is checked and started from the form, and its session shows what holds it up.
func TestTUIPlan(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	plan := "agents:\n  - {id: first, runner: shell, prompt: exec sleep 1000}\n  - {id: second, runner: shell, prompt: exit 0, after: [first]}\n"
	if err := os.WriteFile(filepath.Join(f.Root, "plan.yaml"), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sitsAt(t, f, 80, 24)
	p.types("n")
	p.shows("> prompt")
	p.keys("Up")
	p.shows("> plan")
	p.types("missing.yaml")
	p.keys("C-s")
	p.shows("the plan missing.yaml does not exist")
	p.keys("C-u")
	p.types(filepath.Join(f.Root, "plan.yaml"))
	p.keys("C-s")
	p.shows("after first")
	p.shows("ctrl-s start 2 agents")
	p.keys("C-s")
	p.shows("critical path  ")
	p.until("the first agent runs", func(screen string) bool {
		return strings.Contains(screen, "● first") && strings.Contains(screen, "→ ○ second")
	})
	p.until("keys are taken, which are not just after the form closed by itself", func(screen string) bool {
		p.types("g")
		return secondsOfFirst.MatchString(screen)
	})
	p.types("xy")
	p.shows("cancelled")
}

// A signal ends the dashboard, also one that rests, and leaves the terminal as it was.
func TestTUIEndedBySignal(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	p, pid := shell(t, server(t, f), 80, 24), filepath.Join(f.Root, "pid")
	for _, signal := range []string{"TERM", "INT", "TERM", "TERM"} {
		p.enters("clear; sh -c 'echo $$ >" + pid + "; exec agency tui'; echo left")
		p.shows("No run yet")
		succeeds(t, f.Command("", "sh", "-c", "kill -"+signal+" $(cat "+pid+")"))
		p.line("left")
	}
	p.enters("clear; stty -a | grep -ow icanon")
	p.line("icanon")
}
