package harness

import (
	"path/filepath"
	"slices"
	"unicode/utf8"

	"agency"
)

// claudeCode is what is known about Claude Code. Its hooks tell most; they are silent on an answer, a refusal, Escape and
// calls of the model that are tried again, which its session file and its transcript tell.
var claudeCode = agent{
	command: claude, role: claudeRole, hook: claudeHook, stream: claudeStream, title: claudeTitle, screen: screenOf("claude"), errorMarks: []string{"✻ "}, dialog: dialogBelow("───"), answer: claudeAnswer,
	files: claudeFiles, readFile: claudeReadFile,
}

// claudeRole are the options that set Claude Code's system prompt, or add to it.
var claudeRole = []string{"--append-system-prompt", "--append-system-prompt-file", "--system-prompt", "--system-prompt-file"}

// claudeRoleFile is the name of a run's system prompt in the attempt's directory.
const claudeRoleFile = "system-prompt.md"

// claude is Claude Code's command line. Its permission mode is always named, because the mode that it takes by itself
// changed between versions and can deny everything in a headless run.
func claude(r agency.CommandRequest) agency.Command {
	args, settings := takeOption(r.DefaultArgs, "--settings")
	own, chosen := takeOption(r.Runner.Args, "--settings")
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
	switch {
	case r.SkipPermissions && !names(all, "--dangerously-skip-permissions"):
		args = append(args, "--dangerously-skip-permissions")
	case !names(all, "--permission-mode", "--dangerously-skip-permissions"):
		args = append(args, "--permission-mode", mode)
	}
	// An agent that needed leave to report its status could not say that it waits for somebody.
	args = append(args, "--allowedTools=Edit(/"+agency.DotDir+"/**),Bash(agency report:*)")
	var files map[string][]byte
	switch {
	case names(all, claudeRole...):
	case r.SystemPrompt != "":
		files = map[string][]byte{claudeRoleFile: []byte(role(r))}
		args = append(args, "--append-system-prompt-file", filepath.Join(r.AttemptDir, claudeRoleFile))
	default:
		args = append(args, "--append-system-prompt", Protocol)
	}
	if merged, ok := claudeSettings(settings, r); ok {
		// A file, because arguments can be read by every user of the machine, and the user's settings may hold secrets.
		if files == nil {
			files = map[string][]byte{}
		}
		files[claudeSettingsFile] = merged
		settings = filepath.Join(r.AttemptDir, claudeSettingsFile)
	}
	if settings != "" {
		args = append(args, "--settings", settings)
	}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.ConversationID != "" {
		args = append(args, sessionOption(r), r.ConversationID)
	}
	args = append(args, own...)
	return agency.Command{
		// Several options take any number of values, so the prompt stands behind "--".
		Argv:           append(args, "--", Opening),
		Env:            env,
		Stdin:          taskOnStdin(r),
		ConversationID: r.ConversationID,
		Files:          files,
	}
}

// sessionOption names the conversation of an agent that lets its caller choose the id.
func sessionOption(r agency.CommandRequest) string {
	if r.Resume {
		return "--resume"
	}
	return "--session-id"
}

// claudeTitle reads the sign before the name in the title: a star at rest, half a circle or braille dots at work.
func claudeTitle(title string) []agency.Evidence {
	switch sign, _ := utf8.DecodeRuneInString(title); {
	case sign == '✳':
		return []agency.Evidence{{Sign: agency.SignResting, Event: "title"}}
	case sign >= '◐' && sign <= '◓', sign > 0x2800 && sign <= 0x28ff:
		return []agency.Evidence{{Sign: agency.SignBusy, Event: "title"}}
	default:
		return nil
	}
}
