package copilot_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
	"agency/internal/status"
)

// build returns the command of an attempt with this home.
func build(t *testing.T, home string, r agency.CommandRequest) agency.Command {
	t.Helper()
	r.Runner.Kind, r.Exec, r.AttemptDir, r.Hook = "copilot", harnesstest.Program(t), "/run/attempts/1", []string{"/opt/it's/agency", "hook"}
	r.Env = append(r.Env, "HOME="+home)
	c, err := harness.Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run is an attempt whose conversation a test writes.
type run struct {
	harnesstest.Folded
	t    *testing.T
	path string
	now  time.Time
}

func newRun(t *testing.T, home string) *run {
	t.Helper()
	r := &run{t: t, now: time.Now().Add(-time.Hour)}
	c := build(t, home, agency.CommandRequest{ConversationID: harnesstest.Minted})
	var known agency.Evidence
	if err := json.Unmarshal(c.Files[agency.EventsFile], &known); err != nil {
		t.Fatalf("%v in %q", err, c.Files)
	}
	r.fold([]agency.Evidence{known})
	paths := harness.Files("copilot", &r.AgentState, nil)
	if len(paths) != 1 {
		t.Fatalf("files: %q", paths)
	}
	r.path = paths[0]
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) fold(evidence []agency.Evidence) {
	r.now = r.now.Add(time.Second)
	r.Fold(evidence, r.now)
}

// write adds lines to the conversation, and has them read.
func (r *run) write(lines ...[]byte) {
	r.t.Helper()
	harnesstest.AppendTo(r.t, r.path, string(bytes.Join(lines, []byte("\n")))+"\n")
	r.fold(harness.ReadFile("copilot", r.path, &r.AgentState))
}

// This is the file of Copilot 1.0.102, read line by line and all at once.
func TestConversation(t *testing.T) {
	t.Parallel()
	working, asks, waiting := agency.Working, agency.NeedsInput, agency.Waiting
	for name, tt := range map[string]struct {
		labels        []agency.Label
		say           string
		input, output int64
	}{
		"headless":   {[]agency.Label{working, waiting}, "its turn ended", 200, 41},
		"perm-allow": {[]agency.Label{working, asks, working, waiting}, "its turn ended", 200, 41},
		"perm-esc":   {[]agency.Label{working, asks, working, waiting}, "interrupted", 100, 37},
		"ask":        {[]agency.Label{working, asks, working, waiting}, "its turn ended", 200, 53},
		"ask-esc":    {[]agency.Label{working, asks, working, waiting}, "its turn ended", 200, 68},
		"err-401":    {[]agency.Label{working, waiting}, "auth", 0, 0},
		"err-429":    {[]agency.Label{working, waiting}, "rate limit", 0, 0},
		"err-400":    {[]agency.Label{working, waiting}, "context", 0, 0},
		"two":        {[]agency.Label{working, asks}, "touch two.txt", 100, 44},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := harnesstest.Lines(t, "testdata/"+name+".events.jsonl")
			last := len(lines) - 1 // the program's end
			slowly, fast := newRun(t, t.TempDir()), newRun(t, t.TempDir())
			for _, line := range lines[:last] {
				slowly.write(line)
			}
			fast.write(lines[:last]...)
			for how, r := range map[string]*run{"line by line": slowly, "at once": fast} {
				if diff := cmp.Diff(tt.labels, r.Labels); diff != "" {
					t.Errorf("%s: labels (-want +got):\n%s", how, diff)
				}
				if !strings.Contains(r.Status.Summary, tt.say) {
					t.Errorf("%s: got %q, want %q", how, r.Status.Summary, tt.say)
				}
				if u := r.AgentState.Usage; tt.input > 0 && (*u.InputTokens != tt.input || *u.OutputTokens != tt.output || r.AgentState.Model != "scripted") {
					t.Errorf("%s: used %d, %d of %q, want %d, %d", how, *u.InputTokens, *u.OutputTokens, r.AgentState.Model, tt.input, tt.output)
				}
				r.write(lines[last])
				if !r.AgentState.Ended || len(r.AgentState.Requests) > 0 {
					t.Errorf("%s: after its end: %+v", how, r.AgentState)
				}
			}
		})
	}
}

