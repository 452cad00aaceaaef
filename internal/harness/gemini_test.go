package harness_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
)

// geminiRun is a run of Gemini in a terminal whose titles and conversation a test writes.
type geminiRun struct {
	folded
	t    *testing.T
	home string
	path string // of the conversation; empty until there is one
	now  time.Time
}

func newGeminiRun(t *testing.T, resume bool, home string) *geminiRun {
	t.Helper()
	g := &geminiRun{t: t, home: home, now: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
	c, err := harness.Build(agency.CommandRequest{
		Runner: agency.Runner{Kind: agency.Gemini}, Exec: program(t), ConversationID: minted, Resume: resume, Env: []string{"HOME=" + home},
	})
	if err != nil {
		t.Fatal(err)
	}
	var known agency.Evidence
	if err := json.Unmarshal(c.Files[agency.EventsFile], &known); err != nil {
		t.Fatalf("%v in %q", err, c.Files)
	}
	g.fold([]agency.Evidence{known}, g.now)
	return g
}

func (g *geminiRun) title(text string) {
	g.now = g.now.Add(time.Second)
	g.fold(harness.Title(agency.Gemini, text), g.now)
}

// say adds a line to the conversation, in which TIME stands for now.
func (g *geminiRun) say(line string) {
	g.t.Helper()
	if g.path == "" {
		chats := filepath.Join(g.home, ".gemini", "tmp", "work", "chats")
		if err := os.MkdirAll(chats, 0o700); err != nil {
			g.t.Fatal(err)
		}
		g.path = filepath.Join(chats, "session-2026-11-21T12-57-"+minted[:8]+".jsonl")
		if _, err := os.Stat(g.path); err != nil {
			appendTo(g.t, g.path, `{"sessionId":"`+minted+`","kind":"main"}`+"\n"+`{"$set":{"messages":[]}}`+"\n")
		}
	}
	g.now = g.now.Add(time.Second)
	appendTo(g.t, g.path, strings.ReplaceAll(line, "TIME", g.now.Format(time.RFC3339Nano))+"\n")
}

func (g *geminiRun) read() {
	g.now = g.now.Add(time.Second)
	for _, path := range harness.Files(agency.Gemini, &g.situation, nil) {
		g.fold(harness.ReadFile(agency.Gemini, path, &g.situation), g.now)
	}
}

const (
	geminiReady, geminiWorking, geminiAsks = "◇  Ready (work)   ", "✦  Working… (work)", "✋  Action Required (work)"

	geminiPrompt    = `{"id":"1","timestamp":"TIME","type":"user","content":[{"text":"go"}]}`
	geminiAnswer    = `{"id":"2","timestamp":"TIME","type":"gemini","content":"I run it.","tokens":{"input":100,"output":40,"cached":7,"thoughts":2,"tool":0,"total":142},"model":"gemini-2.5-flash"}`
	geminiCalled    = `{"id":"2","timestamp":"TIME","type":"gemini","content":"I run it.","tokens":{"input":100,"output":40,"cached":7,"thoughts":2,"tool":0,"total":142},"model":"gemini-2.5-flash","toolCalls":[{"id":"c","name":"run_shell_command","status":"success"}]}`
	geminiCancelled = `{"id":"3","timestamp":"TIME","type":"info","content":"Request cancelled."}`
	geminiFailed    = `{"id":"4","timestamp":"TIME","type":"error","content":"[API Error: {\"error\":{\"code\":401,\"message\":\"invalid x-api-key\",\"status\":\"UNAUTHENTICATED\"}}]"}`
)

// What Gemini 0.61 wrote into its title and its conversation, in the order in which it came.
func TestGeminiInItsTerminal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		steps  []string
		labels []agency.Label
		say    string
	}{
		{
			"text",
			[]string{geminiReady, geminiPrompt, geminiWorking, geminiAnswer, geminiReady},
			[]agency.Label{agency.Working, agency.Waiting},
			"its turn ended",
		},
		{
			"permission allowed",
			[]string{geminiReady, geminiPrompt, geminiWorking, geminiAnswer, geminiAsks, geminiWorking, geminiCalled, geminiReady},
			[]agency.Label{agency.Working, agency.NeedsInput, agency.Working, agency.Waiting},
			"its turn ended",
		},
		{
			"permission denied",
			[]string{geminiReady, geminiPrompt, geminiWorking, geminiAnswer, geminiAsks, geminiCancelled, geminiReady},
			[]agency.Label{agency.Working, agency.NeedsInput, agency.Waiting},
			"interrupted",
		},
		{
			"permission denied, seen by the title alone",
			[]string{geminiReady, geminiWorking, geminiAsks, geminiReady},
			[]agency.Label{agency.Working, agency.NeedsInput, agency.Waiting},
			"its turn ended",
		},
		{
			"interrupted",
			[]string{geminiReady, geminiPrompt, geminiWorking, geminiCancelled, geminiReady},
			[]agency.Label{agency.Working, agency.Waiting},
			"interrupted",
		},
		{
			"failed",
			[]string{geminiReady, geminiPrompt, geminiWorking, geminiFailed, geminiReady},
			[]agency.Label{agency.Working, agency.Waiting},
			"auth",
		},
		{"no titles", []string{geminiPrompt, geminiAnswer}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGeminiRun(t, false, t.TempDir())
			for _, step := range tt.steps {
				if strings.HasPrefix(step, "{") {
					g.say(step)
					g.read()
				} else {
					g.title(step)
				}
			}
			if diff := cmp.Diff(tt.labels, g.labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !strings.Contains(g.status.Summary, tt.say) || g.situation.Conversation != minted {
				t.Errorf("got %q of %q, want %q", g.status.Summary, g.situation.Conversation, tt.say)
			}
		})
	}
}

