package cli

import (
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// helpColumns is the width of a line of help; a narrower terminal has less.
const helpColumns = 80

// describedLine matches the part before the description in a line about a flag or a command.
var describedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ +(-.*?\S|[a-z]+)  +`) })

// help prints the help of a command for the width of the output. Examples are not broken, so that
// they can be pasted.
func help(d *command.Deps, cmd *cobra.Command, _ []string) {
	room := helpColumns
	if columns := d.Columns(); columns > 0 {
		room = min(room, columns)
	}
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	usage := fillUsage(withoutAliases(cmd.UsageString()), room)
	_, _ = io.WriteString(cmd.OutOrStdout(), fillHelp(long, room)+"\n\n"+usage+"\nSee also:\n"+seeAlso(cmd, room))
}

// seeAlso names the commands that a reader may look for next.
func seeAlso(cmd *cobra.Command, room int) string {
	words := command.Related(cmd)
	for i := range words {
		words[i] = "agency " + words[i]
	}
	return term.Hang("  ", strings.Join(words, ", "), room) + "\n"
}

// fillHelp fills the paragraphs of a text; lines that are indented stay as they are.
func fillHelp(text string, room int) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, term.Hang("", strings.Join(paragraph, " "), room))
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			end()
			out = append(out, line)
		} else {
			paragraph = append(paragraph, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// withoutAliases removes the section of aliases: they save typing, and a help with one name for
// each command is easier to read.
func withoutAliases(usage string) string {
	before, rest, found := strings.Cut(usage, "\nAliases:\n")
	if !found {
		return usage
	}
	_, after, _ := strings.Cut(rest, "\n")
	return before + after
}

// fillUsage fills the usage line and the descriptions of commands and flags.
func fillUsage(usage string, room int) string {
	lines := strings.Split(usage, "\n")
	for i, line := range lines {
		if term.Width(line) <= room {
			continue
		}
		if i > 0 && lines[i-1] == "Usage:" {
			lines[i] = term.Hang("  ", line, room)
		} else if head := describedLine().FindString(line); head != "" {
			lines[i] = term.Hang(head, line[len(head):], room)
		}
	}
	return strings.Join(lines, "\n")
}
