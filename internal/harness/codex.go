package harness

import "slices"

// codex is Codex. It makes its own conversation ids.
func codex(r Request) Command {
	resume := r.Resume && r.ConversationID != ""
	var args []string
	switch {
	case r.Headless:
		args = append(args, "exec")
	case resume:
		args = append(args, "resume")
	}
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--json")
		if !names(slices.Concat(r.DefaultArgs, r.Runner.Args), "-s", "--sandbox", "--full-auto", "--dangerously-bypass-approvals-and-sandbox") {
			// In a repository that it was not told to trust it could only read, and could not even report that.
			args = append(args, "-s", "workspace-write")
		}
	} else {
		// With its shared server, agents would outlive the terminal that agency watches.
		args = append(args, "--no-daemon")
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	args = append(args, r.Runner.Args...)
	if r.Headless && resume {
		// "exec" knows options that "exec resume" does not, so all of them stand before the subcommand.
		args = append(args, "resume")
	}
	args = append(args, "--")
	c := Command{Stdin: taskOnStdin(r)}
	if resume {
		args, c.ConversationID = append(args, r.ConversationID), r.ConversationID
		c.Stdin = "" // "exec resume" takes its prompt from one place only
	}
	c.Argv = append(args, Opening)
	return c
}
