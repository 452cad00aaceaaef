package cli

import "github.com/spf13/cobra"

func (a *App) sessionCommand() *cobra.Command {
	return group(cobra.Command{
		Use:     "session",
		Short:   "Run whole plans of agents that depend on each other",
		GroupID: "run",
		Long: `A session carries out a plan: agents, each with a task, of which some come after others. Every agent is a run with a worktree and a
branch of its own. docs/plan.md describes plans.`,
		Example: "  agency session plan plan.yaml\n  agency session plan --agents claude_code:3,codex:2 --prompt 'fix the login test'",
	},
		a.sessionPlan(), a.sessionStart(), a.sessionPause(), a.sessionResume(), a.sessionCancel(), a.sessionRetry(), a.sessionWait(), a.sessionShow(), a.sessionWatch(), a.sessionLogs(),
		a.sessionList(), a.sessionRemove(), a.sessionCreate(), a.sessionUpdate(),
	)
}
