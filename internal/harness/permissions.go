package harness

import (
	"slices"

	"agency"
)

// skips are the arguments by which an agent asks for leave for nothing.
var skips = map[agency.RunnerKind][]string{
	agency.ClaudeCode: {"--dangerously-skip-permissions", "--permission-mode=bypassPermissions"},
	agency.Codex:      {codexSkip, "--yolo", "--sandbox=danger-full-access", "-s=danger-full-access", "--ask-for-approval=never", "-a=never"},
	agency.Gemini:     {"--yolo", "-y", "--approval-mode=yolo"},
}

// SkipsPermissions reports whether an agent with these arguments asks for leave for nothing. A script never asks.
func SkipsPermissions(kind agency.RunnerKind, args []string) bool {
	if kind == agency.Shell {
		return true
	}
	for i, arg := range args {
		joined := arg
		if i+1 < len(args) {
			joined = arg + "=" + args[i+1]
		}
		if slices.Contains(skips[kind], arg) || slices.Contains(skips[kind], joined) {
			return true
		}
	}
	return false
}
