package harness

import (
	_ "embed" // the plugin
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// openCode is OpenCode. A plugin tells what it does; its title says nothing.
var openCode = agent{
	command: opencode, hook: opencodeHook, stream: opencodeStream, screen: opencodeScreen, dialog: opencodeDialog, answer: opencodeAnswer,
}

// opencode makes its command line. It makes its own conversation ids.
func opencode(r agency.CommandRequest) agency.Command {
	var args []string
	if r.Headless {
		args = append(args, "run")
	}
	args = append(args, r.DefaultArgs...)
	if r.Headless {
		args = append(args, "--format", "json")
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	c := agency.Command{Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}, Stdin: taskOnStdin(r)}
	if content, ok := opencodeConfig(lookup(r.Env, opencodeContent), r); ok {
		c.Env = append(c.Env, opencodeContent+"="+content)
		c.Files = map[string][]byte{opencodePluginFile: opencodePlugin(r)}
		if r.SystemPrompt != "" {
			c.Files[opencodeRoleFile] = []byte(r.SystemPrompt)
		}
	}
	if r.Resume && r.ConversationID != "" {
		args, c.ConversationID = append(args, "--session", r.ConversationID), r.ConversationID
	}
	args = append(args, r.Runner.Args...)
	switch {
	case r.Headless:
		args = append(args, "--", Opening)
	case c.ConversationID == "": // the terminal interface ignores a prompt for a conversation that it opens again
		args = append(args, "--prompt", Opening)
	}
	c.Argv = args
	return c
}

// opencodeContent is the variable that holds configuration for one run. It adds to all files and comes after them.
const opencodeContent = "OPENCODE_CONFIG_CONTENT"

// opencodePluginFile is the name of a run's plugin in the attempt's directory.
const opencodePluginFile = "opencode-plugin.js"

// opencodeRoleFile is the name of a run's system prompt in the attempt's directory.
const opencodeRoleFile = "system-prompt.md"

// opencodeConfig is the user's configuration of that kind, which is empty or a JSON object, with agency's plugin and
// instructions added to the lists that are there. It is false when there is nothing to add, or what the user gave cannot
// be read: what counts is what he gave.
func opencodeConfig(users string, r agency.CommandRequest) (content string, ok bool) {
	if len(r.Hook) == 0 {
		return "", false
	}
	config := map[string]json.RawMessage{}
	if strings.TrimSpace(users) != "" && (json.Unmarshal([]byte(users), &config) != nil || config == nil) {
		return "", false
	}
	plugin := url.URL{Scheme: "file", Path: filepath.Join(r.AttemptDir, opencodePluginFile)}
	instructions := []string{agency.InstructionsFile}
	if r.SystemPrompt != "" {
		instructions = append(instructions, filepath.Join(r.AttemptDir, opencodeRoleFile))
	}
	for key, items := range map[string][]string{"plugin": {plugin.String()}, "instructions": instructions} {
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
var opencodePluginSource string

// opencodePlugin is the plugin with the command that it calls. JSON is JavaScript.
func opencodePlugin(r agency.CommandRequest) []byte {
	command, err := json.Marshal(append(slices.Clip(r.Hook), string(r.Runner.Kind)))
	if err != nil {
		return nil
	}
	headless, _ := json.Marshal(r.Headless)
	return []byte(strings.NewReplacer("HOOK_COMMAND", string(command), "HEADLESS", string(headless)).Replace(opencodePluginSource))
}
