package git

import (
	"context"
	"slices"
	"strconv"
)

// Git 2.54 and newer also run hooks that a configuration names: hook.NAME.event says when, and
// hook.NAME.command what. Git that uses a view does not see those of the repository. For the others,
// agency switches off the events and the names. Git 2.54 has no switch for events, and newer ones
// ignore it when the configuration uses the name of the event for a hook.

// events are the hooks that git may run for agency.
var events = append([]string{"post-merge", "pre-auto-gc"}, CheckoutHooks...)

// hook returns the name of the hook to which a setting belongs, empty for none.
func (s setting) hook() string {
	section, name, _ := s.parts()
	if section != "hook" {
		return ""
	}
	return name
}

// mayRunHooks reports whether git has an occasion for a hook, and must run none.
func (c call) mayRunHooks() bool {
	return !c.hooks && (c.writes.Ref != "" || c.args[0] == "worktree" && c.args[1] == "add")
}

// hooksOff returns the environment in which git runs none of the hooks that the present configuration
// of a repository names. The environment can hold every name, and an option cannot.
func (g *program) hooksOff(ctx context.Context, commonDir string) ([]string, error) {
	list, err := g.effective(ctx, commonDir)
	if err != nil {
		return nil, err
	}
	names, env := []string{}, []string{}
	for _, s := range list {
		name := s.hook()
		if name == "" || slices.Contains(names, name) {
			continue
		}
		n := strconv.Itoa(len(names))
		names = append(names, name)
		env = append(env, "GIT_CONFIG_KEY_"+n+"=hook."+name+".enabled", "GIT_CONFIG_VALUE_"+n+"=false")
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(names))), nil
}
