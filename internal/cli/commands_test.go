package cli_test

import (
	"slices"
	"testing"

	"agency/internal/cli/clitest"
)

// A command line makes the command that it begins with and no other, by every name of that command.
func TestOneCommandIsMade(t *testing.T) {
	t.Parallel()
	for _, c := range clitest.New(t).App.Root().Commands() {
		for _, word := range append(slices.Clone(c.Aliases), c.Name()) {
			if word == "help" || word == "completion" || word == "docs" { // they are about all of them
				continue
			}
			made := clitest.New(t).App.Root(word).Commands()
			if len(made) != 1 || made[0].CommandPath() != c.CommandPath() {
				t.Errorf("agency %s makes %d commands, the first %q", word, len(made), made[0].CommandPath())
			}
		}
	}
}
