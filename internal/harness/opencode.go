package harness

// opencode is OpenCode. It makes its own conversation ids.
func opencode(r Request) Command {
	var args []string
	if r.Headless {
		args = append(args, "run")
	}
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--format", "json")
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	c := Command{Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, Stdin: taskOnStdin(r)}
	if r.Resume && r.ConversationID != "" {
		args, c.ConversationID = append(args, "--session", r.ConversationID), r.ConversationID
	}
	args = append(args, r.Runner.Args...)
	switch {
	case r.Headless:
		args = append(args, "--", Opening)
	case c.ConversationID == "": // the terminal interface ignores a prompt for a conversation that it opens again
		args = append(args, "--prompt", Opening)
	}
	c.Argv = args
	return c
}
