// Package opencode describes OpenCode.
package opencode

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/harness/agent"
)

//go:embed screen.toml
var patterns []byte // patterns of its terminal

var patternsOn = agent.ScreenOf(patterns)

// Agent describes OpenCode. A plugin reports its state; its title shows nothing.
var Agent = agent.Agent{
	Kind: "opencode", Name: "OpenCode", Program: "opencode", Package: "opencode-ai", Version: "1.18.33",
	Login:    agent.Login{Home: ".local/share/opencode", File: "auth.json"},
	State:    state,
	Command:  command,
	Hook:     hook,
	Stream:   stream,
	Dialect:  &acp.Dialect,
	Screen:   readScreen,
	Composer: composer,
	Dialog:   dialog,
	Answer:   answer,
}

// command returns its command line. OpenCode makes its own conversation ids.
func command(r agency.CommandRequest) agency.Command {
	var args []string
	if r.Headless {
		args = append(args, "run")
	}
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--format", "json")
	}
	if r.Mode == agency.ModeProtocol {
		args = append(args, "acp")
	} else if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	c := agency.Command{Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, Stdin: agent.TaskOnStdin(r)}
	if content, ok := configFor(agency.Environ(r.Env).Lookup(contentEnv), r); ok {
		c.Env = append(c.Env, contentEnv+"="+content)
		c.Files = map[string][]byte{}
		if r.Mode != agency.ModeProtocol { // which says more
			c.Files[pluginFile] = pluginFor(r)
		}
		if r.SystemPrompt != "" {
			c.Files[roleFile] = []byte(r.SystemPrompt)
		}
	}
	if r.Mode == agency.ModeProtocol {
		if agency.Environ(r.Env).Lookup(passwordEnv) == "" {
			c.Env = append(c.Env, passwordEnv+"="+rand.Text())
		}
		spoken := acp.Command(r, append(args, r.Runner.Args...), agent.Opening(r))
		c.Argv, c.Opening, c.ConversationID = spoken.Argv, spoken.Opening, spoken.ConversationID
		return c
	}
	if r.Resume && r.ConversationID != "" {
		args, c.ConversationID = append(args, "--session", r.ConversationID), r.ConversationID
	}
	args = append(args, r.Runner.Args...)
	switch {
	case r.Headless:
		args = append(args, "--", agent.Opening(r))
	case c.ConversationID == "": // the terminal interface ignores a prompt for a conversation that it opens again
		args = append(args, "--prompt", agent.Opening(r))
	}
	c.Argv = args
	return c
}

// passwordEnv is the variable with the password of OpenCode's server. Its acp listens on a port of the
// machine, where without one every user could give the agent orders.
const passwordEnv = "OPENCODE_SERVER_PASSWORD"

// contentEnv is the variable that holds configuration for one run. It adds to all files and comes
// after them.
const contentEnv = "OPENCODE_CONFIG_CONTENT"

// pluginFile is the name of a run's plugin in the attempt's directory.
const pluginFile = "opencode-plugin.js"

// roleFile is the name of a run's system prompt in the attempt's directory.
const roleFile = "system-prompt.md"

// configFor returns the user's configuration of that kind, which is empty or a JSON object, with
// agency's plugin and instructions added to its lists. It is false when there is nothing to add, or
// when the user's configuration cannot be read: then it stays as the user gave it.
func configFor(users string, r agency.CommandRequest) (content string, ok bool) {
	if len(r.Hook) == 0 {
		return "", false
	}
	config := map[string]json.RawMessage{}
	if strings.TrimSpace(users) != "" && (json.Unmarshal([]byte(users), &config) != nil || config == nil) {
		return "", false
	}
	plugin := url.URL{Scheme: "file", Path: filepath.Join(r.AttemptDir, pluginFile)}
	instructions := []string{agency.InstructionsFile}
	if r.SystemPrompt != "" {
		instructions = append(instructions, filepath.Join(r.AttemptDir, roleFile))
	}
	lists := map[string][]string{"plugin": {plugin.String()}, "instructions": instructions}
	if r.Mode == agency.ModeProtocol {
		delete(lists, "plugin")
		if r.Model != "" {
			model, err := json.Marshal(r.Model)
			if err != nil {
				return "", false
			}
			config["model"] = model // its acp has no option for it
		}
	}
	for key, items := range lists {
		var list []json.RawMessage
		if has := config[key]; has != nil && json.Unmarshal(has, &list) != nil {
			return "", false
		}
		for _, item := range items {
			added, err := json.Marshal(item)
			if err != nil {
				return "", false
			}
			list = append(list, added)
		}
		var err error
		if config[key], err = json.Marshal(list); err != nil {
			return "", false
		}
	}
	if r.SkipPermissions {
		config["permission"] = json.RawMessage(`"allow"`)
	}
	merged, err := json.Marshal(config)
	return string(merged), err == nil
}

//go:embed plugin/opencode.js
var pluginSource string

// pluginFor returns the plugin with the command that it calls. JSON is JavaScript.
func pluginFor(r agency.CommandRequest) []byte {
	command, err := json.Marshal(append(slices.Clip(r.Hook), string(r.Runner.Kind)))
	if err != nil {
		return nil
	}
	headless, _ := json.Marshal(r.Headless)
	return []byte(strings.NewReplacer("HOOK_COMMAND", string(command), "HEADLESS", string(headless)).Replace(pluginSource))
}
