package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/cli/command"
)

const rootExample = `  agency run --prompt "fix the login test"
  agency ls
  agency attach 1122-fix-the-login-a1b2`

func (a *App) root(d *command.Deps) *cobra.Command {
	root := &cobra.Command{
		Use:           "agency",
		Short:         "Run a team of coding agents on your git repositories",
		Long:          "agency runs coding agents on your git repositories: each run in its own worktree,\nbranch and supervised tmux session.",
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true, // as of all commands: what can be given is listed right below
	}
	// The library's own --version and templates would keep every method in the program, a tenth of its size.
	version := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version && len(args) == 0 {
			return printVersion(d)
		}
		return command.HelpOrUnknown(cmd, args)
	}
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { help(d, cmd, args) })
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if d.Dir == "" {
			return agency.Errorf(agency.CodeInvalidPath, "the current directory is gone").WithHint(`cd "$HOME"`)
		}
		return nil
	}
	root.PersistentFlags().BoolVar(&d.JSON, "json", false, "print exactly one JSON envelope on stdout")
	root.PersistentFlags().StringVar(&d.ConfigPath, "config", "", "read this configuration `FILE` instead of the default one")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		wrong := agency.Errorf(agency.CodeUsage, "%s", flagProblem(err))
		if near := nearestFlag(cmd, err); near != "" {
			return wrong.WithHint("did you mean --%s", near)
		}
		return wrong.WithHint("%s --help", cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "inspect", Title: "Inspect:"},
		&cobra.Group{ID: "maintain", Title: "Maintain:"},
	)
	root.SetHelpCommandGroupID("maintain")
	root.SetCompletionCommandGroupID("maintain")
	root.AddCommand(
		newInit(d), newRun(d, a.Exec), newSession(d), newAttach(d, a.Exec), newSend(d), newAnswer(d), newStop(d), newResume(d), newRemove(d), newWait(d), newReport(d),
		newList(d), newShow(d), newAlerts(d), newMessages(d), newTags(d), newFlag(d), newUnflag(d), newPresets(d), newWatchdog(d), newExplain(d), newDiff(d), newLogs(d), newEvents(d),
		newDoctor(d), newSnapshot(d), newCollect(d), newDatabase(d, DatabaseParts{Restore: a.RestoreDatabase, Rebuild: a.RebuildDatabase}), newTrust(d), newNotify(d), newConfig(d), newDaemon(d, DaemonParts{Run: a.RunDaemon, Log: a.DaemonLog}), newMcp(d), newSchema(d), newVersion(d),
	)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE, help.DisableFlagsInUseLine = helpOn, true
	// cobra's own answer to a shell that it does not know is help and success.
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE, completion.DisableFlagsInUseLine = cobra.ArbitraryArgs, command.HelpOrUnknown, true
	return root
}

// helpOn is agency help COMMAND.
func helpOn(help *cobra.Command, args []string) error {
	cmd, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return command.UnknownCommand(cmd, rest[0])
	}
	return cmd.Help()
}

// nearestFlag is the flag that might have been meant by one that does not exist, or "".
func nearestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	known := []string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return agency.Nearest(unknown.GetSpecifiedName(), known)
}

// flagProblem says what is wrong with a flag. Of wrong values the library would tell in the words of the language's parsers.
func flagProblem(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	want := ""
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		want = "true or false"
	case "int", "int64":
		want = "a whole number"
	case "duration":
		want = "a duration such as 90s, 30m, 2h or 7d"
	default:
		return err.Error()
	}
	return fmt.Sprintf("--%s must be %s, not %q", invalid.GetFlag().Name, want, invalid.GetValue())
}
