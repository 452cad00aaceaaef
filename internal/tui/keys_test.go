package tui

import (
	"strings"
	"testing"
	"time"

	"agency"
)

// A key of the user's does what another did, and the one that it replaces does nothing. The footer,
// the request and the help name it.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	keys, err := CheckKeys("config.toml", map[string][]string{"allow": {"y", "ctrl-y"}, "stop": {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := seated(t, 160, 50)
	u.m.keymap = keys
	u.sees(" y allow  r reject")
	u.presses("a")
	u.did()
	u.presses("ctrl+y")
	u.did("answer r_auth-fix toolu_auth-fix@" + stamp(-2*time.Minute) + " allow")
	u.presses("?")
	u.sees("y, ctrl-y allow this once")
}

// The program's own keys do not clash: each does one thing on a screen.
func TestOwnKeysAreClear(t *testing.T) {
	t.Parallel()
	for _, table := range sit(t, 80, 24).m.screens() {
		taken := map[string]string{}
		for i := range table {
			for _, key := range table[i].Keys {
				if other := taken[key]; other != "" {
					t.Errorf("%s: %s, and %s", key, other, table[i].Does)
				}
				taken[key] = table[i].Does
			}
		}
	}
}

// What cannot be is refused, with the way out.
func TestKeysThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, want, hint string }{
		{"alow", "y", `nothing is called "alow"`, "the names are acknowledge, allow,"},
		{"allow", "strg-y", `"strg-y" is not a key, in allow`, "such as x, X, ctrl-x"},
		{"allow", "", `"" is not a key, in allow`, "such as"},
		{"allow", "x", "x would be both allow and stop", `[tui.keys] stop = ["KEY"]`},
		{"allow", "3", "3 would be both allow and: choose an option", "choose another key for allow"},
		{"copy", "?", "? would be both copy and help", ""},
		{"stop", "ctrl-c", "ctrl-c cannot be a key of stop", "ctrl-c always leaves"},
	} {
		_, err := CheckKeys("config.toml", map[string][]string{c.name: {c.key}}, nil)
		if !agency.IsCode(err, agency.CodeConfigInvalid) || !strings.Contains(err.Error(), c.want) || !strings.Contains(agency.AsError(err).Hint, c.hint) {
			t.Errorf("%s = %q: %v, hint %q", c.name, c.key, err, agency.AsError(err).Hint)
		}
	}
	if _, err := CheckKeys("config.toml", map[string][]string{"allow": {"x"}, "stop": {"f4", "alt-x"}, "merge": {"+"}}, nil); err == nil {
		t.Error("+ zooms the pane, and merge has it too")
	}
	if _, err := CheckKeys("config.toml", map[string][]string{"allow": {"x"}, "stop": {"f4", "alt-x"}, "filter": {"/", "f5"}}, nil); err != nil {
		t.Error(err)
	}
}

// A view is a filter of the user's, found among the commands, and by its key if it has one.
func TestViews(t *testing.T) {
	t.Parallel()
	views := map[string]string{"broken": "s:failed", "login": "auth"}
	keys, err := CheckKeys("config.toml", map[string][]string{"view-broken": {"f2"}}, views)
	if err != nil {
		t.Fatal(err)
	}
	u := seated(t, 160, 50)
	u.m.keymap, u.m.board.views = keys, views
	u.presses("f2")
	u.seesNot("auth-fix")
	u.presses("esc")
	u.sees("auth-fix")
	u.presses(":")
	u.types("view login")
	u.presses("enter")
	u.sees("auth-fix")
	u.seesNot("FAILED")
	if _, err := CheckKeys("config.toml", map[string][]string{"view-none": {"f2"}}, views); err == nil {
		t.Error("there is no view none")
	}
}
