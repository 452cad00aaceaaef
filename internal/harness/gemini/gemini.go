// Package gemini describes the Gemini CLI.
package gemini

import (
	_ "embed" // the patterns
	"slices"
	"strings"

	"agency"
	"agency/internal/harness/acp"
	"agency/internal/harness/agent"
)

//go:embed screen.toml
var patterns []byte // patterns of its terminal

var patternsOn = agent.ScreenOf(patterns)

// Agent describes the Gemini CLI. It takes hooks only from files of its user, of a project, or of
// the system, and from those of the system only when they belong to root: no run has its own. In a
// terminal its title and its file of the conversation show its state, without one its stream.
var Agent = agent.Agent{
	Kind: "gemini", Name: "Gemini CLI", Program: "gemini", Package: "@google/gemini-cli", Version: "0.61.0",
	Login:    agent.Login{Variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Home: ".gemini", File: "oauth_creds.json"},
	State:    state,
	Command:  command,
	Skips:    []string{"--yolo", "-y", "--approval-mode=yolo"},
	Stream:   stream,
	Dialect:  &acp.Dialect,
	Title:    title,
	Files:    files,
	ReadFile: readTranscript,
	Screen:   readScreen,
	Composer: composer,
	Dialog:   func(plain, _ []string) *agent.Dialog { return dialog(plain) },
	Answer:   answer,
}

// command returns its command line.
func command(r agency.CommandRequest) agency.Command {
	args, prompt := slices.Clone(r.DefaultArgs), "--prompt-interactive"
	if r.Headless {
		args = append(args, "-o", "stream-json")
		prompt = "--prompt"
		if !r.SkipPermissions && !agent.Names(slices.Concat(r.DefaultArgs, r.Runner.Args), "--approval-mode", "--yolo", "-y") {
			// Without this a headless run has no tools that write files.
			args = append(args, "--approval-mode", "auto_edit")
		}
	}
	if r.SkipPermissions && !agent.Names(slices.Concat(r.DefaultArgs, r.Runner.Args), "--yolo", "-y") {
		args = append(args, "--yolo")
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	if r.Mode == agency.ModeProtocol {
		return acp.Command(r, append(append(args, "--acp"), r.Runner.Args...), agent.OpeningWithRole(r))
	}
	if r.ConversationID != "" {
		args = append(args, agent.SessionOption(r), r.ConversationID)
	}
	args = append(args, r.Runner.Args...)
	if !r.Silent {
		args = append(args, prompt, agent.OpeningWithRole(r))
	}
	return agency.Command{
		Argv:           args,
		Stdin:          agent.TaskOnStdin(r),
		ConversationID: r.ConversationID,
		Files:          known(r),
	}
}

// title reads the title: a mark of the state before a text.
func title(title string) []agency.Evidence {
	mark, _, _ := strings.Cut(title, " ")
	switch mark {
	case "✋":
		return []agency.Evidence{{
			Signal: agency.SignalAsked, Event: "Action Required", Kind: agency.AsksQuestion, Text: "it asks for something in its terminal",
		}}
	case "✦", "⏲":
		return []agency.Evidence{{Signal: agency.SignalBusy, Event: "Working"}}
	case "◇":
		return []agency.Evidence{{Signal: agency.SignalResting, Event: "Ready"}}
	default:
		return nil
	}
}
