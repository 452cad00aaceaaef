package git

import (
	"os"
	"slices"
	"strings"

	"agency"
)

// kept are git's own variables that describe how this user's git is set up. All others name a
// repository, or carry the state of a running git command: a daemon that a hook started inherits
// them, and must not work on that repository by mistake.
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

// environ returns the environment of every git process: the user's, without questions, without
// translation, and without optional locks. Replacement objects and grafts are off: an agent can make
// those, and then agency would not show what lands. Git warns about a file of grafts that it can read,
// so it gets one that cannot exist.
func environ() []string {
	env := agency.Environ(os.Environ()).WithoutFunc(func(name string) bool {
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name)
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null/none", "LC_ALL=C")
}
