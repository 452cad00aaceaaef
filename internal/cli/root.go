package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/cli/alert"
	"agency/internal/cli/command"
	"agency/internal/cli/inspect"
	"agency/internal/cli/maintain"
	"agency/internal/cli/run"
	"agency/internal/cli/session"
)

const rootExample = `  agency run "fix the login test"
  agency ls
  agency attach 1122-fix-the-login-a1b2`

// root returns the tree of commands.
func (a *App) root(d *command.Deps) *cobra.Command {
	root := &cobra.Command{
		Use:           "agency",
		Short:         "Run a team of coding agents on your git repositories",
		Long:          "agency runs coding agents on your git repositories: each run in its own worktree,\nbranch and supervised tmux session.",
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true, // as for all commands: the flags are listed right below
	}
	// The library's own --version and templates would keep every method in the binary, a tenth of
	// its size.
	version := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version && len(args) == 0 {
			return maintain.PrintVersion(d)
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
	root.AddCommand(a.runs(d)...)
	root.AddCommand(a.maintenance(d)...)
	root.AddCommand(
		session.New(d),
		inspect.NewList(d), inspect.NewStatus(d), inspect.NewShow(d), inspect.NewExplain(d), inspect.NewDiff(d), inspect.NewLogs(d), inspect.NewEvents(d), inspect.NewWait(d),
		alert.NewAlerts(d), alert.NewMessages(d), alert.NewNotify(d), alert.NewWatchdog(d),
	)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE, help.DisableFlagsInUseLine = helpOn, true
	// For an unknown shell, cobra itself prints help and reports success.
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE, completion.DisableFlagsInUseLine = cobra.ArbitraryArgs, command.HelpOrUnknown, true
	return root
}

// runs returns the commands of package run.
func (a *App) runs(d *command.Deps) []*cobra.Command {
	return []*cobra.Command{
		run.NewRun(d, a.Exec), run.NewAttach(d, a.Exec), run.NewNext(d, a.Exec), run.NewSend(d), run.NewAnswer(d), run.NewStop(d), run.NewResume(d), run.NewRemove(d),
		run.NewFlag(d), run.NewUnflag(d), run.NewTags(d), run.NewReport(d), run.NewMCP(d), run.NewLine(d),
	}
}

// maintenance returns the commands of package maintain.
func (a *App) maintenance(d *command.Deps) []*cobra.Command {
	return []*cobra.Command{
		maintain.NewInit(d), maintain.NewPresets(d), maintain.NewDoctor(d), maintain.NewSnapshot(d), maintain.NewCollect(d),
		maintain.NewDatabase(d, maintain.DatabaseParts{Restore: a.RestoreDatabase, Rebuild: a.RebuildDatabase}),
		maintain.NewTrust(d), maintain.NewConfig(d), maintain.NewDaemon(d, maintain.DaemonParts{Run: a.RunDaemon, Log: a.DaemonLog}),
		maintain.NewService(d), maintain.NewSchema(d), maintain.NewAPI(d), maintain.NewVersion(d),
	}
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

// dangerous are flags that no mistyped flag may become.
var dangerous = []string{"apply", "dangerously-skip-permissions", "delete-branch", "discard", "force"}

// nearestFlag returns the flag nearest to one that does not exist, or "". It never proposes one that
// destroys something.
func nearestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	known := []string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains(dangerous, f.Name) && (f.Name != "all" || cmd.Name() != "stop") {
			known = append(known, f.Name)
		}
	})
	return agency.Nearest(unknown.GetSpecifiedName(), known)
}

// flagProblem returns what is wrong with a flag. For wrong values the library would quote the
// errors of Go's parsers.
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
