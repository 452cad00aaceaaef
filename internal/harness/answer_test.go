package harness_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/harness"
)

// An answer in the user's own words takes three steps; what the terminal shows selects each.
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

// Enter is pressed only when the terminal shows the whole text that was typed, however it breaks the
// lines, and never for another text.
func TestAnswerLongOwnWords(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksQuestion, Text: "Which colour?"}
	const text = "a warm green,  like that of the old logo"
	const refused = "refused"
	drawnByGemini := strings.NewReplacer("❯", "●", "Type something.", "Enter a custom value", "\n", "\n│ ")
	for _, tt := range []struct{ shows, want string }{
		{"  1. Red\n     like fire\n❯ 2. Type something.\n", text},
		{"  1. Red\n     like fire\n❯ 2. a warm gr\n", ""},
		{"  1. Red\n     like fire\n❯ 2. a warm green,  like\n     that of the\n", ""},
		{"  1. Red\n     like fire\n❯ 2. a warm green,  like that of the old logo\n", "\r"},
		{"  1. Red\n     like fire\n❯ 2. a warm green,  like\n     that of the old logo\n", "\r"},
		{"  1. Red\n     like fire\n❯ 2. a warm green,  like\n     that of the old logos\n", refused},
		{"  1. Red\n     like fire\n❯ 2. a cold green\n", refused},
		{"❯ 1. Red\n     like fire\n  2. a warm green,  like\n     that of the old logo\n", refused},
	} {
		claude := "──────\n ☐ Colour\n\nWhich colour?\n\n" + tt.shows + "──────\n  3. Chat about this\n\nEnter to select · Esc to cancel"
		gemini := "╭─────\n│ Answer Questions\n│\n│ Which colour?\n│\n│ " + drawnByGemini.Replace(tt.shows) + "\n│ Enter to submit · Esc to cancel\n╰─────"
		for kind, screen := range map[agency.RunnerKind]string{"claude_code": claude, "gemini": gemini} {
			asked := request
			if kind == "gemini" {
				asked.ID = harness.Screen(kind, strings.Split(screen, "\n"))[0].ID
			}
			keys, shown, err := harness.Answer(kind, strings.Split(screen, "\n"), &asked, agency.Reply{Text: text})
			if agency.IsCode(err, agency.CodeInputRefused) {
				keys = refused
			}
			if keys != tt.want || !shown {
				t.Errorf("%s: got %q, %t, %v, want %q in\n%s", kind, keys, shown, err, tt.want, screen)
			}
		}
	}
}

// A form with several questions or choices is left to the user.
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

// Of two calls at the same time the dialog shows one, while the agent's output above it names both.
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

// The dialog shows one of several open requests, whatever the order of their reports. It is
// recognised also where one command is the beginning of another, or both begin alike, unless the
// screen contains both as a whole.
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
		{"make two", "make one", asked("make one", "make two"), -1}, // the dialog's own request cannot be distinguished from the described one
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

// A dialog that agency cannot answer is left to the user.
func TestAnswerOfOthers(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksPermission, Text: "ls"}
	if _, _, err := harness.Answer(agency.Shell, nil, &request, agency.Reply{Decision: agency.Deny}); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("got %v", err)
	}
}
