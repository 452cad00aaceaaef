package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// related names, for each command directly below agency, the commands that readers of its help need
// next.
var related = map[string]string{
	"abandon":    "merge, rm, resume",
	"alerts":     "next, answer, messages, watchdog, notify",
	"answer":     "send, next, alerts, show",
	"api":        "schema, mcp",
	"attach":     "next, answer, send, logs",
	"completion": "docs",
	"config":     "doctor, presets, init",
	"daemon":     "service, doctor, db",
	"db":         "daemon, doctor, snapshot",
	"diff":       "show, logs, snapshot",
	"docs":       "completion",
	"doctor":     "config, daemon, gc",
	"events":     "logs, explain, alerts",
	"explain":    "show, watchdog, events",
	"flag":       "unflag, alerts, report",
	"gc":         "rm, snapshot, doctor",
	"help":       "docs",
	"init":       "trust, config, run",
	"logs":       "show, events, attach",
	"interrupt":  "send, answer, stop",
	"ls":         "tui, show, next, wait",
	"mode":       "resume, attach, send, interrupt",
	"model":      "permission-mode, mode, show",
	"mcp":        "report, messages, api",
	"merge":      "queue, review, verify, diff, push, pr, abandon",
	"pr":         "push, merge, review, verify, send",
	"push":       "pr, merge, review, diff",
	"messages":   "alerts, send, tags",
	"next":       "attach, answer, alerts",
	"notify":     "alerts, watchdog, config",
	"path":       "show, diff, review",
	"ports":      "show, logs, attach",
	"presets":    "run, config",
	"queue":      "merge, review, verify, session",
	"report":     "messages, schema, mcp",
	"resume":     "stop, show, send",
	"review":     "merge, verify, diff, show",
	"rm":         "stop, gc, snapshot",
	"run":        "attach, send, wait, presets, session",
	"schema":     "report, session, api",
	"send":       "answer, attach, messages",
	"service":    "daemon, doctor",
	"session":    "run, ls, wait, presets",
	"show":       "explain, logs, diff",
	"snapshot":   "rm, gc, diff",
	"status":     "ls, show",
	"stop":       "resume, rm, attach",
	"tags":       "ls, messages, watchdog",
	"trust":      "init, run",
	"tui":        "ls, next, answer, attach",
	"uninstall":  "service, gc, snapshot",
	"unsend":     "send, interrupt, show",
	"unflag":     "flag, alerts",
	"verify":     "review, merge, diff, trust",
	"version":    "doctor",
	"wait":       "ls, next, session",
	"watchdog":   "alerts, explain, tags",

	"permission-mode": "model, mode, answer",
}

// Related returns the commands, without "agency", that readers of a command's help need next; for a
// subcommand also the command that it belongs to.
func Related(cmd *cobra.Command) []string {
	if !cmd.HasParent() {
		return []string{"run", "ls", "tui", "attach", "session", "doctor"}
	}
	path := strings.Fields(cmd.CommandPath())[1:]
	words := []string{}
	if len(path) > 1 {
		words = append(words, strings.Join(path[:len(path)-1], " "))
	}
	for word := range strings.SplitSeq(related[path[0]], ", ") {
		if found, _, err := cmd.Root().Find([]string{word}); err == nil && found.HasParent() && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
