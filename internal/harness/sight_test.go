package harness_test

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/harness"
)

// Menus of unknown programs, and texts that only look like one.
func TestMenus(t *testing.T) {
	t.Parallel()
	for screen, dialog := range map[string]string{
		"Run rm?\n> 1. Yes\n  2. No":   "Run rm?",
		"Run rm?\n  1) Yes\n❯ 2) No\n": "Run rm?",
		"│ Run rm?  │\n│ ● 1. Yes │\n│   2. No  │\n╰──────────╯": "Run rm?",
		"Overwrite the file? [y/N] ": "Overwrite the file? [y/N]",
		"Go on (yes/no)?":            "Go on (yes/no)?",
		"Pick a colour\n\n  red\n▸ blue\n\nenter to confirm, q quits": "▸ blue",
		"The end.\nPress Enter to continue":                           "The end.",
		"":                                                            "",
		"$ make test\nok\n$ ":                                         "",
		"? Which way?":                                                "",
		"The plan:\n1. Read\n2. Write\n3. Test":                       "",
		"> 1. quoted\n> 2. quoted too":                                "",
		"press esc to interrupt":                                      "",
	} {
		if got := harness.Sight(agency.Custom, strings.Split(screen, "\n")); got.Dialog != dialog || got.Boxless {
			t.Errorf("%q: got %+v, want %q", screen, got, dialog)
		}
	}
}

// A menu that an agent quotes is above its input box.
func TestMenuQuoted(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("claude/testdata/resting.screen.txt")
	if err != nil {
		t.Fatal(err)
	}
	quoted := "● It asked:\n  Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n  Esc to cancel\n" + string(data)
	if got := harness.Sight("claude_code", strings.Split(quoted, "\n")); got.Dialog != "" || got.Composer == nil {
		t.Errorf("got %+v", got)
	}
}

// For any screen of any agent, reading it ends, and a menu below any text is recognised.
func TestMenuBelowAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(append(harness.Kinds(), agency.Custom)).Draw(t, "kind")
		above := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"❯ ", "› text", " > text", "────────────", "╹▀▀▀▀▀▀", "┃  text", "┃  Build", "╭────╮", "│ text │", "1. Yes", "? for shortcuts", "esc to cancel", "",
		}))).Draw(t, "above")
		lines := append(above, "Run rm?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel · Enter to confirm")
		if got := harness.Sight(kind, lines); got.Dialog == "" && !got.Boxless {
			t.Fatalf("got %+v", got)
		}
	})
}
