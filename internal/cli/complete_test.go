package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agency/internal/cli/clitest"
)

// unlisted are the flags whose values no list has: texts, numbers, times, new names, and paths,
// which shells complete by themselves.
var unlisted = strings.Fields(`
	agent agents blocker branch comment config env error exit-code file for how-to-test input interval last limit lines max-minutes
	max-parallel message model name older-than payload pid prompt prompt-file question quiet-for reason repo risk setup since source-file spec
	stall-threshold stuck-after summary tail text timeout type unified wait with`)

// What can be listed is completed: the arguments and the flags of every command.
func TestCompletesEverythingListed(t *testing.T) {
	t.Parallel()
	known := func(c *cobra.Command, flag *pflag.Flag) bool {
		_, ok := c.GetFlagCompletionFunc(flag.Name)
		return ok || flag.Value.Type() == "bool" || slices.Contains(unlisted, flag.Name)
	}
	for _, c := range own(clitest.New(t).App.Root()) {
		_, args, _ := strings.Cut(c.Use, " ")
		if c.Runnable() && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && args != "" && !strings.Contains(args, "FILE") {
			t.Errorf("%s: nothing completes %s", c.CommandPath(), args)
		}
		c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !known(c, flag) {
				t.Errorf("%s: nothing completes --%s", c.CommandPath(), flag.Name)
			}
		})
	}
}
