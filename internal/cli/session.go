package cli

import (
	"github.com/spf13/cobra"

	"agency/internal/cli/command"
)

// newSession returns the command agency session.
func newSession(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "session",
		Short:   "Run whole plans of agents that depend on each other",
		GroupID: "run",
		Long: `A session carries out a plan: agents, each with a task, of which some come after others. Every agent is a run with a worktree and a
branch of its own. docs/plan.md describes plans.`,
		Example: "  agency session plan plan.yaml\n  agency session plan --agents claude_code:3,codex:2 --prompt 'fix the login test'",
	},
		newSessionPlan(d), newSessionStart(d), newSessionPause(d), newSessionResume(d), newSessionCancel(d), newSessionRetry(d), newSessionWait(d), newSessionShow(d), newSessionWatch(d), newSessionLogs(d),
		newSessionList(d), newSessionRemove(d), newSessionCreate(d), newSessionUpdate(d),
	)
}
