package terminal_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agency/test/fixture"
)

// pane is a terminal in a tmux server, as a user sees it and types into it.
type pane struct {
	t    *testing.T
	tmux func(args ...string) fixture.Result
	id   string
}

// keys presses keys, by tmux's names for them.
func (p *pane) keys(keys ...string) {
	p.t.Helper()
	succeeds(p.t, p.tmux(slices.Concat([]string{"send-keys", "-t", p.id}, keys)...))
}

// types types a text.
func (p *pane) types(text string) {
	p.t.Helper()
	succeeds(p.t, p.tmux("send-keys", "-t", p.id, "-l", "--", text))
}

// enters types a line and Enter.
func (p *pane) enters(line string) {
	p.t.Helper()
	p.types(line)
	p.keys("Enter")
}

// screen returns the visible text.
func (p *pane) screen() string {
	p.t.Helper()
	return succeeds(p.t, p.tmux("capture-pane", "-p", "-t", p.id))
}

// is returns the value of a tmux format for the pane.
func (p *pane) is(format string) string {
	p.t.Helper()
	return strings.TrimSpace(succeeds(p.t, p.tmux("display-message", "-p", "-t", p.id, format)))
}

// until waits for a condition of the screen.
func (p *pane) until(what string, ok func(screen string) bool) {
	p.t.Helper()
	await(p.t, what, func() (bool, string) {
		screen := p.screen()
		return ok(screen), screen
	})
}

// shows waits until a text is visible.
func (p *pane) shows(text string) {
	p.t.Helper()
	p.until(strconv.Quote(text)+" is shown", func(screen string) bool { return strings.Contains(screen, text) })
}

// line waits until a text is visible as a line of its own.
func (p *pane) line(text string) {
	p.t.Helper()
	p.until(strconv.Quote(text)+" is a line", func(screen string) bool {
		return slices.Contains(strings.Split(screen, "\n"), text)
	})
}

// server returns a tmux server of the user, beside the one of the agents.
func server(t *testing.T, f *fixture.Fixture) func(args ...string) fixture.Result {
	t.Helper()
	socket := filepath.Join(f.Root, "own")
	tmux := func(args ...string) fixture.Result {
		return f.Command("", "tmux", slices.Concat([]string{"-u", "-S", socket, "-f", "/dev/null"}, args)...)
	}
	t.Cleanup(func() { tmux("kill-server") })
	return tmux
}

// shell starts an interactive shell in a session "you" of a server.
func shell(t *testing.T, tmux func(args ...string) fixture.Result, columns, rows int) *pane {
	t.Helper()
	out := succeeds(t, tmux("new-session", "-d", "-s", "you", "-P", "-F", "#{pane_id}",
		"-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows), "env", "PS1=you> ", "sh", "-i"))
	p := &pane{t: t, tmux: tmux, id: strings.TrimSpace(out)}
	p.shows("you>")
	return p
}

// foreground waits until a command, which no other process may have, is the foreground process of
// its terminal.
func foreground(t *testing.T, command string) {
	t.Helper()
	await(t, command+" is in the foreground", func() (bool, string) {
		out, err := exec.Command("ps", "-A", "-o", "stat=,args=").Output()
		if err != nil {
			return false, err.Error()
		}
		for line := range strings.Lines(string(out)) {
			stat, args, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.TrimSpace(args) == command && strings.Contains(stat, "+") && !strings.Contains(stat, "T") {
				return true, ""
			}
		}
		return false, string(out)
	})
}
