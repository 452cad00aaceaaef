// Package harness is what agency knows about each coding agent: its program, its command line, and how it takes a task
// and goes on with an earlier conversation.
package harness

import (
	"regexp"
	"slices"
	"strings"

	"agency"
)

// Opening is the whole prompt that travels in the argument list, in every mode. Task texts stay in files, because
// every user of the machine can read argument lists. It serves a new conversation and a resumed one alike.
const Opening = "Your task is in " + agency.PromptFile + ". Read " + agency.InstructionsFile +
	" first: it says how to report how you are doing. If work on the task has begun already, continue it."

// agent is what is known about one kind of runner. What a kind does not have is nil.
type agent struct {
	// command makes everything of a Command but Argv[0].
	command func(agency.CommandRequest) agency.Command
	// role names the options by which a user gives the agent a system prompt himself.
	role []string
	// hook reads what the agent tells a hook, stream a line of its output without a terminal, title the title that it gives
	// its terminal. They set neither the time nor the source.
	hook   func(payload []byte) []agency.Evidence
	stream func(line []byte) []agency.Evidence
	title  func(title string) []agency.Evidence
	// screen reads the visible lines of its terminal, the top one first.
	screen func(lines []string) []agency.Evidence
	// errorMarks are how lines of its terminal begin that only its program prints, about errors: what its model or its tools say
	// begins otherwise, or is indented.
	errorMarks []string
	// dialog reads the dialog that its terminal shows, without and with colours; nil when it is none that answer knows.
	dialog func(plain, styled []string) *dialog
	// answer says which keys to press next on a terminal to reply to a request, as Answer does.
	answer func(d *dialog, r *agency.Request, reply agency.Reply) (keys string, err error)
	// files are those of its own that tell how it does, and readFile reads what is new in one of them.
	files    func(s *agency.Situation, runner *agency.Process) []string
	readFile func(path string, s *agency.Situation) []agency.Evidence
}

// agents are all kinds of runners.
var agents = map[agency.RunnerKind]agent{
	agency.ClaudeCode: claudeCode,
	agency.Codex:      codexCLI,
	agency.Gemini:     geminiCLI,
	agency.OpenCode:   openCode,
	agency.Shell:      {command: shell},
	agency.Custom:     {command: custom},
}

// conversationRule admits UUIDs and the ids that agents make. They can come from an agent's output, so one that reads
// as an option must not get into an argument list.
var conversationRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// Build makes the command line of an attempt. It fails with E_SPEC_INVALID for a model or a conversation id that cannot
// be passed on, and as FindExec does when the program is missing.
func Build(r agency.CommandRequest) (agency.Command, error) {
	agent, ok := agents[r.Runner.Kind]
	if !ok {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the runner kind %q does not exist", string(r.Runner.Kind))
	}
	if strings.HasPrefix(r.Model, "-") {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the model %q begins with a dash", r.Model).
			WithHint("pass options of the agent as its arguments, not as a model")
	}
	if r.ConversationID != "" && !conversationRule.MatchString(r.ConversationID) {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "%q is not a conversation id", r.ConversationID)
	}
	if r.SystemPrompt != "" && agent.ownPrompt(r) {
		return agency.Command{}, agency.Errorf(agency.CodeSpecInvalid, "the arguments of %s give it a system prompt, and so does the run", r.Runner.Name).
			WithHint("drop one of the two")
	}
	path, err := FindExec(r.Runner, r.Exec, r.Worktree, r.Env)
	if err != nil {
		return agency.Command{}, err
	}
	c := agent.command(r)
	c.Argv = slices.Insert(c.Argv, 0, path)
	return c, nil
}

// ownPrompt says that the user's arguments give the agent a system prompt.
func (a agent) ownPrompt(r agency.CommandRequest) bool {
	return names(r.DefaultArgs, a.role...) || names(r.Runner.Args, a.role...)
}

// table is the name of a runner's table in the configuration, below "runners".
func table(r agency.Runner) string {
	if r.Kind == agency.Custom {
		return "custom." + r.Name
	}
	return string(r.Kind)
}

// names says whether an argument is one of the options, alone or as option=value.
func names(args []string, options ...string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		option, _, _ := strings.Cut(arg, "=")
		return slices.Contains(options, option)
	})
}

// taskOnStdin is the standard input of an agent that reads its task there when it has no terminal.
func taskOnStdin(r agency.CommandRequest) string {
	if r.Headless {
		return r.PromptFile
	}
	return ""
}
