package agent

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
)

// SessionOption names the conversation of an agent that lets its caller choose the id.
func SessionOption(r agency.CommandRequest) string {
	if r.Resume {
		return "--resume"
	}
	return "--session-id"
}

// Opening is the whole prompt that travels in the argument list, in every mode. Task texts stay in files, because
// every user of the machine can read argument lists. It serves a new conversation and a resumed one alike.
const Opening = "Your task is in " + agency.PromptFile + ". Read " + agency.InstructionsFile +
	" first: it says how to report how you are doing. If work on the task has begun already, continue it."

// ConversationRule admits UUIDs and the ids that agents make. They can come from an agent's output, so one that reads
// as an option must not get into an argument list.
var ConversationRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`) })

// Names says whether an argument is one of the options, alone or as option=value.
func Names(args []string, options ...string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		option, _, _ := strings.Cut(arg, "=")
		return slices.Contains(options, option)
	})
}

// TaskOnStdin is the standard input of an agent that reads its task there when it has no terminal.
func TaskOnStdin(r agency.CommandRequest) string {
	if r.Headless {
		return r.PromptFile
	}
	return ""
}

// Protocol reaches an agent by its own means for a run, beside Opening, so that it stands when the conversation was
// summed up.
const Protocol = "You work in a run of agency. Before you begin, read " + agency.InstructionsFile + " in the working directory. " +
	"Whenever your status changes (working, needs_input, blocked, ready_for_review), report it with the command `agency report`, " +
	"or write " + agency.ContractFile + "."

// Role is all that an agent is told beside its task: what it is for, and how to report.
func Role(r agency.CommandRequest) string {
	if text := strings.TrimSpace(r.SystemPrompt); text != "" {
		return text + "\n\n" + Protocol
	}
	return Protocol
}

// HookCommand is the command line that an agent's hooks call, for agents that give it to a shell.
func HookCommand(r agency.CommandRequest) string {
	words := make([]string, 0, len(r.Hook)+1)
	for _, word := range append(slices.Clip(r.Hook), string(r.Runner.Kind)) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// TakeOption takes an option that has a value out of arguments, and returns what is left and the last value, which is the
// one that counts.
func TakeOption(args []string, option string) (rest []string, value string) {
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
