package harness_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"agency"
	"agency/internal/harness"
)

var kinds = map[string]agency.RunnerKind{
	"claude": "claude_code", "codex": "codex", "gemini": "gemini", "opencode": "opencode", "copilot": "copilot",
}

// What real agents show: each dialog and menu is seen as one, whoever made it, and each input box with what stands in it.
func TestSight(t *testing.T) {
	t.Parallel()
	free := map[string]string{ // what stands in the box
		"claude/resting": "", "claude/working": "", "codex/prompt": "Ask Codex to do anything", "codex/resting": "Ask Codex to do anything",
		"codex/working": "Ask Codex to do anything", "gemini/resting": "Type your message or @path/to/file", "opencode/resting": "", "opencode/working": "", "opencode/prompt": "Ask anything… \"Fix a TODO in the codebase\"", "copilot/working": "", "copilot/resting": "",
		"opencode/typed": "[Pasted ~3 lines]", "claude/pasted": "[Pasted text #1 +29 lines]", "codex/pasted": "[Pasted Content 1219 chars]",
		"gemini/pasted": "[Pasted Text: 30 lines]", "opencode/pasted": "[Pasted ~30 lines]", "copilot/pasted": "[Paste #1 - 30 lines]",
	}
	const message = "say hello (in lower case):\n1. to them\n2. to us"
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		free[agent+"/typed"] = message
	}
	paths, err := filepath.Glob("*/testdata/*.screen.txt")
	if err != nil || len(paths) < 45 {
		t.Fatalf("%d screens, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		agent := filepath.Dir(filepath.Dir(path))
		name := agent + "/" + strings.TrimSuffix(filepath.Base(path), ".screen.txt")
		sight := harness.Sight(kinds[agent], strings.Split(ansi.Strip(string(data)), "\n"))
		want, isFree := free[name]
		switch {
		case !isFree && sight.Dialog == "" && !sight.Boxless:
			t.Errorf("%s: its dialog is not seen: %+v", name, sight)
		case isFree && (sight.Dialog != "" || sight.Boxless || sight.Composer == nil || *sight.Composer != want):
			t.Errorf("%s: got %+v, want an input box with %q", name, sight, want)
		}
		if typed := strings.HasSuffix(name, "/typed") || strings.HasSuffix(name, "/pasted"); sight.Holds(message) != typed {
			t.Errorf("%s: the box holds the message: %t", name, !typed)
		}
	}
}

// Menus of programs that nobody knows, and what only looks like one.
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

// A menu that an agent quotes stands above its input box.
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

// Whatever the screen of any agent is, reading it ends, and below any text a menu is a menu.
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
