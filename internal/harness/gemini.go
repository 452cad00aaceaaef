package harness

import (
	"slices"
	"strings"

	"agency"
)

// geminiCLI is the Gemini CLI. It takes hooks only from files of its user, of a project, or of the system, and from those
// of the system only when they belong to root: none of these is a run's. In a terminal its title and the file in which it
// keeps the conversation tell how it does, without one its stream.
var geminiCLI = agent{
	command: gemini, stream: geminiStream, title: geminiTitle, screen: screenOf("gemini"),
	files: geminiFiles, readFile: geminiTranscript,
}

// gemini makes its command line.
func gemini(r Request) Command {
	args, prompt := slices.Clone(r.DefaultArgs), "--prompt-interactive"
	if r.Headless {
		args = append(args, "-o", "stream-json")
		prompt = "--prompt"
		if !names(slices.Concat(r.DefaultArgs, r.Runner.Args), "--approval-mode", "--yolo", "-y") {
			// Without this a headless run has no tools that write files.
			args = append(args, "--approval-mode", "auto_edit")
		}
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	if r.ConversationID != "" {
		args = append(args, sessionOption(r), r.ConversationID)
	}
	args = append(args, r.Runner.Args...)
	return Command{
		Argv:           append(args, prompt, Opening),
		Stdin:          taskOnStdin(r),
		ConversationID: r.ConversationID,
		Files:          geminiKnown(r),
	}
}

// geminiTitle reads the title, a mark of the state before words for people.
func geminiTitle(title string) []agency.Evidence {
	mark, _, _ := strings.Cut(title, " ")
	switch mark {
	case "✋":
		return []agency.Evidence{{
			Sign: agency.SignAsked, Event: "Action Required", Kind: agency.AsksQuestion, Text: "it asks for something in its terminal",
		}}
	case "✦", "⏲":
		return []agency.Evidence{{Sign: agency.SignBusy, Event: "Working"}}
	case "◇":
		return []agency.Evidence{{Sign: agency.SignResting, Event: "Ready"}}
	default:
		return nil
	}
}
