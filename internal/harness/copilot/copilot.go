// Package copilot describes the GitHub Copilot CLI.
package copilot

import (
	_ "embed" // the patterns
	"encoding/json"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/harness/agent"
)

//go:embed screen.toml
var patterns []byte // patterns of its terminal

// Agent describes the GitHub Copilot CLI. It writes all events into a file of the conversation,
// with and without a terminal; only retried calls of the model are missing, which a hook reports.
// The title of its terminal shows nothing.
var Agent = agent.Agent{
	Kind: "copilot", Name: "GitHub Copilot CLI", Program: "copilot", Package: "@github/copilot", Version: "1.0.102",
	Login:      agent.Login{Variables: []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"}},
	Command:    command,
	Skips:      skips,
	Hook:       hook,
	Dialect:    &acp.Dialect,
	Files:      files,
	State:      state,
	ReadFile:   readFile,
	Screen:     agent.ScreenOf(patterns),
	Composer:   agent.RuledComposer,
	ErrorMarks: []string{" ✗ "},
	Dialog:     func(plain, _ []string) *agent.Dialog { return dialog(plain) },
	Answer:     answer,
}

// skips are the options with which Copilot asks for no permission.
var skips = []string{"--allow-all", "--yolo"}

// The files of an attempt. Its directory is a plugin of Copilot and a folder of instructions, for
// this run alone.
const (
	pluginFile = "plugin.json"
	hooksFile  = "copilot-hooks.json"
	roleFile   = "agency.instructions.md"
)

// instructionsEnv lists folders of instructions, which add to those of the user and the repository.
const instructionsEnv = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"

// command returns Copilot's command line. An unknown id begins a conversation, so a run that was
// cut off before its first output resumes like any other.
func command(r agency.CommandRequest) agency.Command {
	args, prompt := slices.Clone(r.DefaultArgs), "--interactive"
	// An agent that needed permission to report its status could not report that it waits for the
	// user. A rule for the command `agency report` alone is not possible.
	args = append(args, "--allow-tool=write("+agency.ContractFile+")")
	all := slices.Concat(r.DefaultArgs, r.Runner.Args)
	if r.Headless {
		args = append(args, "--output-format", "json", "--stream", "off", "--no-ask-user")
		prompt = "--prompt"
		if !r.SkipPermissions && !agent.Names(all, append([]string{"--allow-tool", "--allow-all-tools"}, skips...)...) {
			args = append(args, "--allow-tool=write") // else a headless run may not write files
		}
	}
	if r.SkipPermissions && !agent.Names(all, skips...) {
		args = append(args, "--allow-all")
	}
	c := agency.Command{Env: []string{"COPILOT_AUTO_UPDATE=false"}, ConversationID: r.ConversationID, Files: known(r)}
	if r.AttemptDir != "" {
		folders := r.AttemptDir
		if users := agency.Environ(r.Env).Lookup(instructionsEnv); users != "" {
			folders = users + "," + folders
		}
		c.Env = append(c.Env, instructionsEnv+"="+folders)
		c.Files[roleFile] = []byte("---\napplyTo: \"**\"\n---\n" + agent.Role(r) + "\n")
	}
	if len(r.Hook) > 0 {
		c.Files[pluginFile], c.Files[hooksFile] = plugin(r)
		args = append(args, "--plugin-dir", r.AttemptDir)
	}
	if r.Model != "" {
		args = append(args, "--model", r.Model)
	}
	if r.Mode == agency.ModeProtocol {
		spoken := acp.Command(r, append(append(args, "--acp"), r.Runner.Args...), agent.Opening(r))
		c.Argv, c.Opening, c.ConversationID = spoken.Argv, spoken.Opening, spoken.ConversationID
		return c
	}
	if r.ConversationID != "" {
		args = append(args, "--session-id", r.ConversationID)
	}
	args = append(args, r.Runner.Args...)
	if !r.Silent {
		args = append(args, prompt, agent.Opening(r))
	}
	c.Argv = args
	return c
}

// plugin is the plugin of a run, and its hooks: the one of an error of the model. The rest is in
// the conversation's file.
func plugin(r agency.CommandRequest) (manifest, hooks []byte) {
	manifest, _ = json.Marshal(map[string]string{
		"name": "agency", "version": "1.0.0", "description": "Tells agency how the agent does", "hooks": hooksFile,
	})
	hooks, _ = json.Marshal(map[string]any{"version": 1, "hooks": map[string]any{
		errorHook: []any{map[string]any{"type": "command", "bash": agent.HookCommand(r), "timeoutSec": 5}},
	}})
	return manifest, hooks
}

// known returns the evidence with which an attempt begins: its conversation, and the file in which
// Copilot will keep it. Only the caller's environment gives its folder. The content of an old
// conversation was read by an earlier attempt.
func known(r agency.CommandRequest) map[string][]byte {
	home := folder(r.Env)
	if r.ConversationID == "" || !filepath.IsAbs(home) {
		return map[string][]byte{}
	}
	path := filepath.Join(home, "session-state", r.ConversationID, events)
	// The file has no evidence yet, and must not override the screen.
	line, err := json.Marshal(agency.Evidence{
		Source: agency.FromTitle, Signal: agency.SignalSession, Event: "start",
		Conversation: r.ConversationID, Transcript: path, Offset: agent.SizeOf(path),
	})
	if err != nil {
		return map[string][]byte{}
	}
	return map[string][]byte{agency.EventsFile: append(line, '\n')}
}

// folder returns the folder of Copilot.
func folder(env agency.Environ) string {
	if dir := env.Lookup("COPILOT_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(env.Lookup("HOME"), ".copilot")
}
