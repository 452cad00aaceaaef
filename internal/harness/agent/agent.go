// Package agent holds what the description of each coding agent is made of: its type, and the tools
// to read its dialogs, screen, files and errors.
package agent

import (
	"slices"

	"agency"
	"agency/internal/protocol"
)

// Agent describes one kind of runner. Fields that a kind does not have are empty.
type Agent struct {
	Kind    agency.RunnerKind
	Name    string // its name in texts
	Program string // the usual name of its program; empty when it has none
	Package string // its npm package
	// Version is the version whose events were recorded, and that make conformance installs.
	Version string

	// Login is where a login shows; empty when agency knows no place.
	Login Login

	// State returns where the program keeps its own state, for work in a worktree; nil when agency
	// does not know.
	State func(env agency.Environ, worktree string) agency.SandboxState

	// Command returns a Command without Argv[0].
	Command func(agency.CommandRequest) agency.Command
	// RoleOptions are the options with which a user sets the agent's system prompt.
	RoleOptions []string
	// Skips are the arguments with which the agent asks for no permission.
	Skips []string

	// Hook reads the input of a hook, Stream a line of the agent's output without a terminal, Title
	// the title of its terminal. They set neither the time nor the source.
	Hook   func(payload []byte) []agency.Evidence
	Stream func(line []byte) []agency.Evidence
	Title  func(title string) []agency.Evidence
	// Files are the agent's own files that show its state, and ReadFile reads what is new in one of
	// them.
	Files    func(s *agency.AgentState, runner *agency.Process) []string
	ReadFile func(path string, s *agency.AgentState) []agency.Evidence

	// Dialect is its own protocol, for the mode protocol; nil when agency does not speak it.
	Dialect *protocol.Dialect
	// Join returns the arguments with which its own terminal joins a conversation in that mode, as a
	// guest at a unix socket; nil where it cannot.
	Join func(socket, conversation string) []string

	// Screen reads the visible lines of its terminal, the top one first.
	Screen func(lines []string) []agency.Evidence
	// Composer reads the input box on its terminal: the text in it, and the line after it.
	Composer func(lines []string) (text string, end int, shown bool)
	// ErrorMarks are the beginnings of lines on its terminal that only its program prints, about
	// errors: output of its model or tools begins otherwise, or is indented.
	ErrorMarks []string
	// Dialog reads the dialog that its terminal shows, without and with colours; nil when Answer
	// knows none there.
	Dialog func(plain, styled []string) *Dialog
	// Answer returns the keys to press next on a terminal to reply to a request; no keys when the
	// terminal must show something else first.
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

// Login is where a login of the user shows, without reading any content.
type Login struct {
	Variables []string // of the environment, that hold a key or token
	// File is a file that a login writes, in the folder that the variable Folder names, or else in
	// Home below the user's home.
	Folder, Home, File string
}
