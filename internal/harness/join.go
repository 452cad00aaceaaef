package harness

import (
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/harness/agent"
)

// Joins returns an error when the own terminal of a kind of runner cannot join a conversation that agency
// leads in the mode protocol.
func Joins(kind agency.RunnerKind) error {
	if of(kind).Join != nil {
		return nil
	}
	var names []string
	for _, a := range registry {
		if a.Join != nil {
			names = append(names, a.Name)
		}
	}
	return agency.Errorf(agency.CodeInvalidState, "the terminal of %s cannot join a conversation that agency leads, only that of %s can", kind, strings.Join(names, ", "))
}

// Terminal returns the command line of an agent's own terminal that joins a conversation at a unix
// socket. It fails like Joins, and like FindExec when the program is missing.
func Terminal(kind agency.RunnerKind, exec, socket, conversation string, env []string) ([]string, error) {
	if err := Joins(kind); err != nil {
		return nil, err
	}
	if !agent.ConversationRule().MatchString(conversation) || strings.HasPrefix(conversation, "-") {
		return nil, agency.Errorf(agency.CodeSpecInvalid, "%q is not a conversation id", conversation)
	}
	if !filepath.IsAbs(socket) {
		return nil, agency.Errorf(agency.CodeSpecInvalid, "%q is not an absolute path", socket)
	}
	path, err := FindExec(agency.Runner{Kind: kind, Name: string(kind)}, exec, "/", env)
	if err != nil {
		return nil, err
	}
	return append([]string{path}, of(kind).Join(socket, conversation)...), nil
}
