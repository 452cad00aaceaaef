// Package plan reads plans of sessions: YAML, folders of prompts, and agents that all get the same
// prompt.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
)

// fileLimit is the largest plan file, in bytes.
const fileLimit = 4 << 20

// Source is the source of a plan: exactly one of Path, Text and Agents is set.
type Source struct {
	Path string // absolute: a YAML file, or a folder of NNN-name.md prompts
	Text string // YAML
	// Agents are runners with their number of agents, such as claude_code:3. Each agent gets
	// Prompt, or the content of the file PromptPath.
	Agents     []string
	Prompt     string
	PromptPath string

	// Dir is the absolute folder for the relative paths of Text and PromptPath.
	Dir string
	// Root is the canonical folder that must contain every prompt file; empty when the repository
	// is bare, so that no file can.
	Root string

	// The fields below override the plan's own values where they are set.
	Name        string
	Base        string
	MaxParallel int
	OnFailure   agency.OnFailure
	Land        agency.LandBy // of every agent

	// Check refuses what only the caller can judge, once the rest is valid. Its errors have the
	// details of those of the function Check, so that Load can name the place.
	Check func(p *agency.Plan) error
}

// Load reads a plan, fills it in and validates it. Prompt files are regular files in Root, reached
// without links. The warnings are for the user. An invalid plan is E_PLAN_INVALID, whose message
// names the place; an invalid path is E_INVALID_PATH.
func Load(src Source) (*agency.Plan, []string, error) {
	l := &loader{src: src, prompts: prompts{root: src.Root}}
	p, err := l.load()
	if err != nil {
		return nil, nil, err
	}
	if given := (agency.PlanSettings{Name: src.Name, Base: src.Base, MaxParallel: src.MaxParallel, OnFailure: src.OnFailure, Land: src.Land}); given != (agency.PlanSettings{}) {
		p.Given = &given
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
	for i := range p.Agents {
		if src.Land != "" {
			p.Agents[i].Land = src.Land
		}
	}
	if err := Fill(p); err != nil {
		return nil, nil, l.locate(cmp.Or(Check(l.withFolders(p)), err)) // its error may be more precise
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

// withFolders returns the plan with a slash after every touched path that is now a folder of the
// repository. The plan itself keeps the written paths: folders come and go while a session runs.
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

// loader is the state of reading one plan.
type loader struct {
	src      Source
	prompts  prompts
	warnings []string
	// settings holds the places of the keys of the whole plan, agents those of each agent; the key
	// "" is the agent itself.
	settings places
	agents   []places
}

// places are the places of keys.
type places map[string]place

// place is a place of a plan: the words that begin an error, and the line, 0 when there is none.
type place struct {
	text string
	line int
}

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
		return nil, agency.Errorf(agency.CodeUsage, "a prompt needs agents that do it").WithHint("the prompts of a plan are in it; for one task use: --agents claude_code:3 --prompt TEXT")
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
		return nil, agency.Errorf(agency.CodeInvalidPath, "the plan %s is a link, or not a regular file", l.shown(src.Path)).WithHint("name the file itself, or hand it over on standard input: -")
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

// locate prefixes each fault with its place, if the plan has one for it. Several faults become one
// error, that of the first in the plan.
func (l *loader) locate(err error) error {
	faults, several := errors.AsType[Faults](err)
	if !several || len(faults) == 1 {
		return l.located(err)
	}
	slices.SortStableFunc(faults, func(a, b *agency.Error) int {
		return cmp.Or(cmp.Compare(l.placeOf(a).line, l.placeOf(b).line), cmp.Compare(position(a), position(b)))
	})
	more := ""
	if len(faults) == maxFaults {
		more = " or more"
	}
	faults = slices.CompactFunc(faults, l.sameDefault)
	more = strconv.Itoa(len(faults)-1) + more
	lines := make([]string, len(faults))
	for i, fault := range faults {
		e := agency.AsError(l.located(fault))
		lines[i] = document.WithHint(e.Message, e.Hint)
	}
	first := faults[0]
	first.Message = among(first.Message, lines, more)
	return first.WithDetail("problems", lines)
}

// sameDefault reports whether two agents have the same fault because the defaults have it.
func (l *loader) sameDefault(a, b *agency.Error) bool {
	at := l.placeOf(a)
	key, _ := a.Details["key"].(string)
	return key == b.Details["key"] && at.line > 0 && at == l.placeOf(b) && at == l.settings[key]
}

// located prefixes a fault with its place.
func (l *loader) located(err error) error {
	e := agency.AsError(err)
	if at := l.placeOf(e).text; at != "" {
		e.Message = at + ": " + e.Message
	}
	return e
}

// placeOf returns the place of a fault: that of its key, or else of its agent.
func (l *loader) placeOf(e *agency.Error) place {
	key, known := e.Details["key"].(string)
	if !known {
		return place{}
	}
	at := l.settings
	if i := position(e); i >= 0 && i < len(l.agents) {
		at = l.agents[i]
	}
	if p, ok := at[key]; ok {
		return p
	}
	return at[""]
}

// position returns the position of a fault's agent in the plan; -1 when it has none.
func position(e *agency.Error) int {
	if i, ok := e.Details["position"].(int); ok {
		return i
	}
	return -1
}

// shown returns a path for messages: relative to the caller's folder when it is inside it.
func (l *loader) shown(path string) string {
	if rel, err := filepath.Rel(l.src.Dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return document.Printable(path)
}

// among returns the message of the first of several problems, with lines for some of the others.
// lines includes the first; more is the number of the others, in words.
func among(first string, lines []string, more string) string {
	const most = 5
	others := lines[1:]
	if len(others) == 0 {
		return first
	}
	more += " more"
	if len(others) > most {
		others = others[:most]
		more += fmt.Sprintf(", the first %d are", most)
	}
	return fmt.Sprintf("%s\n%s:\n  %s", first, more, strings.Join(others, "\n  "))
}
