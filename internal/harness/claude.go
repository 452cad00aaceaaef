package harness

import (
	"slices"

	"agency"
)

// claude is Claude Code. Its permission mode is always named, because the mode that it takes by itself changed between
// versions and can deny everything in a headless run.
func claude(r Request) Command {
	args, mode := slices.Clone(r.DefaultArgs), "manual"
	if r.Headless {
		args = append(args, "-p", "--output-format", "stream-json", "--verbose")
		mode = "acceptEdits"
	}
	if !names(slices.Concat(r.DefaultArgs, r.Runner.Args), "--permission-mode", "--dangerously-skip-permissions") {
		args = append(args, "--permission-mode", mode)
	}
	// An agent that needed leave to report its status could not say that it waits for somebody.
	args = append(args, "--allowedTools=Edit(/"+agency.DotDir+"/**)")
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.ConversationID != "" {
		args = append(args, sessionOption(r), r.ConversationID)
	}
	args = append(args, r.Runner.Args...)
	return Command{
		// Several options take any number of values, so the prompt stands behind "--".
		Argv:           append(args, "--", Opening),
		Env:            []string{"DISABLE_AUTOUPDATER=1"},
		Stdin:          taskOnStdin(r),
		ConversationID: r.ConversationID,
	}
}

// sessionOption names the conversation of an agent that lets its caller choose the id.
func sessionOption(r Request) string {
	if r.Resume {
		return "--resume"
	}
	return "--session-id"
}
