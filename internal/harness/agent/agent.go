// Package agent is what the knowledge of each coding agent is made of: its description, and the tools to read its dialogs, its
// screen, its files and its words.
package agent

import (
	"slices"

	"agency"
)

// Agent is what is known about one kind of runner. What a kind does not have is empty.
type Agent struct {
	Kind    agency.RunnerKind
	Name    string // its name for people
	Program string // the usual name of its program; empty when there is none that is usual
	Package string // its package of npm
	// Version is the one that its events were recorded with, and that make conformance installs.
	Version string

	// Command makes everything of a Command but Argv[0].
	Command func(agency.CommandRequest) agency.Command
	// RoleOptions are the options by which a user gives the agent a system prompt himself.
	RoleOptions []string
	// Skips are the arguments with which the agent asks for no permission.
	Skips []string

	// Hook reads what the agent tells a hook, Stream a line of its output without a terminal, Title the title that it gives
	// its terminal. They set neither the time nor the source.
	Hook   func(payload []byte) []agency.Evidence
	Stream func(line []byte) []agency.Evidence
	Title  func(title string) []agency.Evidence
	// Files are those of its own that tell how it does, and ReadFile reads what is new in one of them.
	Files    func(s *agency.AgentState, runner *agency.Process) []string
	ReadFile func(path string, s *agency.AgentState) []agency.Evidence

	// Screen reads the visible lines of its terminal, the top one first.
	Screen func(lines []string) []agency.Evidence
	// Composer reads the input box on its terminal: the text in it, and the line behind it.
	Composer func(lines []string) (text string, end int, shown bool)
	// ErrorMarks are how lines of its terminal begin that only its program prints, about errors: what its model or its tools say
	// begins otherwise, or is indented.
	ErrorMarks []string
	// Dialog reads the dialog that its terminal shows, without and with colours; nil when it is none that Answer knows.
	Dialog func(plain, styled []string) *Dialog
	// Answer returns the keys to press next on a terminal to reply to a request; none when the terminal must show something else first.
	Answer func(d *Dialog, r *agency.Request, reply agency.Reply) (keys string, err error)
}

// OwnPrompt reports whether the user's arguments give the agent a system prompt.
func (a Agent) OwnPrompt(r agency.CommandRequest) bool {
	return Names(r.DefaultArgs, a.RoleOptions...) || Names(r.Runner.Args, a.RoleOptions...)
}

// SkipsPermissions reports whether the agent asks for no permission with these arguments.
func (a Agent) SkipsPermissions(args []string) bool {
	for i, arg := range args {
		joined := arg
		if i+1 < len(args) {
			joined = arg + "=" + args[i+1]
		}
		if slices.Contains(a.Skips, arg) || slices.Contains(a.Skips, joined) {
			return true
		}
	}
	return false
}