// A conversation that is read after its titles were changes no turn, but what was prompted and used counts.
func TestGeminiReadLate(t *testing.T) {
	t.Parallel()
	g := newGeminiRun(t, false, t.TempDir())
	g.title(geminiReady)
	g.say(geminiPrompt)
	g.title(geminiWorking)
	g.say(geminiAnswer)
	g.say(geminiCalled)
	g.title(geminiReady)
	g.read()
	if s := g.situation; g.status.Label != agency.Waiting || s.PromptAt.IsZero() || s.Model != "gemini-2.5-flash" {
		t.Errorf("got %s, %+v", g.status.Label, s)
	}
	if u := g.situation.Usage; *u.InputTokens != 100 || *u.CachedTokens != 7 || *u.OutputTokens != 42 || u.CostUSD != nil {
		t.Errorf("got %d, %d, %d tokens and cost %v", *u.InputTokens, *u.CachedTokens, *u.OutputTokens, u.CostUSD)
	}
	g.say(geminiFailed)
	g.title(geminiWorking)
	g.read()
	if g.status.Label != agency.Working {
		t.Errorf("got %s after an old error", g.status.Label)
	}
}

// After an interruption Gemini writes all of the conversation once more, which is no prompt.
func TestGeminiWritesItsHistoryAgain(t *testing.T) {
	t.Parallel()
	g := newGeminiRun(t, false, t.TempDir())
	g.title(geminiReady)
	g.say(geminiPrompt)
	g.read()
	prompted := g.situation.PromptAt
	g.title(geminiWorking)
	again := strings.Join([]string{
		geminiCancelled,
		`{"id":"5","timestamp":"TIME","type":"user","content":[{"text":"<session_context>\nwork"},{"text":"go"}]}`,
		`{"id":"6","timestamp":"TIME","type":"user","content":[{"text":"go"}]}`,
		`{"id":"7","timestamp":"TIME","type":"gemini","content":[{"text":"I run it."}],"tokens":null}`,
	}, "\n")
	g.say(again)
	g.read()
	g.title(geminiReady)
	if s := g.situation; g.status.Label != agency.Waiting || !s.Interrupted || !s.PromptAt.Equal(prompted) {
		t.Errorf("got %s, interrupted %t, prompted at %s, want waiting, true, %s", g.status.Label, s.Interrupted, s.PromptAt, prompted)
	}
}

// An attempt that goes on with a conversation reads only what is new in it, and no other conversation's.
func TestGeminiResumes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first := newGeminiRun(t, false, home)
	first.say(geminiAnswer)
	chats := filepath.Dir(first.path)
	other := filepath.Join(chats, "session-2026-11-21T13-02-"+minted[:8]+".jsonl")
	appendTo(t, other, `{"sessionId":"`+minted[:8]+`-0000-0000-0000-000000000000","kind":"main"}`+"\n"+geminiAnswer+"\n")
	second := newGeminiRun(t, true, home)
	second.title(geminiReady)
	second.say(geminiPrompt)
	second.read()
	if s := second.situation; s.Usage.InputTokens != nil || s.PromptAt.IsZero() || s.Transcript != first.path {
		t.Errorf("got usage %v, prompt at %s, transcript %s", s.Usage.InputTokens, s.PromptAt, s.Transcript)
	}
}

func TestGeminiFilesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for _, s := range []agency.Situation{
		{},
		{Conversation: minted, Transcript: "tmp"},
		{Conversation: "../../etc", Transcript: t.TempDir()},
		{Conversation: "short", Transcript: t.TempDir()},
		{Conversation: minted, Transcript: "/etc/passwd.txt"},
	} {
		if got := harness.Files(agency.Gemini, &s, nil); len(got) > 0 {
			t.Errorf("%+v leads to %q", s, got)
		}
	}
}

