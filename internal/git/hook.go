package git

import (
	"context"
	"slices"
	"strconv"
)

// Git 2.54 and newer also run hooks that a configuration names: hook.NAME.event says when, and
// hook.NAME.command what. Git 2.55 and newer can switch off all hooks of an event.

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
// of a repository names. Git 2.54 needs it: it can only switch off a hook by its name. The environment
// can hold every name, and an option cannot.
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
