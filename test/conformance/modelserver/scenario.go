package modelserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scenario is what the model says, turn by turn. After its last turn the model answers that it has
// nothing more to do.
//
// The turn of a request is counted in the conversation that the request contains, so a retry gets
// the same turn again.
type Scenario []Turn

// Turn is one answer of the model: a text, a tool call, or both.
type Turn struct {
	Text  string
	Shell string // a command for the client's shell tool
	Leave bool   // the command asks for a permission, in clients whose model decides that
	Ask   string // a question for the client's tool that asks users; it offers Red and Blue
	Read  string // the path of a file for the client's tool that reads files, or else for its shell
	Write *File  // a file for the client's tool that writes whole files
	Call  *Call  // a call of a tool by its name
	// Subagent is a subagent that the client starts, in the background where it can.
	Subagent *Subagent
	// Search is a search for tools, in clients that show the model the tools of servers only when
	// it searches for them.
	Search string
	// Gate, if set, delays the answer after its first event until it is closed.
	Gate <-chan struct{}
	// Cut ends the stream of the answer after its text, without the final event; only the chat API
	// does it. The text counts as a turn.
	Cut bool
	// Output is how many tokens the whole answer has, 1 when it is 0; its first event says 1. Only
	// the Messages API does it.
	Output int
	// Status, if set, is an HTTP error status that is sent instead of an answer; Failure describes
	// it further.
	Status  int
	Failure Failure
}

// File is the whole content of a file. Its path is relative to the client's working directory.
type File struct {
	Path, Content string
	// Has returns the present content of the file, for clients that create files with one tool and
	// change them with another; nil is a new file.
	Has func() string
}

// Call is a call of a tool. Its name is the end of the client's name for the tool, which begins
// with the name of its server.
type Call struct {
	Tool  string
	Input map[string]any
}

// Subagent is a subagent. Its conversation is recognised by its prompt, and has a scenario of its
// own.
type Subagent struct {
	Prompt   string // in no other text of the user
	Scenario Scenario
}

// of returns the subagent whose conversation has these texts of the user, or nil for the agent's
// own.
func (s Scenario) of(heard []string) *Subagent {
	for i := range s {
		h := s[i].Subagent
		if h == nil {
			continue
		}
		if slices.ContainsFunc(heard, func(text string) bool { return strings.Contains(text, h.Prompt) }) {
			return h
		}
	}
	return nil
}

// turn returns turn n, counted from 0.
func (s Scenario) turn(n int) Turn {
	if n < len(s) {
		return s[n]
	}
	return Turn{Text: "There is nothing more to do."}
}

// tool is a tool that a client offers.
type tool struct {
	name   string
	custom bool   // takes plain text instead of JSON
	space  string // the namespace of the tool, in APIs that have them
}

// call is a turn's tool call in the client's form: JSON arguments, or plain text for a custom tool.
type call struct {
	tool
	input any
}

// call chooses the tool for a turn among those that the client offers. It returns nil for a turn
// without one.
func (t Turn) call(offered map[string]tool) (*call, error) {
	inputs := t.inputs(offered)
	if inputs == nil {
		return nil, nil
	}
	for name, input := range inputs {
		if offer, ok := offered[name]; ok {
			return &call{offer, input}, nil
		}
	}
	return nil, fmt.Errorf("the client offers none of %s, only %s", sorted(inputs), sorted(offered))
}

// inputs is what the turn calls by the names that its tool has in the clients, or nil without a call.
func (t Turn) inputs(offered map[string]tool) map[string]any {
	var inputs map[string]any
	switch {
	case t.Shell != "":
		inputs = map[string]any{
			"Bash":         object{"command": t.Shell, "description": "Run a scripted command"},
			"exec_command": t.command(),

			"bash":              object{"command": t.Shell, "description": "Run a scripted command"},
			"run_shell_command": object{"command": t.Shell, "description": "Run a scripted command"},
		}
	case t.Ask != "":
		inputs = t.question()
	case t.Read != "":
		inputs = map[string]any{
			"Read":         object{"file_path": t.Read},
			"exec_command": object{"cmd": "cat " + t.Read},

			"read":      object{"filePath": t.Read},
			"read_file": object{"file_path": t.Read},
			"view":      object{"path": t.Read},
		}
	case t.Write != nil:
		inputs = map[string]any{
			"Write":       object{"file_path": t.Write.Path, "content": t.Write.Content},
			"apply_patch": t.Write.patch(),

			"write":      object{"filePath": t.Write.Path, "content": t.Write.Content},
			"write_file": object{"file_path": t.Write.Path, "content": t.Write.Content},
			"create":     object{"path": t.Write.Path, "file_text": t.Write.Content},
		}
		if _, makes := offered["create"]; makes && t.Write.Has != nil {
			inputs = map[string]any{"edit": object{"path": t.Write.Path, "old_str": t.Write.Has(), "new_str": t.Write.Content}}
		}
	case t.Subagent != nil:
		task := object{"description": "Help", "prompt": t.Subagent.Prompt}
		inputs = map[string]any{
			"Agent": with(task, object{"subagent_type": "general-purpose", "run_in_background": true}),
			"task":  with(task, object{"subagent_type": "general"}),
		}
	case t.Search != "":
		inputs = map[string]any{toolSearch: object{"query": t.Search, "limit": 20}}
	case t.Call != nil:
		inputs = map[string]any{}
		for name := range offered {
			if strings.HasSuffix(name, t.Call.Tool) {
				inputs[name] = t.Call.Input
			}
		}
		if len(inputs) == 0 {
			inputs[t.Call.Tool] = nil
		}
	}
	return inputs
}

// patch returns the input of an apply_patch tool that adds the file.
func (f *File) patch() string {
	lines := strings.ReplaceAll("\n"+strings.TrimSuffix(f.Content, "\n"), "\n", "\n+")
	return "*** Begin Patch\n*** Add File: " + f.Path + lines + "\n*** End Patch"
}

func with(o, more object) object {
	maps.Copy(more, o)
	return more
}

func sorted[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
