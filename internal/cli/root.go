package cli

import (
	"github.com/spf13/cobra"

	"agency"
)

const rootExample = `  agency run --prompt "fix the login test"
  agency ls
  agency attach 1122-fix-the-login-a1b2`

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "agency",
		Short:         "Run a team of coding agents on your git repositories",
		Long:          "agency runs coding agents on your git repositories: each run in its own worktree, branch and supervised tmux session.",
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		Version:       a.Version,
	}
	root.SetVersionTemplate("agency {{.Version}}\n")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print exactly one JSON envelope on stdout")
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "read this configuration `FILE` instead of the default one")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return agency.Errorf(agency.CodeUsage, "%s", err.Error()).WithHint("%s --help", cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Work:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "care", Title: "Care:"},
	)
	root.SetHelpCommandGroupID("care")
	root.SetCompletionCommandGroupID("care")
	root.AddCommand(
		a.runCommand(), a.attachCommand(), a.sendCommand(), a.stopCommand(), a.removeCommand(), a.waitCommand(),
		a.listCommand(), a.showCommand(), a.logsCommand(), a.eventsCommand(),
		a.doctorCommand(), a.configCommand(), a.daemonCommand(), a.versionCommand(),
		a.wrapperCommand(),
	)
	return root
}
