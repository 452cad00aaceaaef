// Package claude describes Claude Code.
package claude

import (
	_ "embed" // the patterns
	"path/filepath"
	"slices"
	"unicode/utf8"

	"agency"
	"agency/internal/harness/agent"
)

//go:embed screen.toml
var patterns []byte // patterns of its terminal

// Agent describes Claude Code. Its hooks report most; they do not report an answer, a refusal,
// Escape or a retried call of the model, which its session file and its transcript show.
var Agent = agent.Agent{
	Kind: "claude_code", Name: "Claude Code", Program: "claude", Package: "@anthropic-ai/claude-code", Version: "2.1.329",
	Login: agent.Login{
		Variables: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Folder:    "CLAUDE_CONFIG_DIR", Home: ".claude", File: ".credentials.json",
	},
	State:       state,
	Command:     command,
	RoleOptions: roleOptions,
	Skips:       []string{"--dangerously-skip-permissions", "--permission-mode=bypassPermissions"},
	Hook:        hook,
	Stream:      stream,
	Dialect:     &dialect,
	Title:       title,
	Files:       files,
	ReadFile:    readFile,
	Screen:      agent.ScreenOf(patterns),
	Composer:    agent.RuledComposer,
	ErrorMarks:  []string{"✻ "},
	Dialog:      agent.DialogBelow("───"),
	Answer:      answer,
}

// roleOptions are the options that set or extend Claude Code's system prompt.
var roleOptions = []string{"--append-system-prompt", "--append-system-prompt-file", "--system-prompt", "--system-prompt-file"}

// roleFile is the name of a run's system prompt in the attempt's directory.
const roleFile = "system-prompt.md"

// command returns Claude Code's command line. It always sets the permission mode, because the
// default mode changed between versions and can deny everything in a headless run.
func command(r agency.CommandRequest) agency.Command {
	args, settings := agent.TakeOption(r.DefaultArgs, "--settings")
	own, chosen := agent.TakeOption(r.Runner.Args, "--settings")
	if chosen != "" {
		settings = chosen
	}
	all := slices.Concat(args, own)
	env, mode := []string{"DISABLE_AUTOUPDATER=1"}, "manual"
	if r.Headless {
		args = append(args, "-p", "--output-format", "stream-json", "--verbose")
		env = append(env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1")
		mode = "acceptEdits"
	}
	if r.Mode == agency.ModeProtocol {
		args = append(args, protocolArgs()...)
		env = append(env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1")
	}
	args = append(args, permissionArgs(r, all, mode)...)
	var files map[string][]byte
	switch {
	case agent.Names(all, roleOptions...):
	case r.SystemPrompt != "":
		files = map[string][]byte{roleFile: []byte(agent.Role(r))}
		args = append(args, "--append-system-prompt-file", filepath.Join(r.AttemptDir, roleFile))
	default:
		args = append(args, "--append-system-prompt", agent.Protocol)
	}
	if merged, ok := withHooks(settings, r); ok && r.Mode != agency.ModeProtocol { // its protocol says more
		// A file, because arguments can be read by every user of the machine, and the user's
		// settings may hold secrets.
		if files == nil {
			files = map[string][]byte{}
		}
		files[settingsFile] = merged
		settings = filepath.Join(r.AttemptDir, settingsFile)
	}
	if settings != "" {
		args = append(args, "--settings", settings)
	}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.ConversationID != "" {
		args = append(args, agent.SessionOption(r), r.ConversationID)
	}
	args = append(args, own...)
	opening := agent.Opening(r)
	if r.Mode != agency.ModeProtocol && !r.Silent {
		args, opening = append(args, "--", opening), "" // behind "--": several options take any number of values
	}
	return agency.Command{
		Argv:           args,
		Opening:        opening,
		Env:            env,
		Stdin:          agent.TaskOnStdin(r),
		ConversationID: r.ConversationID,
		Files:          files,
	}
}

// permissionArgs returns the arguments for what the agent may do without asking. all are the user's
// arguments, and mode is the permission mode if they set none.
func permissionArgs(r agency.CommandRequest, all []string, mode string) []string {
	var args []string
	switch {
	case r.SkipPermissions && !agent.Names(all, "--dangerously-skip-permissions"):
		args = append(args, "--dangerously-skip-permissions")
	case !agent.Names(all, "--permission-mode", "--dangerously-skip-permissions"):
		args = append(args, "--permission-mode", mode)
	}
	// An agent that needed permission to report its status could not report that it waits for the
	// user.
	return append(args, "--allowedTools=Edit(/"+agency.DotDir+"/**),Bash(agency report:*)")
}

// title reads the symbol before the name in the title: a star at rest, half a circle or braille
// dots at work.
func title(title string) []agency.Evidence {
	switch signal, _ := utf8.DecodeRuneInString(title); {
	case signal == '✳':
		return []agency.Evidence{{Signal: agency.SignalResting, Event: "title"}}
	case signal >= '◐' && signal <= '◓', signal > 0x2800 && signal <= 0x28ff:
		return []agency.Evidence{{Signal: agency.SignalBusy, Event: "title"}}
	default:
		return nil
	}
}
