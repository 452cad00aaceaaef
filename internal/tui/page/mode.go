package page

import (
	"strings"

	"agency"
	"agency/internal/api"
)

// OtherMode returns the mode that the user most likely wants next for a run.
func OtherMode(now agency.Mode) agency.Mode {
	if now == agency.ModeProtocol {
		return agency.ModeTerminal
	}
	return agency.ModeProtocol
}

// ReadMode returns the request that continues the conversation of a run in another mode. typed is what the user
// typed: a mode and, if the agent gets a task, the task after it.
func ReadMode(run, typed string, env []string, config string) api.ResumeRunRequest {
	mode, task, _ := strings.Cut(strings.TrimSpace(typed), " ")
	return api.ResumeRunRequest{Run: run, Mode: agency.Mode(mode), Prompt: strings.TrimSpace(task), Idle: true, Set: []string{}, Env: env, Config: config}
}
