// Package session holds agency session: the commands that run whole plans of agents.
package session

import (
	"github.com/spf13/cobra"

	"agency/internal/cli/command"
)

// New returns the command agency session.
func New(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "session",
		Short:   "Run plans of agents that depend on each other",
		GroupID: "run",
		Long: `A session executes a plan: agents, each with a task, and their order. Every
agent is a run with its own worktree and branch. docs/plan.md describes plans.`,
		Example: "  agency session plan plan.yaml\n  agency session plan --agents claude_code:3,codex:2 --prompt 'fix the test'",
	},
		newPlan(d), newStart(d), newPause(d), newResume(d), newCancel(d), newRetry(d), newWait(d), newShow(d), newWatch(d), newLogs(d),
		newList(d), newRemove(d), newCreate(d), newUpdate(d),
	)
}
