package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/plain"
)

// New returns a cobra command whose errors are all agency's own.
func New(c cobra.Command, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			e := agency.AsError(err)
			if e.Code == agency.CodeNotGitRepo && cmd.Flags().Lookup("repo") == nil && strings.Contains(e.Hint, "--repo") {
				e = e.WithHint("cd into a repository, or make one: git init")
			}
			return e
		}
		return nil
	}
	c.DisableFlagsInUseLine = true
	return &c
}

// Takes checks that a command got exactly the arguments that its usage line names.
func Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		wants := "no arguments"
		if len(names) > 0 {
			wants = strings.Join(names, " ")
		}
		lists := map[string]string{"RUN": "agency ls", "SESSION": "agency session ls"}
		if len(args) == 0 && lists[names[0]] != "" {
			return agency.Errorf(agency.CodeUsage, "%s needs %s", cmd.CommandPath(), wants).WithHint("%s", lists[names[0]])
		}
		return agency.Errorf(agency.CodeUsage, "%s takes %s, and was given %s", cmd.CommandPath(), wants, Count(len(args), "argument")).
			WithHint("%s", quoted(cmd, args, names))
	}
}

// quoted returns the hint for a wrong number of arguments: to quote the words that were meant as
// the text at the end, or else the help.
func quoted(cmd *cobra.Command, args, names []string) string {
	last := len(names) - 1
	if len(args) <= len(names) || last < 0 || names[last] != "TEXT" && names[last] != "ANSWER" {
		return cmd.CommandPath() + " --help"
	}
	words := []string{cmd.CommandPath()}
	for _, arg := range append(slices.Clone(args[:last]), strings.Join(args[last:], " ")) {
		words = append(words, plain.ShellWord(arg))
	}
	return "quote it: " + strings.Join(words, " ")
}

// TakesUpTo checks that a command got no more arguments than its usage line names.
func TakesUpTo(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return agency.Errorf(agency.CodeUsage, "%s takes %s at most, and was given %s", cmd.CommandPath(), strings.Join(names, " "), Count(len(args), "argument")).
			WithHint("%s", quoted(cmd, args, names))
	}
}

// TakesRuns checks that a command got at least one run.
func TakesRuns(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return agency.Errorf(agency.CodeUsage, "%s needs at least one RUN", cmd.CommandPath()).WithHint("agency ls")
	}
	return nil
}

// otherNames are names of subcommands that users know from other programs, as for agency's own
// commands. Help does not list them.
var otherNames = map[string]string{"ls": "list", "logs": "log", "rm": "remove", "show": "inspect"}

// Group returns a command that only holds others.
func Group(c cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	cmd := New(c, HelpOrUnknown)
	for _, sub := range commands {
		if other := otherNames[sub.Name()]; other != "" {
			sub.Aliases = append(sub.Aliases, other)
		}
	}
	cmd.AddCommand(commands...)
	return cmd
}

// HelpOrUnknown prints the help of a command that only holds others, or refuses a word that names
// no subcommand.
func HelpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return UnknownCommand(cmd, args[0])
}

// destroying are commands that end or remove something: agency never proposes them for a mistyped
// word.
var destroying = []string{"cancel", "gc", "rebuild", "restore", "rm", "stop", "uninstall", "unflag"}

// UnknownCommand returns the error for a word that names no command below cmd, with the nearest one
// that does. It never proposes a command that destroys something.
func UnknownCommand(cmd *cobra.Command, word string) error {
	known := []string{}
	for _, c := range cmd.Commands() {
		forUsers := !c.Hidden || c.GroupID != ""
		if forUsers && !slices.Contains(destroying, c.Name()) {
			known = append(append(known, c.Name()), c.Aliases...)
		}
	}
	err := agency.Errorf(agency.CodeUsage, "%s has no command %q", cmd.CommandPath(), word)
	if near := plain.Nearest(word, known); near != "" {
		return err.WithHint("did you mean: %s %s", cmd.CommandPath(), near)
	}
	return err.WithHint("%s --help", cmd.CommandPath())
}

// Each acts on every named run and continues after a failure; the exit status is that of the first
// failure. With --json it takes one run, because there is one envelope.
func (d *Deps) Each(cmd *cobra.Command, refs []string, act func(ref string) error) error {
	if len(refs) == 1 {
		return act(refs[0])
	}
	if d.JSON {
		return agency.Errorf(agency.CodeUsage, "%s --json takes one RUN, and was given %d", cmd.CommandPath(), len(refs)).
			WithHint("%s --json %s", cmd.CommandPath(), refs[0])
	}
	for _, ref := range refs {
		err := act(ref)
		if stopped := cmd.Context().Err(); stopped != nil {
			return stopped
		}
		if err != nil {
			d.Status = cmp.Or(d.Status, d.Fail(agency.AsError(err)))
		}
	}
	return nil
}

// ManyRuns marks a command that takes more than one run.
const ManyRuns = "many-runs"