// A prompt that is read after a report is as old as it is.
func TestPromptReadLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(`{"type":"user.message","data":{"content":"go"},"timestamp":"2026-11-28T04:58:29.958Z"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Date(2026, 11, 28, 4, 58, 29, 958e6, time.UTC)
	for source, want := range map[agency.Source]time.Time{agency.FromReport: written, agency.FromHook: {}} {
		s := agency.AgentState{Transcript: path, Sources: map[agency.Source]agency.SourceStats{source: {At: written.Add(time.Second)}}}
		s.HeardAt = written.Add(time.Second)
		evidence := harness.ReadFile("copilot", path, &s)
		if len(evidence) == 0 || evidence[0].Signal != agency.SignalPrompt || !evidence[0].At.Equal(want) {
			t.Errorf("after evidence from %s: got %+v", source, evidence)
		}
	}
}

// Nothing in the file counts until the first prompt: a dialog of the program's start may be open,
// and calls that the attempt before left open are reported as ended only then.
func TestResumed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	lines := harnesstest.Lines(t, "testdata/killed.events.jsonl")
	second := slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(`"session.resume"`)) })
	first := newRun(t, home)
	first.write(lines[:second]...)

	r := newRun(t, home)
	r.fold(harness.Screen("copilot", harnesstest.Screen(t, "testdata/trust")))
	r.write(lines[second : second+2]...)
	if status.SpokeForItself(&r.AgentState) || r.Status.Label != agency.NeedsInput {
		t.Errorf("got %s, spoke: %t", r.Status.Label, status.SpokeForItself(&r.AgentState))
	}
	r.write(lines[second+2 : len(lines)-1]...)
	if diff := cmp.Diff([]agency.Label{agency.NeedsInput, agency.Working, agency.Waiting}, r.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if used := *r.AgentState.Usage.InputTokens; used != 100 {
		t.Errorf("the second attempt used %d", used)
	}
}

// Only a hook reports that a call is tried again; the next answer, or the end, shows that it is
// over.
func TestRetry(t *testing.T) {
	t.Parallel()
	const failed = `{"hook_event_name":"ErrorOccurred","session_id":"s","error":{"name":"Error","message":"{\"message\":\"slow down\",\"type\":\"rate_limit_error\",\"code\":null}"}}`
	lines := harnesstest.Lines(t, "testdata/err-429.events.jsonl")
	r := newRun(t, t.TempDir())
	r.write(lines[:4]...)
	r.fold(harness.Hook("copilot", []byte(failed)))
	if retry := r.AgentState.Retry; retry == nil || retry.Class != agency.ErrorRateLimit || retry.Text != "slow down" {
		t.Fatalf("got %+v", retry)
	}
	r.write(lines[4:6]...)
	if r.AgentState.Retry != nil || r.AgentState.Failure == nil || r.Status.Label != agency.Waiting {
		t.Errorf("got %s, %+v", r.Status.Label, r.AgentState)
	}
	for _, payload := range []string{"", "{}", `{"hook_event_name":"Stop"}`} {
		if got := harness.Hook("copilot", []byte(payload)); len(got) != 1 || got[0].Signal != agency.SignalUnknown {
			t.Errorf("%q: got %+v", payload, got)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	const leave = "--allow-tool=write(.agency/state/runner_status.json)"
	for name, tt := range map[string]struct {
		r    agency.CommandRequest
		want string
	}{
		"terminal": {
			agency.CommandRequest{ConversationID: harnesstest.Minted, Model: "gpt-5.4", DefaultArgs: []string{"--banner"}},
			"--banner " + leave + " --plugin-dir /run/attempts/1 --model gpt-5.4 --session-id " + harnesstest.Minted + " --interactive OPENING",
		},
		"headless": {
			agency.CommandRequest{Headless: true},
			leave + " --output-format json --stream off --no-ask-user --allow-tool=write --plugin-dir /run/attempts/1 --prompt OPENING",
		},
		"headless with permissions of its own": {
			agency.CommandRequest{Headless: true, Runner: agency.Runner{Args: []string{"--allow-all-tools"}}},
			leave + " --output-format json --stream off --no-ask-user --plugin-dir /run/attempts/1 --allow-all-tools --prompt OPENING",
		},
		"resumed, and nothing asked": {
			agency.CommandRequest{ConversationID: harnesstest.Minted, Resume: true, SkipPermissions: true},
			leave + " --allow-all --plugin-dir /run/attempts/1 --session-id " + harnesstest.Minted + " --interactive OPENING",
		},
	} {
		c := build(t, "/home/dev", tt.r)
		got := strings.ReplaceAll(strings.Join(c.Argv[1:], " "), agent.Opening(agency.CommandRequest{}), "OPENING")
		if got != tt.want || c.ConversationID != tt.r.ConversationID || c.Stdin != "" {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}

// A run's hook, role and instructions are in files of the attempt; the folders of the user's own
// instructions stay.
func TestFiles(t *testing.T) {
	t.Parallel()
	c := build(t, "/home/dev", agency.CommandRequest{SystemPrompt: "You watch.", Env: []string{"COPILOT_CUSTOM_INSTRUCTIONS_DIRS=/mine"}})
	if want := []string{"COPILOT_AUTO_UPDATE=false", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS=/mine,/run/attempts/1"}; !slices.Equal(c.Env, want) {
		t.Errorf("environment %q, want %q", c.Env, want)
	}
	role := string(c.Files["agency.instructions.md"])
	if !strings.HasPrefix(role, "---\napplyTo: \"**\"\n---\nYou watch.\n") || !strings.Contains(role, agent.Protocol) {
		t.Errorf("role:\n%s", role)
	}
	if manifest := string(c.Files["plugin.json"]); !strings.Contains(manifest, `"hooks":"copilot-hooks.json"`) {
		t.Errorf("plugin: %s", manifest)
	}
	var hooks struct {
		Hooks map[string][]struct{ Bash string }
	}
	if err := json.Unmarshal(c.Files["copilot-hooks.json"], &hooks); err != nil {
		t.Fatal(err)
	}
	if got := hooks.Hooks["ErrorOccurred"]; len(got) != 1 || got[0].Bash != `'/opt/it'\''s/agency' 'hook' 'copilot'` {
		t.Errorf("hooks: %+v", hooks)
	}
}

