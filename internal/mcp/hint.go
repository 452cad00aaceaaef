package mcp

import (
	"regexp"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// commands maps the commands in hints to the tools that do the same, each with the argument that
// takes the first word after the command, and with the options that have an argument.
var commands = map[string]struct {
	tool, first string
	options     map[string]string
}{
	"ls":             {tool: "run_list", options: map[string]string{"--all": "include_ended: true", "--all-repos": ""}},
	"show":           {tool: "run_status", first: "run"},
	"explain":        {tool: "run_explain", first: "run"},
	"review":         {tool: "run_review", first: "run"},
	"logs":           {tool: "run_output", first: "run"},
	"diff":           {tool: "run_diff", first: "run"},
	"run":            {tool: "run_create", options: map[string]string{"--prompt": "prompt: ...", "...": ""}},
	"send":           {tool: "run_send", first: "run", options: map[string]string{"TEXT": "text: ..."}},
	"answer":         {tool: "run_answer", first: "run", options: map[string]string{"TEXT": "text: ..."}},
	"wait":           {tool: "run_wait", first: "runs"},
	"interrupt":      {tool: "run_interrupt", first: "run"},
	"stop":           {tool: "run_stop", first: "run"},
	"resume":         {tool: "run_resume", first: "run", options: map[string]string{"--prompt": "prompt: ...", "TEXT": "", "--restart": "restart: true", "--fresh": "fresh: true"}},
	"rm":             {tool: "run_remove", first: "run"},
	"flag":           {tool: "run_flag", first: "run"},
	"unflag":         {tool: "run_unflag", first: "run"},
	"report":         {tool: "report_status", first: "status"},
	"presets ls":     {tool: "config_list"},
	"alerts":         {tool: "alerts_list", options: map[string]string{"--all": "include_resolved: true"}},
	"messages poll":  {tool: "messages_poll", options: map[string]string{"--json": ""}},
	"messages send":  {tool: "messages_send"},
	"session ls":     {tool: "session_list"},
	"session show":   {tool: "session_show", first: "session"},
	"session wait":   {tool: "session_wait", first: "session"},
	"session start":  {tool: "session_start", first: "file"},
	"session plan":   {tool: "session_plan", first: "file"},
	"session pause":  {tool: "session_pause", first: "session"},
	"session resume": {tool: "session_resume", first: "session"},
	"session cancel": {tool: "session_cancel", first: "session"},
	"session retry":  {tool: "session_retry", first: "session"},
}

// commandRule finds a command of agency in a hint, with its arguments, up to a character that ends
// it.
var commandRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bagency [a-z][^;,()]*`) })

// optionRule finds an option of a command.
var optionRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^| )--([a-z-]+)`) })

// hintFor returns a hint that a model can follow: with tools of served instead of commands, and
// arguments of schema, the tool that failed, instead of options. When no tool does what a command
// does, it adds that the command is for the user.
func hintFor(hint string, served map[string]bool, schema *jsonschema.Schema) string {
	hint = commandRule().ReplaceAllStringFunc(hint, func(command string) string {
		trimmed := strings.TrimRight(command, " ")
		call, ok := toolFor(trimmed, served)
		if !ok {
			call = trimmed + " (for the user)"
		}
		return call + command[len(trimmed):]
	})
	return optionRule().ReplaceAllStringFunc(hint, func(option string) string {
		before, name, _ := strings.Cut(option, "--")
		if name = strings.ReplaceAll(name, "-", "_"); schema.Properties[name] == nil {
			return option
		}
		return before + name
	})
}

// toolFor returns the call of a tool that does what a command does; ok is false when there is none.
func toolFor(command string, served map[string]bool) (call string, ok bool) {
	words := strings.Fields(command)[1:]
	n := min(2, len(words))
	c, ok := commands[strings.Join(words[:n], " ")]
	if !ok {
		n = 1
		c, ok = commands[words[0]]
	}
	if !ok || !served[c.tool] {
		return "", false
	}
	given, first := []string{}, c.first
	for _, word := range words[n:] {
		option, known := c.options[word]
		switch {
		case known:
			if option != "" {
				given = append(given, option)
			}
		case first != "" && !strings.HasPrefix(word, "-"):
			given, first = append(given, first+": "+word), ""
		default:
			return "", false
		}
	}
	if len(given) == 0 {
		return c.tool, true
	}
	return c.tool + "(" + strings.Join(given, ", ") + ")", true
}
