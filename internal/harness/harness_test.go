package harness_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/harness"
	"agency/internal/harness/agent"
	"agency/internal/harness/harnesstest"
)

const (
	minted = harnesstest.Minted
	task   = harnesstest.Task
	// allowed is what Claude Code may do without a permission, so that it can always report.
	allowed = "--allowedTools=Edit(/.agency/**),Bash(agency report:*)"
)

type buildInput struct {
	kind          agency.RunnerKind
	defaults, own string // arguments, separated by spaces
	model, id     string
	headless      bool
	resume        bool
}

// builds are runs and the command lines that begin them.
var builds = []struct {
	name  string
	in    buildInput
	argv  string // after the program; OPENING, PROTOCOL and ALLOWED stand for the texts of that name
	env   []string
	stdin string
	id    string
}{
	{
		name: "claude",
		in:   buildInput{kind: "claude_code", id: minted},
		argv: "--permission-mode manual ALLOWED --append-system-prompt PROTOCOL --session-id " + minted + " -- OPENING",
		env:  []string{"DISABLE_AUTOUPDATER=1"}, id: minted,
	},
	{
		name: "claude headless",
		in:   buildInput{kind: "claude_code", id: minted, headless: true},
		argv: "-p --output-format stream-json --verbose --permission-mode acceptEdits ALLOWED --append-system-prompt PROTOCOL" +
			" --session-id " + minted + " -- OPENING",
		env: []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1"}, stdin: task, id: minted,
	},
	{
		name: "claude resumed with a model and arguments",
		in: buildInput{
			kind: "claude_code", id: minted, resume: true, model: "opus",
			defaults: "--add-dir /data", own: "--allowedTools Bash",
		},
		argv: "--add-dir /data --permission-mode manual ALLOWED --append-system-prompt PROTOCOL --model opus --resume " + minted +
			" --allowedTools Bash -- OPENING",
		env: []string{"DISABLE_AUTOUPDATER=1"}, id: minted,
	},
	{
		name: "claude headless resumed without an id begins anew",
		in:   buildInput{kind: "claude_code", headless: true, resume: true},
		argv: "-p --output-format stream-json --verbose --permission-mode acceptEdits ALLOWED --append-system-prompt PROTOCOL -- OPENING",
		env:  []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1"}, stdin: task,
	},
	{
		name: "claude with a permission mode in the defaults",
		in:   buildInput{kind: "claude_code", defaults: "--permission-mode=plan"},
		argv: "--permission-mode=plan ALLOWED --append-system-prompt PROTOCOL -- OPENING",
		env:  []string{"DISABLE_AUTOUPDATER=1"},
	},
	{
		name: "claude that skips permissions",
		in:   buildInput{kind: "claude_code", own: "--dangerously-skip-permissions", headless: true},
		argv: "-p --output-format stream-json --verbose ALLOWED --append-system-prompt PROTOCOL --dangerously-skip-permissions -- OPENING",
		env:  []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1"}, stdin: task,
	},
	{
		name: "gemini",
		in:   buildInput{kind: "gemini", id: minted, model: "flash", defaults: "--skip-trust", own: "--debug"},
		argv: "--skip-trust -m flash --session-id " + minted + " --debug --prompt-interactive OPENING", id: minted,
	},
	{
		name: "gemini headless",
		in:   buildInput{kind: "gemini", id: minted, headless: true},
		argv: "-o stream-json --approval-mode auto_edit --session-id " + minted + " --prompt OPENING", stdin: task, id: minted,
	},
	{
		name: "gemini headless with its own approval mode",
		in:   buildInput{kind: "gemini", headless: true, own: "-y"},
		argv: "-o stream-json -y --prompt OPENING", stdin: task,
	},
	{
		name: "gemini headless resumed",
		in:   buildInput{kind: "gemini", id: minted, headless: true, resume: true, own: "--approval-mode=plan"},
		argv: "-o stream-json --resume " + minted + " --approval-mode=plan --prompt OPENING", stdin: task, id: minted,
	},
	{
		name: "gemini resumed",
		in:   buildInput{kind: "gemini", id: minted, resume: true},
		argv: "--resume " + minted + " --prompt-interactive OPENING", id: minted,
	},
	{
		name: "opencode takes no id",
		in:   buildInput{kind: "opencode", id: minted, model: "a/b", defaults: "--pure", own: "--agent build"},
		argv: "--pure -m a/b --agent build --prompt OPENING", env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1"},
	},
	{
		name: "opencode headless",
		in:   buildInput{kind: "opencode", headless: true, model: "a/b", defaults: "--pure", own: "--agent build"},
		argv: "run --pure --format json -m a/b --agent build -- OPENING",
		env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, stdin: task,
	},
	{
		name: "opencode resumed",
		in:   buildInput{kind: "opencode", id: "ses_1", resume: true},
		argv: "--session ses_1", env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, id: "ses_1",
	},
	{
		name: "opencode headless resumed",
		in:   buildInput{kind: "opencode", id: "ses_1", resume: true, headless: true},
		argv: "run --format json --session ses_1 -- OPENING",
		env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, stdin: task, id: "ses_1",
	},
	{
		name: "shell",
		in:   buildInput{kind: agency.Shell, id: minted, model: "ignored", defaults: "-e", own: "one two"},
		argv: "-e " + task + " one two",
	},
	{
		name: "shell headless resumed",
		in:   buildInput{kind: agency.Shell, headless: true, resume: true},
		argv: task,
	},
	{
		name: "custom",
		in: buildInput{
			kind: agency.Custom, headless: true, id: minted, defaults: "--task={prompt_file} --in {worktree}",
			own: "{run_id}{run_id} {unknown} {{worktree}} $(date)",
		},
		argv: "--task=" + task + " --in /wt r_01r_01 {unknown} {/wt} $(date)",
	},
}

