package harness

import "slices"

// gemini is the Gemini CLI.
func gemini(r Request) Command {
	args, prompt := slices.Clone(r.DefaultArgs), "--prompt-interactive"
	if r.Headless {
		args = append(args, "-o", "stream-json")
		prompt = "--prompt"
		if !names(slices.Concat(r.DefaultArgs, r.Runner.Args), "--approval-mode", "--yolo", "-y") {
			// Without this a headless run has no tools that write files.
			args = append(args, "--approval-mode", "auto_edit")
		}
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	if r.ConversationID != "" {
		args = append(args, sessionOption(r), r.ConversationID)
	}
	args = append(args, r.Runner.Args...)
	return Command{
		Argv:           append(args, prompt, Opening),
		Stdin:          taskOnStdin(r),
		ConversationID: r.ConversationID,
	}
}
