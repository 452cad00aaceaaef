package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/inspect"
	"agency/internal/cli/maintain"
	"agency/internal/config"
	"agency/internal/plain"
)

const rootExample = `  agency run "fix the login test"
  agency ls
  agency attach 1122-fix-the-login-a1b2`

// root returns the tree of commands. For a command line that begins with the name of a command, it
// has only that command, because making all of them takes longer than most commands do. The help of
// one command makes the others too.
func (a *App) root(d *command.Deps, args []string) *cobra.Command {
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
		if len(args) == 0 && inspect.CanShowTUI(d) {
			return inspect.ShowTUI(cmd, d)
		}
		return command.HelpOrUnknown(cmd, args)
	}
	chosen, others := choose(a.entries(), args)
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		for ; len(others) > 0; others = others[1:] {
			root.AddCommand(others[0].make(d))
		}
		help(d, cmd, args)
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if d.Dir == "" {
			return agency.Errorf(agency.CodeInvalidPath, "the current directory is gone").WithHint(`cd "$HOME"`)
		}
		return nil
	}
	root.PersistentFlags().BoolVar(&d.JSON, "json", false, "print exactly one JSON envelope on stdout")
	completing := len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
	root.PersistentFlags().Var(&configFlag{d, completing}, "config", "read this configuration `FILE` instead of the default one")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "inspect", Title: "Inspect:"},
		&cobra.Group{ID: "maintain", Title: "Maintain:"},
	)
	root.SetHelpCommandGroupID("maintain")
	root.SetCompletionCommandGroupID("maintain")
	for _, e := range chosen {
		root.AddCommand(e.make(d))
	}
	if len(others) > 0 {
		root.CompletionOptions.DisableDefaultCmd = true
		return root
	}
	addLibrary(root)
	return root
}

// flagError returns the error for a flag that a command does not know or cannot read.
func flagError(cmd *cobra.Command, err error) error {
	if own, ok := errors.AsType[*agency.Error](err); ok {
		return own
	}
	wrong := agency.Errorf(agency.CodeUsage, "%s", flagProblem(err))
	if near := nearestFlag(cmd, err); near != "" {
		return wrong.WithHint("did you mean --%s", near)
	}
	return wrong.WithHint("%s --help", cmd.CommandPath())
}

// addLibrary adds the library's own commands, help and completion.
func addLibrary(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE, help.DisableFlagsInUseLine = helpOn, true
	// For an unknown shell, cobra itself prints help and reports success.
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE, completion.DisableFlagsInUseLine = cobra.ArbitraryArgs, command.HelpOrUnknown, true
	bash, _, _ := completion.Find([]string{"bash"})
	script := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if err := script(cmd, args); err != nil {
			return err
		}
		_, err := io.WriteString(cmd.OutOrStdout(), bashAlone)
		return err
	}
}

// bashAlone makes the library's script for bash work without the package bash-completion, which
// joins the words that bash splits at = and colons.
const bashAlone = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    __agency_init_completion()
    {
        COMPREPLY=() words=() cword=0
        local i
        for ((i = 0; i <= COMP_CWORD; i++)); do
            if ((i > 0)) && [[ ${COMP_WORDS[i]} == [=:]* || ${COMP_WORDS[i-1]} == [=:] ]]; then
                words[cword]+=${COMP_WORDS[i]}
            else
                ((i == 0)) || ((++cword))
                words[cword]=${COMP_WORDS[i]}
            fi
        done
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

// configFlag is the value of --config. It refuses a missing file when the flag is parsed, so that
// no command continues without the file, even one that reads no configuration. Completion
// continues: a shell has no place for an error.
type configFlag struct {
	*command.Deps

	completing bool
}

func (f *configFlag) String() string { return f.ConfigPath }
func (f *configFlag) Type() string   { return "string" }
func (f *configFlag) Set(path string) error {
	f.ConfigPath = path
	if f.completing {
		return nil
	}
	if path != "" {
		path = f.Absolute(path)
	}
	return config.FlagFile(path)
}

// helpOn serves agency help COMMAND.
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

// dangerous are flags that agency never proposes for a mistyped one.
var dangerous = []string{"apply", "dangerously-skip-permissions", "delete-branch", "discard", "force"}

// nearestFlag returns the flag nearest to one that does not exist, or "". It never proposes one
// that destroys something.
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
	return plain.Nearest(unknown.GetSpecifiedName(), known)
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
