package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/test/conformance/modelserver"
)

// A permission that a real program asks for is allowed with one key of the dashboard, which shows all
// that it asks for.
func TestDashboard(t *testing.T) {
	t.Parallel()
	for _, runner := range runners() {
		for _, tt := range setups[agency.RunnerKind(runner)].answers {
			if tt.name != "allow" {
				continue
			}
			t.Run(runner, func(t *testing.T) {
				t.Parallel()
				binary, a := installed(t, runner)
				f := newFixture(t, binary, a, modelserver.Scenario{tt.ask, {Text: "All done."}})
				run := f.start(a, tt.args...)
				f.openDashboard()
				f.until("a dashboard that shows the request", func() bool {
					shown := f.dashboard()
					return strings.Contains(shown, "NEEDS YOU 1") && strings.Contains(shown, "touch made.txt") && strings.Contains(shown, "a allow")
				})
				var pressed time.Time
				f.until("what it was allowed to do", func() bool {
					if time.Since(pressed) >= again && strings.Contains(f.dashboard(), "a allow") {
						f.output("tmux", "-S", f.dashboardSocket(), "send-keys", "a")
						pressed = time.Now()
					}
					_, err := os.Stat(filepath.Join(run.Worktree, tt.made))
					return err == nil
				})
				f.until("a dashboard where nothing asks", func() bool { return !strings.Contains(f.dashboard(), "a allow") })
			})
		}
	}
}

func (f *fixture) dashboardSocket() string { return filepath.Join(f.dir, "user") }

// openDashboard opens the dashboard in a terminal of the user.
func (f *fixture) openDashboard() {
	f.t.Helper()
	f.output("tmux", "-S", f.dashboardSocket(), "-f", os.DevNull, "new-session", "-d", "-x", "120", "-y", "40", f.binary+" tui")
	f.t.Cleanup(func() { _, _ = f.command("tmux", "-S", f.dashboardSocket(), "kill-server") })
}

// dashboard returns what the dashboard shows.
func (f *fixture) dashboard() string {
	f.t.Helper()
	return f.output("tmux", "-S", f.dashboardSocket(), "capture-pane", "-p")
}
