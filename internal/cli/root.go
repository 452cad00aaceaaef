package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
)

const rootExample = `  agency run --prompt "fix the login test"
  agency ls
  agency attach 1122-fix-the-login-a1b2`

func (a *App) root() *cobra.Command {
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
			return a.printVersion()
		}
		return helpOrUnknown(cmd, args)
	}
	root.SetHelpFunc(a.help)
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.Dir == "" {
			return agency.Errorf(agency.CodeInvalidPath, "the current directory is gone").WithHint(`cd "$HOME"`)
		}
		return nil
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print exactly one JSON envelope on stdout")
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "read this configuration `FILE` instead of the default one")
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
		a.initCommand(), a.runCommand(), a.sessionCommand(), a.attachCommand(), a.sendCommand(), a.answerCommand(), a.stopCommand(), a.resumeCommand(), a.removeCommand(), a.waitCommand(), a.reportCommand(),
		a.listCommand(), a.showCommand(), a.alertsCommand(), a.messagesCommand(), a.tagsCommand(), a.flagCommand(), a.unflagCommand(), a.presetsCommand(), a.watchdogCommand(), a.explainCommand(), a.diffCommand(), a.logsCommand(), a.eventsCommand(),
		a.doctorCommand(), a.snapshotCommand(), a.collectCommand(), a.databaseCommand(), a.trustCommand(), a.notifyCommand(), a.configCommand(), a.daemonCommand(), a.mcpCommand(), a.schemaCommand(), a.versionCommand(),
	)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE, help.DisableFlagsInUseLine = helpOn, true
	// cobra's own answer to a shell that it does not know is help and success.
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE, completion.DisableFlagsInUseLine = cobra.ArbitraryArgs, helpOrUnknown, true
	return root
}

// helpOn is agency help COMMAND.
func helpOn(help *cobra.Command, args []string) error {
	cmd, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return unknownCommand(cmd, rest[0])
	}
	return cmd.Help()
}

// unknownCommand says which command might have been meant.
func unknownCommand(cmd *cobra.Command, word string) error {
	known := []string{}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	err := agency.Errorf(agency.CodeUsage, "%s has no command %q", cmd.CommandPath(), word)
	if near := agency.Nearest(word, known); near != "" {
		return err.WithHint("did you mean: %s %s", cmd.CommandPath(), near)
	}
	return err.WithHint("%s --help", cmd.CommandPath())
}

// takes checks that a command got exactly the arguments that its usage line names.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		wants := "no arguments"
		if len(names) > 0 {
			wants = strings.Join(names, " ")
		}
		return agency.Errorf(agency.CodeUsage, "%s takes %s, and was given %s", cmd.CommandPath(), wants, count(len(args), "argument")).
			WithHint("%s --help", cmd.CommandPath())
	}
}

// takesUpTo checks that a command got no more arguments than its usage line names.
func takesUpTo(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return agency.Errorf(agency.CodeUsage, "%s takes %s at most, and was given %s", cmd.CommandPath(), strings.Join(names, " "), count(len(args), "argument")).
			WithHint("%s --help", cmd.CommandPath())
	}
}

// takesRuns checks that a command got at least one run.
func takesRuns(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return agency.Errorf(agency.CodeUsage, "%s needs at least one RUN", cmd.CommandPath()).WithHint("agency ls")
	}
	return nil
}

// group makes a command that only holds others.
func group(c cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	cmd := command(c, helpOrUnknown)
	cmd.AddCommand(commands...)
	return cmd
}

// helpOrUnknown is what a command does that only holds others.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
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
