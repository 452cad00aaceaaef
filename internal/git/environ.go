package git

import (
	"os"
	"slices"
	"strings"

	"agency"
)

// kept are the variables of git's own that say how this user's git is set up. All others say which
// repository is meant, or carry the state of a git command that is running: a daemon that was
// started by a hook inherits them, and must not work on that repository by mistake.
var kept = []string{
	"GIT_CEILING_DIRECTORIES",
	"GIT_CONFIG_GLOBAL",
	"GIT_CONFIG_NOSYSTEM",
	"GIT_CONFIG_SYSTEM",
	"GIT_DISCOVERY_ACROSS_FILESYSTEM",
	"GIT_EXEC_PATH",
	"GIT_SSH",
	"GIT_SSH_COMMAND",
}

// environ is the environment of every git process: the user's, no questions, no translation, no
// locks taken for convenience, and no objects that stand in for others: an agent can make those,
// and what agency shows would not be what lands.
func environ() []string {
	env := agency.Environ(os.Environ()).WithoutFunc(func(name string) bool {
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name)
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
}