// The file is where Copilot's own variable points, or below the home; without either nothing is
// read.
func TestFilesOfTheConversation(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"HOME=/home/dev":                     "/home/dev/.copilot/session-state/" + harnesstest.Minted + "/events.jsonl",
		"HOME=/home/dev COPILOT_HOME=/srv/c": "/srv/c/session-state/" + harnesstest.Minted + "/events.jsonl",
		"HOME=dev":                           "",
	} {
		c, err := harness.Build(agency.CommandRequest{
			Runner: agency.Runner{Kind: "copilot"}, Exec: harnesstest.Program(t), ConversationID: harnesstest.Minted, Env: strings.Fields(env),
		})
		if err != nil {
			t.Fatal(err)
		}
		var known agency.Evidence
		_ = json.Unmarshal(c.Files[agency.EventsFile], &known) // there may be no such file
		if known.Transcript != want {
			t.Errorf("%s: got %q, want %q", env, known.Transcript, want)
		}
	}
	for _, path := range []string{"", "events.jsonl", "/etc/passwd"} {
		if got := harness.Files("copilot", &agency.AgentState{Transcript: path}, nil); len(got) > 0 {
			t.Errorf("%q leads to %q", path, got)
		}
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]agency.Evidence{
		"trust":            {Signal: agency.SignalAsked, Kind: agency.AsksDialog},
		"in-use":           {Signal: agency.SignalAsked, Kind: agency.AsksDialog},
		"permission":       {Signal: agency.SignalAsked, Kind: agency.AsksPermission},
		"permission-write": {Signal: agency.SignalAsked, Kind: agency.AsksPermission},
		"path":             {Signal: agency.SignalAsked, Kind: agency.AsksPermission},
		"question":         {Signal: agency.SignalAsked, Kind: agency.AsksQuestion},
		"question-own":     {Signal: agency.SignalAsked, Kind: agency.AsksQuestion},
		"question-two":     {Signal: agency.SignalAsked, Kind: agency.AsksQuestion},
		"form":             {Signal: agency.SignalAsked, Kind: agency.AsksQuestion},
		"working":          {Signal: agency.SignalBusy},
		"resting":          {Signal: agency.SignalSession},
	} {
		got := harness.Screen("copilot", harnesstest.Screen(t, "testdata/"+name))
		if len(got) != 1 || got[0].Signal != want.Signal || got[0].Kind != want.Kind || got[0].Confidence >= 1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Moving the cursor by two uses two different keys, so that a slow terminal does not get the same
// key twice.
func TestStepsDiffer(t *testing.T) {
	t.Parallel()
	request := agency.Request{Kind: agency.AsksQuestion, Text: "Which colour?"}
	screen := strings.Join(harnesstest.Screen(t, "testdata/question"), "\n")
	moved := strings.NewReplacer("❯ Red", "  Red", "  Blue", "❯ Blue").Replace(screen)
	var steps []string
	for _, shows := range []string{screen, moved} {
		keys, _, err := harness.Answer("copilot", strings.Split(shows, "\n"), &request, agency.Reply{Text: "green"})
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, keys)
	}
	if want := []string{"\x1b[B", "\x1bOB"}; !slices.Equal(steps, want) {
		t.Errorf("got %q, want %q", steps, want)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("╭──\n│ touch x │\n│ Do you want to run this command?\n│ ❯ 1. Yes\n│   2. No\n│ ↑/↓ to navigate\n╰──╯", "touch x")
	f.Add("────\n Copilot needs information.\n Which?\n\n a:\n ❯ Red\n   Blue\n\n enter accept\n────", "Which?")
	f.Fuzz(func(t *testing.T, screen, text string) {
		lines := strings.Split(screen, "\n")
		for _, r := range []agency.Request{{Kind: agency.AsksPermission, Text: text}, {Kind: agency.AsksQuestion, Text: text}} {
			for _, reply := range []agency.Reply{{Decision: agency.Allow}, {Decision: agency.Deny}, {Text: "blue"}} {
				keys, shown, err := harness.Answer("copilot", lines, &r, reply)
				if keys != "" && (!shown || err != nil) {
					t.Errorf("pressed %q at no dialog", keys)
				}
			}
		}
	})
}
