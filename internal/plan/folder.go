package plan

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
)

// promptName matches NNN-name.md and NNN-NN-name.md.
var promptName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{3}(?:-[0-9]{2})?)-.+\.md$`) })

// descriptionPrefix begins the names of files that describe a whole folder and are not a prompt.
const descriptionPrefix = "000-"

// promptOrder returns the number of a prompt, or the name of another file.
func promptOrder(entry os.DirEntry) string {
	if number := promptName().FindStringSubmatch(entry.Name()); number != nil {
		return number[1]
	}
	return entry.Name()
}

// folder returns a plan of a folder of prompts: one agent for each, without dependencies.
func (l *loader) folder() (*agency.Plan, error) {
	dir, err := filepath.EvalSymlinks(l.src.Path)
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir) // sorted by name
	}
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "the folder %s cannot be read: %w", l.shown(l.src.Path), file.Cause(err))
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { return cmp.Compare(promptOrder(a), promptOrder(b)) }) // 001-02 after 001
	p := &agency.Plan{Name: filepath.Base(dir), Path: l.src.Path}
	l.settings = places{"": {text: l.shown(l.src.Path)}}
	var ignored []string
	for _, entry := range entries {
		name := entry.Name()
		number := promptName().FindStringSubmatch(name)
		switch {
		case strings.HasPrefix(name, "."):
			continue
		case number == nil || entry.IsDir():
			ignored = append(ignored, document.Printable(name))
			continue
		case strings.HasPrefix(name, descriptionPrefix):
			continue
		case len(p.Agents) == agency.MaxAgents:
			return nil, agency.Errorf(agency.CodePlanInvalid, "the folder %s holds more than %d prompts", l.shown(l.src.Path), agency.MaxAgents).WithHint("split it into several folders")
		}
		path, text, err := l.prompts.text(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.shown(l.src.Path), err)
		}
		p.Agents = append(p.Agents, agency.PlanAgent{ID: number[1], Name: strings.TrimSuffix(name, ".md"), Prompt: text, PromptPath: path})
		l.agents = append(l.agents, places{"": {text: l.shown(filepath.Join(l.src.Path, name))}})
	}
	if len(p.Agents) == 0 {
		return nil, agency.Errorf(agency.CodePlanInvalid, "the folder %s holds no prompt", l.shown(l.src.Path)).
			WithHint("prompts are called 001-name.md, 002-name.md and so on; 000-name.md only describes the others")
	}
	if len(ignored) > 0 {
		const most = 5
		rest := ""
		if len(ignored) > most {
			rest = fmt.Sprintf(" and %d more", len(ignored)-most)
		}
		l.warnings = append(l.warnings, fmt.Sprintf("no prompt by its name, which is not NNN-name.md: %s%s", strings.Join(ignored[:min(len(ignored), most)], ", "), rest))
	}
	return p, nil
}
