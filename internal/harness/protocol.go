package harness

import (
	"slices"
	"strings"

	"agency"
)

// Protocol reaches an agent by its own means for a run, beside Opening, so that it stands when the conversation was
// summed up.
const Protocol = "You work in a run of agency. Before you begin, read " + agency.InstructionsFile + " in the working directory. " +
	"Whenever your status changes (working, needs_input, blocked, ready_for_review), report it with the command `agency report`, " +
	"or write " + agency.ContractFile + "."

// role is all that an agent is told beside its task: what it is for, and how to report.
func role(r agency.CommandRequest) string {
	if text := strings.TrimSpace(r.SystemPrompt); text != "" {
		return text + "\n\n" + Protocol
	}
	return Protocol
}

// hookCommand is the command line that an agent's hooks call, for agents that give it to a shell.
func hookCommand(r agency.CommandRequest) string {
	words := make([]string, 0, len(r.Hook)+1)
	for _, word := range append(slices.Clip(r.Hook), string(r.Runner.Kind)) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// takeOption takes an option that has a value out of arguments, and returns what is left and the last value, which is the
// one that counts.
func takeOption(args []string, option string) (rest []string, value string) {
	for i := 0; i < len(args); i++ {
		name, joined, has := strings.Cut(args[i], "=")
		switch {
		case name != option:
			rest = append(rest, args[i])
		case has:
			value = joined
		case i+1 < len(args):
			i++
			value = args[i]
		}
	}
	return rest, value
}
