package gemini_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/harnesstest"
)

// geminiRun is a run of Gemini in a terminal whose titles and conversation a test writes.
type geminiRun struct {
	harnesstest.Folded
	t    *testing.T
	home string
	path string // of the conversation; empty until there is one
	now  time.Time
}

func newGeminiRun(t *testing.T, resume bool, home string) *geminiRun {
	t.Helper()
	g := &geminiRun{t: t, home: home, now: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
	c, err := harness.Build(agency.CommandRequest{
		Runner: agency.Runner{Kind: "gemini"}, Exec: harnesstest.Program(t), ConversationID: harnesstest.Minted, Resume: resume, Env: []string{"HOME=" + home},
	})
	if err != nil {
		t.Fatal(err)
	}
	var known agency.Evidence
	if err := json.Unmarshal(c.Files[agency.EventsFile], &known); err != nil {
		t.Fatalf("%v in %q", err, c.Files)
	}
	g.Fold([]agency.Evidence{known}, g.now)
	return g
}

func (g *geminiRun) title(text string) {
	g.now = g.now.Add(time.Second)
	g.Fold(harness.Title("gemini", text), g.now)
}

// say adds a line to the conversation; TIME in it becomes the present time.
func (g *geminiRun) say(line string) {
	g.t.Helper()
	if g.path == "" {
		chats := filepath.Join(g.home, ".gemini", "tmp", "work", "chats")
		if err := os.MkdirAll(chats, 0o700); err != nil {
			g.t.Fatal(err)
		}
		g.path = filepath.Join(chats, "session-2026-11-21T12-57-"+harnesstest.Minted[:8]+".jsonl")
		if _, err := os.Stat(g.path); err != nil {
			harnesstest.AppendTo(g.t, g.path, `{"sessionId":"`+harnesstest.Minted+`","kind":"main"}`+"\n"+`{"$set":{"messages":[]}}`+"\n")
		}
	}
	g.now = g.now.Add(time.Second)
	harnesstest.AppendTo(g.t, g.path, strings.ReplaceAll(line, "TIME", g.now.Format(time.RFC3339Nano))+"\n")
}

func (g *geminiRun) read() {
	g.now = g.now.Add(time.Second)
	for _, path := range harness.Files("gemini", &g.AgentState, nil) {
		g.Fold(harness.ReadFile("gemini", path, &g.AgentState), g.now)
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

// terminalSessions are what Gemini wrote into its title and its conversation, and the labels that
// follow.
var terminalSessions = []struct {
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

// This is what Gemini 0.61 wrote into its title and its conversation, in order.
func TestGeminiInItsTerminal(t *testing.T) {
	t.Parallel()
	for _, tt := range terminalSessions {
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
			if diff := cmp.Diff(tt.labels, g.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !strings.Contains(g.Status.Summary, tt.say) || g.AgentState.Conversation != harnesstest.Minted {
				t.Errorf("got %q of %q, want %q", g.Status.Summary, g.AgentState.Conversation, tt.say)
			}
		})
	}
}

// A conversation that is read after its titles changes no turn, but its prompts and its usage
// count.
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
	if s := g.AgentState; g.Status.Label != agency.Waiting || s.PromptAt.IsZero() || s.Model != "gemini-2.5-flash" {
		t.Errorf("got %s, %+v", g.Status.Label, s)
	}
	if u := g.AgentState.Usage; *u.InputTokens != 100 || *u.CachedTokens != 7 || *u.OutputTokens != 42 || u.CostUSD != nil {
		t.Errorf("got %d, %d, %d tokens and cost %v", *u.InputTokens, *u.CachedTokens, *u.OutputTokens, u.CostUSD)
	}
	g.say(geminiFailed)
	g.title(geminiWorking)
	g.read()
	if g.Status.Label != agency.Working {
		t.Errorf("got %s after an old error", g.Status.Label)
	}
}

// After an interruption Gemini writes the whole conversation again, which is not a prompt.
func TestGeminiWritesItsHistoryAgain(t *testing.T) {
	t.Parallel()
	g := newGeminiRun(t, false, t.TempDir())
	g.title(geminiReady)
	g.say(geminiPrompt)
	g.read()
	prompted := g.AgentState.PromptAt
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
	if s := g.AgentState; g.Status.Label != agency.Waiting || !s.Interrupted || !s.PromptAt.Equal(prompted) {
		t.Errorf("got %s, interrupted %t, prompted at %s, want waiting, true, %s", g.Status.Label, s.Interrupted, s.PromptAt, prompted)
	}
}

// An attempt that continues a conversation reads only new lines of it, and no other conversation.
func TestGeminiResumes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first := newGeminiRun(t, false, home)
	first.say(geminiAnswer)
	chats := filepath.Dir(first.path)
	other := filepath.Join(chats, "session-2026-11-21T13-02-"+harnesstest.Minted[:8]+".jsonl")
	harnesstest.AppendTo(t, other, `{"sessionId":"`+harnesstest.Minted[:8]+`-0000-0000-0000-000000000000","kind":"main"}`+"\n"+geminiAnswer+"\n")
	second := newGeminiRun(t, true, home)
	second.title(geminiReady)
	second.say(geminiPrompt)
	second.read()
	if s := second.AgentState; s.Usage.InputTokens != nil || s.PromptAt.IsZero() || s.Transcript != first.path {
		t.Errorf("got usage %v, prompt at %s, transcript %s", s.Usage.InputTokens, s.PromptAt, s.Transcript)
	}
}

func TestGeminiFilesLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for _, s := range []agency.AgentState{
		{},
		{Conversation: harnesstest.Minted, Transcript: "tmp"},
		{Conversation: "../../etc", Transcript: t.TempDir()},
		{Conversation: "short", Transcript: t.TempDir()},
		{Conversation: harnesstest.Minted, Transcript: "/etc/passwd.txt"},
	} {
		if got := harness.Files("gemini", &s, nil); len(got) > 0 {
			t.Errorf("%+v leads to %q", s, got)
		}
	}
}

