package harnesstest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
)

// Facts are what the common tests need to know about an agent. They are in its folder, in
// facts_test.go.
type Facts struct {
	Kind agency.RunnerKind
	// Boxes are the recorded screens that show an input box, with the text in it. Every other
	// screen shows a dialog or a menu.
	Boxes   map[string]string
	Answers []Answer
	// Role returns where a command gives the agent its role and how to report.
	Role func(c agency.Command) string
	// Skips makes the agent ask for no permission: an argument that users may give themselves too,
	// or part of a variable.
	Skips      string
	SkipsByEnv bool
	// Errors are the model's errors as the agent reported them, by class.
	Errors map[agency.ErrorClass][][]agency.Evidence
}

// Answer is what agency types into a recorded screen to reply to a request.
type Answer struct {
	Screen  string
	Request agency.Request
	Reply   agency.Reply
	Want    string // the keys, Hidden or Refused
}

// On returns an Answer.
func On(screen string, request agency.Request, reply agency.Reply, want string) Answer {
	return Answer{screen, request, reply, want}
}

// Values instead of keys: the screen does not show the request, or the reply does not fit it.
const (
	Hidden  = "(hidden)"
	Refused = "(refused)"
)

// The replies to a permission.
var (
	Allow = agency.Reply{Decision: agency.Allow}
	Deny  = agency.Reply{Decision: agency.Deny}
)

// Words returns a free-form reply.
func Words(s string) agency.Reply { return agency.Reply{Text: s} }

// Permission returns a request for a permission.
func Permission(text string) agency.Request {
	return agency.Request{Kind: agency.AsksPermission, Text: text}
}

// Question returns a question to the user.
func Question(text string) agency.Request {
	return agency.Request{Kind: agency.AsksQuestion, Text: text}
}

// Message is what was typed into the input box of a screen "typed".
const Message = "say hello (in lower case):\n1. to them\n2. to us"

// Check runs the tests that are the same for every agent.
func Check(t *testing.T, f Facts) {
	t.Run("sight", f.checkSight)
	t.Run("answer", f.checkAnswers)
	t.Run("role", f.checkRole)
	t.Run("permissions", f.checkSkips)
	t.Run("errors", f.checkErrors)
}

// checkSight tests that each dialog and menu is recognised, whichever program drew it, and each
// input box with its text.
func (f *Facts) checkSight(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.screen.txt")
	if err != nil || len(paths) < 5 || len(f.Boxes) < 3 {
		t.Fatalf("%d screens, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".screen.txt")
		sight := harness.Sight(f.Kind, strings.Split(ansi.Strip(string(read(t, path))), "\n"))
		want, isFree := f.Boxes[name]
		switch {
		case !isFree && sight.Dialog == "" && !sight.Boxless:
			t.Errorf("%s: its dialog is not seen: %+v", name, sight)
		case isFree && (sight.Dialog != "" || sight.Boxless || sight.Composer == nil || *sight.Composer != want):
			t.Errorf("%s: got %+v, want an input box with %q", name, sight, want)
		}
		if typed := name == "typed" || name == "pasted"; sight.Holds(Message) != typed {
			t.Errorf("%s: the box holds the message: %t", name, !typed)
		}
	}
}

// checkAnswers tests that keys come from what the terminal shows, and from nothing else.
func (f *Facts) checkAnswers(t *testing.T) {
	if len(f.Answers) == 0 {
		t.Error("no answer is tested")
	}
	for _, tt := range f.Answers {
		lines := Screen(t, "testdata/"+tt.Screen)
		for _, e := range harness.Screen(f.Kind, lines) { // some requests are read from a screen
			if tt.Request.Text == e.Text {
				tt.Request.ID = e.ID
			}
		}
		keys, shown, err := harness.Answer(f.Kind, lines, &tt.Request, tt.Reply)
		switch {
		case !shown:
			keys = Hidden
		case agency.IsCode(err, agency.CodeInputRefused):
			keys = Refused
		case err != nil:
			t.Fatal(err)
		}
		if keys != tt.Want {
			t.Errorf("%s, %q, %+v: got %q, want %q", tt.Screen, tt.Request.Text, tt.Reply, keys, tt.Want)
		}
	}
}

// checkRole tests that the agent gets its role through its own settings, together with how to
// report.
func (f *Facts) checkRole(t *testing.T) {
	const text = "You watch the workers.\nSay \"nothing\" else."
	c, err := harness.Build(agency.CommandRequest{
		Runner: agency.Runner{Kind: f.Kind}, Exec: Program(t), AttemptDir: "/run/attempts/1", Hook: []string{"agency", "hook"}, SystemPrompt: text,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Role(c); !strings.Contains(got, text) || !strings.Contains(got, agent.Protocol) {
		t.Errorf("it reads %q", got)
	}
}

// checkSkips tests that an agent that must not ask for permission gets exactly one argument for it.
func (f *Facts) checkSkips(t *testing.T) {
	exe := Program(t)
	for _, headless := range []bool{false, true} {
		for _, own := range [][]string{nil, {f.Skips}} {
			if f.SkipsByEnv {
				own = nil
			}
			c, err := harness.Build(agency.CommandRequest{
				Runner: agency.Runner{Kind: f.Kind, Args: own}, Exec: exe, AttemptDir: "/run/attempts/1", Hook: []string{"agency", "hook"},
				Headless: headless, SkipPermissions: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(slices.Concat(c.Argv, c.Env), "\n")
			if strings.Count(all, f.Skips) != 1 || strings.Contains(all, "--permission-mode") || strings.Contains(all, "workspace-write") || strings.Contains(all, "auto_edit") {
				t.Errorf("headless %v: %s", headless, all)
			}
		}
	}
}

// checkErrors tests that errors between an agent and its model get the same class, however the
// agent reports them.
func (f *Facts) checkErrors(t *testing.T) {
	for _, want := range []agency.ErrorClass{
		agency.ErrorAuth, agency.ErrorRateLimit, agency.ErrorBilling, agency.ErrorContext, agency.ErrorOverloaded, agency.ErrorOther,
	} {
		if len(f.Errors[want]) == 0 {
			t.Errorf("no error of class %s", want)
		}
		for i, evidence := range f.Errors[want] {
			if len(evidence) == 0 || evidence[len(evidence)-1].Signal != agency.SignalFailed || evidence[len(evidence)-1].Class != want {
				t.Errorf("%s, %d: got %+v", want, i, evidence)
			}
		}
	}
}

// FuzzAnswer checks that an answer presses only the agent's keys, and nothing where it shows no
// dialog.
func FuzzAnswer(f *testing.F, kind agency.RunnerKind, keys string) {
	f.Fuzz(func(t *testing.T, screen, text string) {
		lines := strings.Split(screen, "\n")
		request := agency.Request{Kind: agency.AsksPermission, Text: text}
		for _, e := range harness.Screen(kind, lines) {
			request.ID = e.ID
		}
		pressed, shown, err := harness.Answer(kind, lines, &request, agency.Reply{Decision: agency.Allow})
		// No key where the dialog is unknown, and a bare Enter only where the cursor is visible.
		if pressed != "" && (!shown || err != nil || !strings.Contains(keys, pressed)) {
			t.Errorf("%s: got %q, %t, %v", kind, pressed, shown, err)
		}
		for _, reply := range []agency.Reply{{Decision: agency.Deny}, {Text: "blue"}} {
			request.Kind = agency.AsksQuestion
			if pressed, shown, _ := harness.Answer(kind, lines, &request, reply); pressed != "" && !shown {
				t.Errorf("%s: pressed %q at no dialog", kind, pressed)
			}
		}
	})
}
