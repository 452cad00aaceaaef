package terminal_test

import (
	"strings"
	"testing"

	"agency/test/fixture"
)

// The prefix and a show what the run asks over its terminal, and take the answer. Enter alone
// leaves it unanswered.
func TestAnswerInThePopup(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	r := start(t, f, "printf '%s' '"+asking+"' >.agency/state/new && mv .agency/state/new .agency/state/runner_status.json; "+echo, "--name", "login")
	succeeds(t, f.Agency("wait", "login", "--for", "needs-input", "--timeout", "1m"))
	shell(t, f.Tmux, 80, 24)
	// The client runs in a pane of another server, so that the test sees the popup.
	seen := shell(t, server(t, f), 80, 24)
	seen.enters("env -u TMUX tmux -S " + f.Socket + " attach-session -t you")
	seen.shows("[you]")
	seen.enters("agency attach login")
	seen.shows("prefix a: answer")
	for _, answer := range []string{"", "the old one"} {
		seen.keys("C-b", "a")
		seen.shows("your answer, or Enter to leave it:")
		seen.shows("login asks: Welche")
		seen.enters(answer)
		seen.until("no popup", func(screen string) bool { return !strings.Contains(screen, "your answer") })
	}
	paneOf(t, f, r).line("got the old one")
}
