package harness_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// screen reads a recorded terminal, which is named AGENT/NAME.
func screen(t *testing.T, name string) []string {
	t.Helper()
	return harnesstest.Screen(t, strings.Replace(name, "/", "/testdata/", 1))
}

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
		{"gemini/permission", permission("touch made.txt"), allow, "1"},
		{"gemini/permission", permission("touch made.txt"), deny, "\x1b"},
		{"gemini/permission", permission("touch"), allow, hidden}, // the beginning of a command is another one
		{"gemini/permission", question("touch made.txt"), allow, hidden},
		{"gemini/permission-write", permission("Writing to made.txt"), allow, "1"},
		{"gemini/question", question("Which colour?"), agency.Reply{Text: "blue"}, "2"},
		{"gemini/question", question("Which colour?"), agency.Reply{Text: "red"}, "\r"}, // the cursor stands on it
		{"gemini/question", question("Which colour?"), agency.Reply{Text: "green"}, "3"},
		{"gemini/question", question("Which colour?"), deny, "\x1b"},
		{"gemini/question-own", question("Which colour?"), agency.Reply{Text: "green"}, "green"},
		{"gemini/resting", permission("touch made.txt"), deny, hidden},
		{"opencode/permission", permission("touch made.txt"), allow, "\r"}, // the cursor stands on it
		{"opencode/permission", permission("touch made.txt"), deny, "\x1b"},
		{"opencode/permission", permission("touch other.txt"), allow, hidden},
		{"opencode/permission", question("touch made.txt"), allow, hidden},
		{"opencode/permission-last", permission("touch made.txt"), allow, "\x1b[D"}, // the cursor stands on another one
		{"opencode/question", question("Which colour?"), agency.Reply{Text: "blue"}, "2"},
		{"opencode/question", question("Which colour?"), agency.Reply{Text: "red"}, "1"},
		{"opencode/question", question("Which colour?"), agency.Reply{Text: "a warm green"}, "3"},
		{"opencode/question", question("Which shape?"), agency.Reply{Text: "red"}, hidden},
		{"opencode/question", question("Which colour?"), deny, "\x1b"},
		{"opencode/question-own", question("Which colour?"), agency.Reply{Text: "a warm green"}, "a warm green"},
		{"opencode/question-typed", question("Which colour?"), agency.Reply{Text: "a warm green"}, "\r"},
		{"opencode/question-typed", question("Which colour?"), agency.Reply{Text: "a warm green, please"}, ""}, // the rest is to come
		{"opencode/question-typed", question("Which colour?"), agency.Reply{Text: "brown"}, refused},
		{"opencode/resting", permission("touch made.txt"), deny, hidden},
	}
	for _, tt := range tests {
		agent, _, _ := strings.Cut(tt.screen, "/")
		kind := map[string]agency.RunnerKind{"claude": "claude_code", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}[agent]
		lines := screen(t, tt.screen)
		if kind == "gemini" { // whose requests are read from its screen
			for _, e := range harness.Screen(kind, lines) {
				if tt.request.Text == e.Text {
					tt.request.ID = e.ID
				}
			}
		}
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
		keys, shown, err := harness.Answer("claude_code", lines, &request, agency.Reply{Text: "a warm green"})
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
		if keys, _, err := harness.Answer("claude_code", lines, &request, agency.Reply{Text: "Blue"}); keys != "" || !agency.IsCode(err, agency.CodeInputRefused) {
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
		if _, shown, err := harness.Answer("claude_code", lines, &request, agency.Reply{Decision: agency.Allow}); shown != want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", text, shown, err, want)
		}
	}
}

// Of several open requests the dialog is about one, whatever the order in which they were told; it can be told also where one command is the
// beginning of the other, or both begin alike, unless both stand there as a whole.
func TestShown(t *testing.T) {
	t.Parallel()
	asked := func(texts ...string) []agency.Request {
		var requests []agency.Request
		for _, text := range texts {
			requests = append(requests, agency.Request{Kind: agency.AsksPermission, Tool: "Bash", Text: text})
		}
		return requests
	}
	const folder = "cd /home/dev/src/greeting/packages/server && make "
	for _, tt := range []struct {
		shows, about string
		requests     []agency.Request
		want         int
	}{
		{"make two", "Run it", asked("make one", "make two"), 1},
		{"make one", "Run it", asked("make one", "make two"), 0},
		{"make", "Run it", asked("make one", "make two"), -1},
		{"make two", "Run it", asked("make", "make two"), 1},
		{"make", "Run it", asked("make two", "make"), 1},
		{folder + "two", "Run it", asked(folder+"one", folder+"two"), 1},
		{"make two", "make one", asked("make one", "make two"), -1}, // which is asked and which described cannot be told
		{"make one", "Run it", asked("make one", "make one"), 0},
		{"make one", "Run it", nil, -1},
	} {
		lines := strings.Split("──────\n Bash command\n "+tt.about+"\n "+tt.shows+"\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "\n")
		if got := harness.Shown("claude_code", lines, tt.requests); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.shows, got, tt.want)
		}
	}
	if got := harness.Shown(agency.Shell, nil, asked("make")); got != -1 {
		t.Errorf("a shell shows request %d", got)
	}
}

// What agency cannot answer is left to a person.
func TestAnswerOfOthers(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksPermission, Text: "ls"}
	if _, _, err := harness.Answer(agency.Shell, nil, &request, agency.Reply{Decision: agency.Deny}); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("got %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("───\nls\nDo you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "ls")
	f.Add("╭──\n│ ? Shell  ls\n│ ╭──\n│ │ ls │\n│ ╰──\n│ Allow execution of [Shell]?\n│ ● 1. Allow once\n│   2. No, suggest changes (esc)\n╰──", "ls")
	f.Add("┃ △ Permission required\n┃ $ ls\n┃ \x1b[48;5;9mAllow once\x1b[0m   Allow always   Reject   enter confirm\n┃", "ls")
	f.Fuzz(func(t *testing.T, screen, text string) {
		lines := strings.Split(screen, "\n")
		for kind, keys := range map[agency.RunnerKind]string{
			"claude_code": "123456789", "codex": "y", "gemini": "123456789", "opencode": "\r\x1b[D",
		} {
			request := agency.Request{Kind: agency.AsksPermission, Text: text}
			for _, e := range harness.Screen(kind, lines) {
				request.ID = e.ID
			}
			pressed, shown, err := harness.Answer(kind, lines, &request, agency.Reply{Decision: agency.Allow})
			// Nothing at all where the dialog is not known, and a bare Enter only where the cursor is seen.
			if pressed != "" && (!shown || err != nil || !strings.Contains(keys, pressed)) {
				t.Errorf("%s: got %q, %t, %v", kind, pressed, shown, err)
			}
			for _, reply := range []agency.Reply{{Decision: agency.Deny}, {Text: "blue"}} {
				request.Kind = agency.AsksQuestion
				if pressed, shown, _ := harness.Answer(kind, lines, &request, reply); pressed != "" && !shown {
					t.Errorf("%s: pressed %q at no dialog", kind, pressed)
				}
			}
		}
	})
}