func TestBuild(t *testing.T) {
	t.Parallel()
	exe := harnesstest.Program(t)
	for _, tt := range builds {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := harness.Build(agency.CommandRequest{
				Runner: agency.Runner{Kind: tt.in.kind, Name: string(tt.in.kind), Args: strings.Fields(tt.in.own)},
				Exec:   exe, DefaultArgs: strings.Fields(tt.in.defaults), Model: tt.in.model,
				Headless: tt.in.headless, Resume: tt.in.resume, ConversationID: tt.in.id,
				PromptFile: task, Worktree: "/wt", RunID: "r_01", Attempt: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			argv := append([]string{exe}, strings.Fields(tt.argv)...)
			words := strings.NewReplacer("OPENING", agent.Opening(agency.CommandRequest{}), "PROTOCOL", agent.Protocol, "ALLOWED", allowed)
			for i, arg := range argv {
				argv[i] = words.Replace(arg)
			}
			want := agency.Command{Argv: argv, Env: tt.env, Stdin: tt.stdin, ConversationID: tt.id}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

// An agent that is to wait for a message gets none at the start, in no mode.
func TestBuildSilent(t *testing.T) {
	t.Parallel()
	opening := agent.Opening(agency.CommandRequest{})
	for _, kind := range harness.Kinds() {
		for _, mode := range []agency.Mode{agency.ModeTerminal, agency.ModeProtocol} {
			request := agency.CommandRequest{
				Runner: agency.Runner{Kind: kind}, Exec: harnesstest.Program(t), Mode: mode, Resume: true, ConversationID: "ses_1",
				PromptFile: task, Worktree: "/wt", RunID: "r_01", SystemPrompt: "You review.",
			}
			if kind == agency.Shell {
				continue
			}
			for _, request.Silent = range []bool{false, true} {
				c, err := harness.Build(request)
				if err != nil {
					t.Fatal(err)
				}
				said := strings.Contains(strings.Join(append(c.Argv, c.Opening), " "), opening)
				if always := kind == "opencode" && mode == agency.ModeTerminal; said == request.Silent && !always || c.ConversationID != "ses_1" {
					t.Errorf("%s in the mode %s, silent %t: %q, %q, %q", kind, mode, request.Silent, c.Argv, c.Opening, c.ConversationID)
				}
			}
		}
	}
}

func TestBuildLeavesTheRequestAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range append(harness.Kinds(), agency.Custom) {
		defaults := append(make([]string, 0, 50), "{run_id}")
		own := append(make([]string, 0, 50), "{worktree}")
		_, err := harness.Build(agency.CommandRequest{
			Runner: agency.Runner{Kind: kind, Args: own}, Exec: harnesstest.Program(t), DefaultArgs: defaults,
			PromptFile: task, Worktree: "/wt", RunID: "r_01",
		})
		if err != nil {
			t.Fatal(err)
		}
		if defaults[0] != "{run_id}" || own[0] != "{worktree}" || defaults[:2][1] != "" || own[:2][1] != "" {
			t.Errorf("%s wrote into the arguments of its caller: %q %q", kind, defaults[:2], own[:2])
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	exe := harnesstest.Program(t)
	tests := []struct {
		name string
		r    agency.CommandRequest
		code agency.Code
		say  string
		hint string
	}{
		{
			"a model that is an option",
			agency.CommandRequest{Runner: agency.Runner{Kind: "claude_code"}, Exec: exe, Model: "--dangerously-skip-permissions"},
			agency.CodeSpecInvalid, `"--dangerously-skip-permissions"`, "arguments",
		},
		{
			"a conversation that is an option",
			agency.CommandRequest{Runner: agency.Runner{Kind: "codex"}, Exec: exe, Resume: true, ConversationID: "--last"},
			agency.CodeSpecInvalid, `"--last"`, "",
		},
		{
			"a conversation with a line break",
			agency.CommandRequest{Runner: agency.Runner{Kind: "opencode"}, Exec: exe, Resume: true, ConversationID: "ses\nx"},
			agency.CodeSpecInvalid, `"ses\nx"`, "",
		},
		{
			"an unknown kind",
			agency.CommandRequest{Runner: agency.Runner{Kind: "clippy"}, Exec: exe},
			agency.CodeSpecInvalid, `"clippy"`, "",
		},
		{
			"a missing agent",
			agency.CommandRequest{Runner: agency.Runner{Kind: "claude_code"}, Exec: "claude", Env: []string{"PATH=/nonexistent"}},
			agency.CodeRunnerNotConfigured, "claude is not in PATH", "[runners.claude_code] exec =",
		},
		{
			"a missing custom program",
			agency.CommandRequest{Runner: agency.Runner{Kind: agency.Custom, Name: "mine"}, Exec: "./bot", Worktree: "/nonexistent"},
			agency.CodeRunnerNotConfigured, "/nonexistent/bot does not exist", "[runners.custom.mine] exec =",
		},
		{
			"a custom program without a protocol",
			agency.CommandRequest{Runner: agency.Runner{Kind: agency.Custom, Name: "mine"}, Exec: exe, Mode: agency.ModeProtocol},
			agency.CodeSpecInvalid, "does not speak a protocol of mine", `protocol = "acp" in [runners.custom.mine];`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := harness.Build(tt.r)
			e := agency.AsError(err)
			if e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.say) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got %+v, want %s with %q and a hint with %q", e, tt.code, tt.say, tt.hint)
			}
		})
	}
}
