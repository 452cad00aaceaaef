// Package landing holds the pure rules of landing, which is bringing the work of a run into a
// branch: which branch, with which message, and what the resulting commit must be.
package landing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Choose returns the settings of a landing: those that were asked for, else those of the
// repository, else those of the user's configuration, which leaves only the target open.
func Choose(asked, project, user agency.LandingSettings) agency.LandingSettings {
	return agency.LandingSettings{
		Target:      cmp.Or(asked.Target, project.Target, user.Target),
		Method:      cmp.Or(asked.Method, project.Method, user.Method),
		Uncommitted: cmp.Or(asked.Uncommitted, project.Uncommitted, user.Uncommitted),
		Checkout:    cmp.Or(asked.Checkout, project.Checkout, user.Checkout),
		After:       cmp.Or(asked.After, project.After, user.After),
		Remote:      cmp.Or(asked.Remote, project.Remote, user.Remote),
		Forge:       cmp.Or(asked.Forge, project.Forge, user.Forge),
	}
}

// RunTrailer names the run in the messages of the commits that a landing makes.
const RunTrailer = "Agency-Run"

// Describe returns the message of a commit that holds all the work of a run. summary comes from the
// agent and task from the user; messages are those of the run's commits, the oldest first. The
// message of a single commit is kept.
func Describe(ref, summary, task string, messages []string) string {
	if len(messages) == 1 {
		return clean(messages[0])
	}
	subject := cmp.Or(headline(summary), headline(task), "Work of "+ref)
	if len(messages) == 0 {
		return subject + "\n"
	}
	var b strings.Builder
	b.WriteString(subject + "\n\n")
	for _, m := range messages {
		b.WriteString("* " + headline(m) + "\n")
	}
	return b.String()
}

// headline returns the first line of a text as the subject of a commit. A task may begin with a
// heading of Markdown.
func headline(text string) string {
	const most = 72
	line, _, _ := strings.Cut(strings.TrimSpace(clean(text)), "\n")
	if heading := strings.TrimLeft(line, "#"); strings.HasPrefix(heading, " ") {
		line = heading
	}
	letters := []rune(strings.TrimSpace(line))
	if len(letters) > most {
		return strings.TrimSpace(string(letters[:most-1])) + "…"
	}
	return string(letters)
}

// clean removes control characters from a message.
func clean(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(plain.Visible(lines[i]), " \t\r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// WithTrailer returns a message whose last line names the run; a message that has that line stays
// as it is.
func WithTrailer(message, run string) string {
	trailer := RunTrailer + ": " + run
	text := strings.TrimRight(message, "\n")
	if slices.Contains(strings.Split(text, "\n"), trailer) {
		return text + "\n"
	}
	last := text[strings.LastIndex(text, "\n\n")+1:]
	if strings.Contains(text, "\n\n") && trailers(last) {
		return text + "\n" + trailer + "\n"
	}
	return text + "\n\n" + trailer + "\n"
}

// trailers reports whether all lines of a paragraph are trailers.
func trailers(paragraph string) bool {
	for line := range strings.Lines(strings.TrimSpace(paragraph)) {
		key, _, ok := strings.Cut(line, ": ")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			return false
		}
	}
	return true
}

// Facts are the differences that prove a candidate: those of the source and of the target from the
// commit that both come from, and those of the candidate from the target.
type Facts struct {
	Source, Target, Candidate []agency.ChangedFile
	// Several reports whether source and target come from several commits, after criss-cross
	// merges. Then the lists of source and target cover all of these, and no single one decides
	// what a file must be.
	Several bool
}

// Prove returns why a candidate is not what a merge of source and target must be; nil when it is.
// It does not know how the candidate was made. A file that only the source changed must be in the
// candidate as the source has it, and nothing else may differ from the target but files that both
// changed.
func Prove(f Facts) error {
	source, target, got := byPath(f.Source), byPath(f.Target), byPath(f.Candidate)
	renamed := false // git may have followed a file that both sides changed to another name
	for path, change := range source {
		if _, both := target[path]; both {
			renamed = renamed || change.To == "" || target[path].To == ""
		}
	}
	for path := range got {
		_, ours := target[path]
		if _, theirs := source[path]; !theirs && !ours {
			return wrong("%s differs from the target, and the run did not change it", path)
		}
	}
	if f.Several {
		return nil
	}
	for path, change := range source {
		if _, both := target[path]; both || renamed && change.From == "" {
			continue
		}
		if at, there := got[path]; !there || at.To != change.To {
			return wrong("%s is not as the run has it", path)
		}
	}
	return nil
}

func wrong(format string, path string) error {
	return agency.Errorf(agency.CodeIntegrity, "the commit to land failed its check: "+format, fmt.Sprintf("%.200q", path)).
		WithDetail("file", path).WithHint("nothing was moved; land it by hand: git merge")
}

func byPath(files []agency.ChangedFile) map[string]agency.ChangedFile {
	m := make(map[string]agency.ChangedFile, len(files))
	for _, f := range files {
		m[f.Path] = f
	}
	return m
}
