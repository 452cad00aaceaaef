package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"agency"
)

// passing are patterns of the variables that a check does not get: those of agency, tmux and git,
// which would lead it to the caller's own work, and those that name a terminal, a login or a
// desktop. The latter differ from one shell to the next, and every verdict would differ with them.
var passing = []string{
	"AGENCY_*", "TMUX*", "GIT_*",
	"_", "PWD", "OLDPWD", "SHLVL", "TERM", "TERM_*", "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "STY", "WINDOW", "WINDOWID", "VTE_VERSION",
	"GPG_TTY", "GPG_AGENT_INFO", "SSH_*", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_*", "SESSION_MANAGER",
	"XDG_SESSION_*", "XDG_VTNR", "XDG_SEAT*", "XDG_CURRENT_DESKTOP", "INVOCATION_ID", "JOURNAL_STREAM", "MAIL", "HISTFILE",
	"ITERM_*", "KITTY_*", "ALACRITTY_*", "WEZTERM_*", "WT_*", "VSCODE_*", "GNOME_TERMINAL_*", "KONSOLE_*", "SECURITYSESSIONID",
}

// environment returns the part of its caller's environment that a check gets, sorted, without what
// the caller's configuration denies to agents.
func environment(caller, deny []string) []string {
	patterns := slices.Concat(passing, deny)
	env := agency.Environ(caller).WithoutFunc(func(name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			matched, _ := path.Match(p, name) // the configuration refuses bad patterns
			return matched
		})
	})
	env = append(env, "TERM=dumb", "GIT_TERMINAL_PROMPT=0")
	slices.SortStableFunc(env, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return env
}

func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// environmentHash returns the hash of everything that a check gets, and of the kind of machine.
func environmentHash(env []string) string {
	sum := sha256.New()
	for _, part := range append([]string{runtime.GOOS, runtime.GOARCH}, env...) {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
