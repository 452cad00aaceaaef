package agent

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
)

// SessionOption sets the id of the conversation, for agents that let the caller choose it.
func SessionOption(r agency.CommandRequest) string {
	if r.Resume {
		return "--resume"
	}
	return "--session-id"
}

// opening is the whole prompt in the argument list, in every mode. Task texts stay in files,
// because every user of the machine can read argument lists. It is the same for a new and a resumed
// conversation.
const opening = "Your task is in " + agency.PromptFile + ". Read " + agency.InstructionsFile +
	" first: it says how to report how you are doing. If work on the task has begun already, continue it."

// Opening returns the prompt; empty for an agent that is to wait for one.
func Opening(r agency.CommandRequest) string {
	if r.Silent {
		return ""
	}
	return opening
}

// OpeningWithRole is the prompt with the role of a run before it, for an agent that has no other place for
// the role of one run: the instructions that it reads belong to its user or to the project, and a
// system prompt for one run would replace its own.
func OpeningWithRole(r agency.CommandRequest) string {
	if r.SystemPrompt == "" || r.Silent {
		return Opening(r)
	}
	return "Your role, for all of this conversation:\n\n" + strings.TrimSpace(r.SystemPrompt) + "\n\n" + opening
}

// ConversationRule matches UUIDs and the ids that agents make. An id can come from an agent's
// output, so one that looks like an option must not get into an argument list.
var ConversationRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`) })

// Names reports whether an argument is one of the options, alone or as option=value.
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

// Protocol tells an agent how to report. It goes through the agent's own settings for a run, in
// addition to Opening, so that it survives a summary of the conversation.
const Protocol = "You work in a run of agency. Before you begin, read " + agency.InstructionsFile + " in the working directory. " +
	"Whenever your status changes (working, needs_input, blocked, ready_for_review), report it with the command `agency report`, " +
	"or write " + agency.ContractFile + "."

// Role returns what an agent reads in addition to its task: its role, and how to report.
func Role(r agency.CommandRequest) string {
	if text := strings.TrimSpace(r.SystemPrompt); text != "" {
		return text + "\n\n" + Protocol
	}
	return Protocol
}

// HookCommand returns the command line of an agent's hooks, for agents that give it to a shell.
func HookCommand(r agency.CommandRequest) string {
	words := make([]string, 0, len(r.Hook)+1)
	for _, word := range append(slices.Clip(r.Hook), string(r.Runner.Kind)) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

// TakeOption removes an option with a value from arguments, and returns the rest and the last
// value, which is the one that counts.
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
