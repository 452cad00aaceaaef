package tui

import (
	"strings"
	"testing"
	"time"

	"agency"
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
	u.presses("j M")
	u.sees("into its branch?")
	u.presses("y")
	u.sees("merged")
	u.presses("L")
	u.sees("to land in its branch?")
	u.presses("y")
	u.sees("waits to land: Q")
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
	u.sees("auth-fix: it still runs (x stops it)")
	u.presses("G b R y enter")
	u.did("snapshot r_idle", "resume r_idle", "exec")
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
	u.sees("auth-fix continues in another mode")
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
