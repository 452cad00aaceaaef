package harness_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
)

// Keys come from what the terminal shows, and from nothing else.
func TestAnswer(t *testing.T) {
	t.Parallel()
	const shell = "mkdir -p made && date > made/stamp.txt"
	permission := func(text string) agency.Request { return agency.Request{Kind: agency.AsksPermission, Text: text} }
	question := func(text string) agency.Request { return agency.Request{Kind: agency.AsksQuestion, Text: text} }
	allow, deny := agency.Reply{Decision: agency.Allow}, agency.Reply{Decision: agency.Deny}
	const hidden, refused = "(hidden)", "(refused)"
	tests := []struct {
		screen  string
		request agency.Request
		reply   agency.Reply
		want    string
	}{
		{"claude/permission", permission(shell), allow, "1"},
		{"claude/permission", permission(shell), deny, "\x1b"},
		{"claude/permission", permission("rm -rf /"), allow, hidden}, // another request's dialog
		{"claude/permission", question("Which colour?"), allow, hidden},
		{"claude/permission-2.1.197", permission(shell), allow, "1"},
		{"claude/permission-write", permission("/home/dev/work/greeting.txt"), allow, "1"},
		{"claude/permission-write", permission("/home/dev/work/other.txt"), allow, hidden},
		{"claude/question", question("Which colour should it use?"), agency.Reply{Text: "blue"}, "2"},
		{"claude/question", question("Which colour should it use?"), agency.Reply{Text: "Red"}, "\r"}, // the cursor stands on it
		{"claude/question", question("Which colour should it use?"), agency.Reply{Text: "green"}, "3"},
		{"claude/question", question("Which colour should it use?"), deny, "\x1b"},
		{"claude/question", question("How many?"), agency.Reply{Text: "blue"}, hidden},
		{"claude/trust", agency.Request{Kind: agency.AsksPermission, Text: "x"}, allow, hidden},
		{"claude/working", permission(shell), allow, hidden},
		{"claude/resting", permission(shell), deny, hidden},
		{"codex/permission", permission("mkdir -p made-by-stub && date > made-by-stub/stamp.txt"), allow, "y"},
		{"codex/permission", permission("mkdir -p made-by-stub && date > made-by-stub/stamp.txt"), deny, "\x1b"},
		{"codex/permission", permission("git push"), allow, hidden},
		{"codex/write", permission("*** Begin Patch\n*** Add File: stub-file.txt\n+x\n*** End Patch"), allow, "y"},
		{"codex/question", question("Which colour should the stub use?"), agency.Reply{Text: "Blue"}, "2"},
		{"codex/question", question("Which colour should the stub use?"), agency.Reply{Text: "green"}, refused},
		{"codex/hooks", permission("x"), allow, hidden},
	}
	for _, tt := range tests {
		agent, _, _ := strings.Cut(tt.screen, "/")
		kind := map[string]agency.RunnerKind{"claude": agency.ClaudeCode, "codex": agency.Codex}[agent]
		data, err := os.ReadFile(filepath.Join("testdata", tt.screen+".screen.txt"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
		keys, shown, err := harness.Answer(kind, lines, &tt.request, tt.reply)
		switch {
		case !shown:
			keys = hidden
		case agency.IsCode(err, agency.CodeInputRefused):
			keys = refused
		case err != nil:
			t.Fatal(err)
		}
		if keys != tt.want {
			t.Errorf("%s, %q, %+v: got %q, want %q", tt.screen, tt.request.Text, tt.reply, keys, tt.want)
		}
	}
}

// An answer in words of one's own takes three steps, each for what the terminal shows.
func TestAnswerOwnWords(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksQuestion, Text: "Which colour?"}
	for _, step := range []struct{ shows, want string }{
		{"❯ 1. Red\n  2. Blue\n  3. Type something.", "3"},
		{"  1. Red\n  2. Blue\n❯ 3. Type something.", "a warm green"},
		{"  1. Red\n  2. Blue\n❯ 3. a warm green", "\r"},
	} {
		lines := strings.Split("──────\n ☐ Colour\n\nWhich colour?\n\n"+step.shows+"\n  4. Chat about this\n\nEnter to select · Esc to cancel", "\n")
		keys, shown, err := harness.Answer(agency.ClaudeCode, lines, &request, agency.Reply{Text: "a warm green"})
		if keys != step.want || !shown || err != nil {
			t.Errorf("%q: got %q, %t, %v, want %q", step.shows, keys, shown, err, step.want)
		}
	}
}

// A form with several questions or choices is left to a person.
func TestAnswerOfForm(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksQuestion, Text: "Which colour?"}
	for _, form := range []string{"☐ Colour ☐ Size\n\nWhich colour?\n❯ 1. Red\n  2. Blue", "☐ Colour\n\nWhich colour?\n❯ 1. [ ] Red\n  2. [ ] Blue"} {
		lines := strings.Split("──────\n"+form+"\n\nEnter to select · Esc to cancel", "\n")
		if keys, _, err := harness.Answer(agency.ClaudeCode, lines, &request, agency.Reply{Text: "Blue"}); keys != "" || !agency.IsCode(err, agency.CodeInputRefused) {
			t.Errorf("%q: got %q, %v", form, keys, err)
		}
	}
}

// Of two calls at the same time the dialog shows one, while both stand in what the agent did above it.
func TestAnswerOfTwo(t *testing.T) {
	t.Parallel()
	lines := strings.Split("● Bash(make first)\n● Bash(make second)\n──────\n Bash command\n make first\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "\n")
	for text, want := range map[string]bool{"make first": true, "make second": false} {
		request := agency.Request{Kind: agency.AsksPermission, Text: text}
		if _, shown, err := harness.Answer(agency.ClaudeCode, lines, &request, agency.Reply{Decision: agency.Allow}); shown != want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", text, shown, err, want)
		}
	}
}

// What agency cannot answer is left to a person.
func TestAnswerOfOthers(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksPermission, Text: "ls"}
	if _, _, err := harness.Answer(agency.Gemini, nil, &request, agency.Reply{Decision: agency.Deny}); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("got %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("───\nls\nDo you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "ls")
	f.Fuzz(func(t *testing.T, screen, text string) {
		request := agency.Request{Kind: agency.AsksPermission, Text: text}
		keys, shown, err := harness.Answer(agency.ClaudeCode, strings.Split(screen, "\n"), &request, agency.Reply{Decision: agency.Allow})
		// Never a bare Enter, and nothing at all where the dialog is not known.
		if keys != "" && (!shown || err != nil || len(keys) != 1 || keys[0] < '1' || keys[0] > '9') {
			t.Errorf("got %q, %t, %v", keys, shown, err)
		}
	})
}
