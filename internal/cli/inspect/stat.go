package inspect

import (
	"fmt"
	"io"
	"strings"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// changed counts the lines of a file that a patch adds and removes. A binary file has no counts.
type changed struct {
	added, removed int
	binary         bool
}

// countLines counts the lines of each file of a patch, in its order.
func countLines(patch string) []changed {
	files, inHunk := []changed{}, false
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files, inHunk = append(files, changed{}), false
		case len(files) == 0:
		case strings.HasPrefix(line, "@@"):
			inHunk = true
		case inHunk && line[0] == '+':
			files[len(files)-1].added++
		case inHunk && line[0] == '-':
			files[len(files)-1].removed++
		case !inHunk && (strings.HasPrefix(line, "Binary files ") || strings.HasPrefix(line, "GIT binary patch")):
			files[len(files)-1].binary = true
		}
	}
	return files
}

// writeStat writes a line for each file with the counts of its changed lines, and their sum, as git
// diff --stat does. Files after the end of a truncated patch have no count.
func writeStat(w io.Writer, files []agency.FileChange, patch string, width int) {
	if len(files) == 0 {
		return
	}
	counts, sum, most, longest := countLines(patch), changed{}, 1, 0
	for i, f := range files {
		longest = max(longest, term.Width(term.SafeLine(f.Path)))
		if i < len(counts) {
			sum.added, sum.removed = sum.added+counts[i].added, sum.removed+counts[i].removed
			most = max(most, counts[i].added+counts[i].removed)
		}
	}
	if width == 0 {
		width = 80 // as git does in a pipe
	}
	digits := len(fmt.Sprint(most))
	bar := max(10, width-longest-digits-5)
	for i, f := range files {
		path := term.SafeLine(f.Path)
		text := "?"
		switch {
		case i >= len(counts):
		case counts[i].binary:
			text = "Bin"
		default:
			c := counts[i]
			text = fmt.Sprintf("%*d %s%s", digits, c.added+c.removed, strings.Repeat("+", scaled(c.added, most, bar)), strings.Repeat("-", scaled(c.removed, most, bar)))
		}
		_, _ = fmt.Fprintf(w, " %s%s | %s\n", path, strings.Repeat(" ", longest-term.Width(path)), strings.TrimRight(text, " "))
	}
	total := command.Count(len(files), "file") + " changed"
	if sum.added > 0 || sum.removed == 0 {
		total += fmt.Sprintf(", %d insertion%s(+)", sum.added, plural(sum.added))
	}
	if sum.removed > 0 || sum.added == 0 {
		total += fmt.Sprintf(", %d deletion%s(-)", sum.removed, plural(sum.removed))
	}
	_, _ = fmt.Fprintf(w, " %s\n", total)
}

// scaled returns the length of the part n of a bar whose full length stands for most. A part that
// is not zero has at least one character.
func scaled(n, most, bar int) int {
	if n == 0 || most <= bar {
		return n
	}
	return max(1, n*bar/most)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
