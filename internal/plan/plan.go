// Package plan reads plans of sessions: YAML, folders of prompts, and agents that all get one prompt.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
)

// fileLimit is the largest plan file, in bytes.
const fileLimit = 4 << 20

// Source says where a plan comes from: exactly one of Path, Text and Agents is given.
type Source struct {
	Path string // absolute: a YAML file, or a folder of NNN-name.md prompts
	Text string // YAML
	// Agents are runners with how many of each, such as claude_code:3. Prompt or the file PromptPath is what each of them gets.
	Agents     []string
	Prompt     string
	PromptPath string

	// Dir is the absolute folder in which the paths of Text and PromptPath begin.
	Dir string
	// Root is the canonical folder that every prompt file must lie in; empty when the repository is bare and none can.
	Root string

	// What follows takes the place of what the plan says, where it is given.
	Name        string
	Base        string
	MaxParallel int
	OnFailure   agency.OnFailure

	// Check refuses what only the caller can know of, when the rest is right. Its errors have the details of those of
	// Check, so that Load can say where.
	Check func(p *agency.Plan) error
}

// Load reads a plan, fills it in and validates it. Prompt files are regular files in Root, reached without links. The warnings
// are for people. What is wrong with a plan is E_PLAN_INVALID, whose message says where; a path that is none is E_INVALID_PATH.
func Load(src Source) (*agency.Plan, []string, error) {
	l := &loader{src: src, prompts: prompts{root: src.Root}}
	p, err := l.load()
	if err != nil {
		return nil, nil, err
	}
	if src.Name != "" {
		p.Name = src.Name
	}
	if src.Base != "" {
		p.Base = src.Base
	}
	if src.MaxParallel != 0 {
		p.MaxParallel = src.MaxParallel
	}
	if src.OnFailure != "" {
		p.OnFailure = src.OnFailure
	}
	if err := Fill(p); err != nil {
		return nil, nil, l.locate(cmp.Or(Check(l.withFolders(p)), err)) // which may know more
	}
	if err := Check(l.withFolders(p)); err != nil {
		return nil, nil, l.locate(err)
	}
	if src.Check != nil {
		if err := src.Check(p); err != nil {
			return nil, nil, l.locate(err)
		}
	}
	return p, l.warnings, nil
}

// withFolders is the plan with a slash behind every path that its agents touch and that is a folder of the repository now. The plan
// itself keeps what was written: folders come and go while a session runs.
func (l *loader) withFolders(p *agency.Plan) *agency.Plan {
	marked := *p
	marked.Agents = slices.Clone(p.Agents)
	for i := range marked.Agents {
		a := &marked.Agents[i]
		a.Touches = slices.Clone(a.Touches)
		for k, path := range a.Touches {
			if l.src.Root == "" || strings.HasSuffix(path, "/") {
				continue
			}
			if info, err := file.StatBeneath(l.src.Root, path); err == nil && info.IsDir() {
				a.Touches[k] += "/"
			}
		}
	}
	return &marked
}

// loader is one plan that is being read.
type loader struct {
	src      Source
	prompts  prompts
	warnings []string
	// settings are where the keys of the whole plan stand, agents where those of each agent do; the key "" is the agent itself.
	settings places
	agents   []places
}

// places are where keys stand, in words that an error begins with.
type places map[string]string

func (l *loader) load() (*agency.Plan, error) {
	src := &l.src
	given := 0
	for _, is := range []bool{src.Path != "", src.Text != "", len(src.Agents) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return nil, agency.Errorf(agency.CodeUsage, "there is no plan").WithHint("name a YAML file or a folder of prompts, or: --agents claude_code:3 --prompt TEXT")
	case given > 1:
		return nil, agency.Errorf(agency.CodeUsage, "more than one plan is given").WithHint("name a file or a folder, or give --agents with --prompt")
	case len(src.Agents) == 0 && (src.Prompt != "" || src.PromptPath != ""):
		return nil, agency.Errorf(agency.CodeUsage, "a prompt is given without agents to do it").WithHint("the prompts of a plan stand in it; for one task use: --agents claude_code:3 --prompt TEXT")
	case src.Text != "":
		return l.document("stdin", []byte(src.Text), src.Dir)
	case len(src.Agents) > 0:
		return l.fan()
	}
	info, err := os.Lstat(src.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, agency.Errorf(agency.CodeInvalidPath, "the plan %s does not exist", l.shown(src.Path)).WithHint("name a YAML file or a folder of NNN-name.md prompts")
	case err != nil:
		return nil, agency.Errorf(agency.CodeInvalidPath, "the plan %s cannot be read: %w", l.shown(src.Path), file.Cause(err))
	case info.IsDir():
		return l.folder()
	}
	data, err := file.ReadRegular(src.Path, fileLimit)
	switch {
	case errors.Is(err, file.ErrNotRegular):
		return nil, agency.Errorf(agency.CodeInvalidPath, "the plan %s is a link or no regular file", l.shown(src.Path)).WithHint("name the file itself, or hand it over on standard input: -")
	case errors.Is(err, file.ErrTooLarge):
		return nil, agency.Errorf(agency.CodePlanInvalid, "the plan %s has more than %d bytes", l.shown(src.Path), fileLimit).WithHint("move long prompts to files of their own: prompt_path")
	case err != nil:
		return nil, agency.Errorf(agency.CodeInvalidPath, "the plan %s cannot be read: %w", l.shown(src.Path), file.Cause(err))
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(src.Path))
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "the folder of the plan %s cannot be read: %w", l.shown(src.Path), file.Cause(err))
	}
	p, err := l.document(l.shown(src.Path), data, dir)
	if err == nil {
		p.Path = src.Path
	}
	return p, err
}

// locate puts the place before what is wrong, where the plan has one for it. Several faults become one error.
func (l *loader) locate(err error) error {
	faults, several := errors.AsType[Faults](err)
	if !several || len(faults) == 1 {
		return l.located(err)
	}
	position := func(e *agency.Error) int {
		if i, ok := e.Details["position"].(int); ok {
			return i
		}
		return -1
	}
	slices.SortStableFunc(faults, func(a, b *agency.Error) int { return cmp.Compare(position(a), position(b)) })
	lines := make([]string, len(faults))
	for i, fault := range faults {
		e := agency.AsError(l.located(fault))
		lines[i] = document.WithHint(e.Message, e.Hint)
	}
	first := faults[0]
	first.Message = among(first.Message, lines, len(lines))
	return first.WithDetail("problems", lines)
}

func (l *loader) located(err error) error {
	e := agency.AsError(err)
	if e.Details["key"] == nil {
		return err
	}
	at := l.settings
	if i, ok := e.Details["position"].(int); ok && i < len(l.agents) {
		at = l.agents[i]
	}
	key, _ := e.Details["key"].(string)
	place, ok := at[key]
	if !ok {
		place = at[""]
	}
	if place != "" {
		e.Message = place + ": " + e.Message
	}
	return e
}

// shown is how messages call a path: from the caller's folder where it lies in it.
func (l *loader) shown(path string) string {
	if rel, err := filepath.Rel(l.src.Dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return document.Printable(path)
}

// among is the message of the first of several problems, with lines for some of the others. lines has the first, too.
func among(first string, lines []string, total int) string {
	if total == 1 {
		return first
	}
	return fmt.Sprintf("%s\n%d more:\n  %s", first, total-1, strings.Join(lines[1:min(len(lines), 6)], "\n  "))
}