// This is the output of Gemini without a terminal.
func TestGeminiStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		signs []agency.Signal
		say   string
		input int64
	}{
		{"shell", []agency.Signal{
			agency.SignalSession, agency.SignalPrompt, agency.SignalBusy, agency.SignalToolStarted, agency.SignalToolEnded, agency.SignalBusy,
			agency.SignalUsage, agency.SignalTurnEnded,
		}, "its turn ended", 200},
		{"auth", []agency.Signal{agency.SignalSession, agency.SignalPrompt, agency.SignalUsage, agency.SignalFailed}, "auth", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all harnesstest.Folded
			var signs []agency.Signal
			for _, line := range harnesstest.Lines(t, "testdata/"+tt.name+".stream.jsonl") {
				evidence := harness.Stream("gemini", line)
				for _, e := range evidence {
					signs = append(signs, e.Signal)
				}
				all.Fold(evidence, time.Now())
			}
			if diff := cmp.Diff(tt.signs, signs); diff != "" {
				t.Errorf("signs (-want +got):\n%s", diff)
			}
			s := all.AgentState
			if !strings.Contains(all.Status.Summary, tt.say) || s.Conversation == "" || s.Model != "gemini-2.5-flash" || *s.Usage.InputTokens != tt.input {
				t.Errorf("got %q, %+v", all.Status.Summary, s)
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
	got := harness.Screen("gemini", trust)
	if len(got) != 1 || got[0].Signal != agency.SignalAsked || got[0].Kind != agency.AsksDialog || got[0].Confidence >= 1 {
		t.Errorf("got %+v", got)
	}
	quoted := slices.Concat(trust, strings.Split(strings.Repeat("\n", 30)+" >   Type your message or @path/to/file", "\n"))
	if got := harness.Screen("gemini", quoted); len(got) > 0 {
		t.Errorf("what stands far above the input box is %+v", got)
	}
}

// The title shows that Gemini asks, and its dialog shows what.
func TestGeminiReportsWhatItAsks(t *testing.T) {
	t.Parallel()
	var all harnesstest.Folded
	at := time.Now()
	show := func(evidence []agency.Evidence) agency.Request {
		at = at.Add(time.Second)
		all.Fold(evidence, at)
		if len(all.AgentState.Requests) != 1 {
			return agency.Request{}
		}
		return all.AgentState.Requests[0]
	}
	screen := func(name string) []agency.Evidence {
		return harness.Screen("gemini", harnesstest.Screen(t, "testdata/"+name))
	}

	show(harness.Title("gemini", geminiWorking))
	if r := show(screen("permission")); r.Kind != "" {
		t.Errorf("a dialog without a title is no request, but maybe a quotation: %+v", r)
	}
	first := show(harness.Title("gemini", geminiAsks))
	r := show(screen("permission"))
	if r.Kind != agency.AsksPermission || r.Tool != "Shell" || r.Text != "touch made.txt" || !r.At.Equal(first.At) || r.Confidence >= 1 {
		t.Errorf("got %+v", r)
	}
	next := show(screen("question"))
	if next.Kind != agency.AsksQuestion || next.Text != "Which colour?" || next.PromptID() == r.PromptID() || next.Is(r.PromptID()) {
		t.Errorf("another dialog in its place: got %+v", next)
	}
	if typing := show(screen("question-own")); !reflect.DeepEqual(typing, next) {
		t.Errorf("an answer that is being typed is no other question: %+v", typing)
	}
	if r := show(harness.Title("gemini", geminiReady)); r.Kind != "" || all.Status.Label != agency.Waiting {
		t.Errorf("got %+v, %s", r, all.Status.Label)
	}
}

func FuzzGemini(f *testing.F) {
	for _, name := range []string{"shell", "auth"} {
		for _, line := range harnesstest.Lines(f, "testdata/"+name+".stream.jsonl") {
			f.Add(line)
		}
	}
	for i, line := range []string{geminiReady, geminiPrompt, geminiCalled, geminiFailed} {
		f.Add([]byte(strings.ReplaceAll(line, "TIME", fmt.Sprintf("2026-11-21T12:57:2%d.134Z", i))))
	}
	path := filepath.Join(f.TempDir(), "session-1.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		var all harnesstest.Folded
		all.Fold(harness.Stream("gemini", data), time.Now())
		all.Fold(harness.Title("gemini", string(data)), time.Now())
		all.Fold(harness.Screen("gemini", strings.Split(string(data), "\n")), time.Now())
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		all.Fold(harness.ReadFile("gemini", path, &all.AgentState), time.Now())
	})
}