// What Gemini wrote without a terminal.
func TestGeminiStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		signs []agency.Sign
		say   string
		input int64
	}{
		{"shell", []agency.Sign{
			agency.SignSession, agency.SignPrompt, agency.SignBusy, agency.SignToolStarted, agency.SignToolEnded, agency.SignBusy,
			agency.SignUsage, agency.SignTurnEnded,
		}, "its turn ended", 200},
		{"auth", []agency.Sign{agency.SignSession, agency.SignPrompt, agency.SignUsage, agency.SignFailed}, "auth", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all folded
			var signs []agency.Sign
			for _, line := range recorded(t, "gemini/"+tt.name+".stream.jsonl") {
				evidence := harness.Stream(agency.Gemini, line)
				for _, e := range evidence {
					signs = append(signs, e.Sign)
				}
				all.fold(evidence, time.Now())
			}
			if diff := cmp.Diff(tt.signs, signs); diff != "" {
				t.Errorf("signs (-want +got):\n%s", diff)
			}
			s := all.situation
			if !strings.Contains(all.status.Summary, tt.say) || s.Conversation == "" || s.Model != "gemini-2.5-flash" || *s.Usage.InputTokens != tt.input {
				t.Errorf("got %q, %+v", all.status.Summary, s)
			}
		})
	}
}

func TestGeminiScreen(t *testing.T) {
	t.Parallel()
	trust := strings.Split(`
 ╭──────────────────────────────────────────────╮
 │ Do you trust the files in this folder?       │
 │                                              │
 │ ● 1. Trust folder (work)                     │
 │   2. Trust parent folder (gh)                │
 │   3. Don't trust                             │
 ╰──────────────────────────────────────────────╯`, "\n")
	got := harness.Screen(agency.Gemini, trust)
	if len(got) != 1 || got[0].Sign != agency.SignAsked || got[0].Kind != agency.AsksDialog || got[0].Confidence >= 1 {
		t.Errorf("got %+v", got)
	}
	quoted := slices.Concat(trust, strings.Split(strings.Repeat("\n", 30)+" >   Type your message or @path/to/file", "\n"))
	if got := harness.Screen(agency.Gemini, quoted); len(got) > 0 {
		t.Errorf("what stands far above the input box is %+v", got)
	}
}

// A title says that Gemini asks, and its dialog what.
func TestGeminiTellsWhatItAsks(t *testing.T) {
	t.Parallel()
	var all folded
	at := time.Now()
	show := func(evidence []agency.Evidence) agency.Request {
		at = at.Add(time.Second)
		all.fold(evidence, at)
		if len(all.situation.Requests) != 1 {
			return agency.Request{}
		}
		return all.situation.Requests[0]
	}
	screen := func(name string) []agency.Evidence {
		return harness.Screen(agency.Gemini, screenLines(t, "gemini/"+name))
	}

	show(harness.Title(agency.Gemini, geminiWorking))
	if r := show(screen("permission")); r.Kind != "" {
		t.Errorf("a dialog without a title is no request, but maybe a quotation: %+v", r)
	}
	first := show(harness.Title(agency.Gemini, geminiAsks))
	r := show(screen("permission"))
	if r.Kind != agency.AsksPermission || r.Tool != "Shell" || r.Text != "touch made.txt" || !r.At.Equal(first.At) || r.Confidence >= 1 {
		t.Errorf("got %+v", r)
	}
	next := show(screen("question"))
	if next.Kind != agency.AsksQuestion || next.Text != "Which colour?" || next.PromptID() == r.PromptID() || next.Is(r.PromptID()) {
		t.Errorf("another dialog in its place: got %+v", next)
	}
	if typing := show(screen("question-own")); typing != next {
		t.Errorf("an answer that is being typed is no other question: %+v", typing)
	}
	if r := show(harness.Title(agency.Gemini, geminiReady)); r.Kind != "" || all.status.Label != agency.Waiting {
		t.Errorf("got %+v, %s", r, all.status.Label)
	}
}

func FuzzGemini(f *testing.F) {
	for _, name := range []string{"shell", "auth"} {
		for _, line := range recorded(f, "gemini/"+name+".stream.jsonl") {
			f.Add(line)
		}
	}
	for i, line := range []string{geminiReady, geminiPrompt, geminiCalled, geminiFailed} {
		f.Add([]byte(strings.ReplaceAll(line, "TIME", fmt.Sprintf("2026-11-21T12:57:2%d.134Z", i))))
	}
	path := filepath.Join(f.TempDir(), "session-1.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		var all folded
		all.fold(harness.Stream(agency.Gemini, data), time.Now())
		all.fold(harness.Title(agency.Gemini, string(data)), time.Now())
		all.fold(harness.Screen(agency.Gemini, strings.Split(string(data), "\n")), time.Now())
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		all.fold(harness.ReadFile(agency.Gemini, path, &all.situation), time.Now())
	})
}
