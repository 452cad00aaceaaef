package plan

import (
	"errors"
	"io/fs"
	"path/filepath"

	"agency"
	"agency/internal/document"
	"agency/internal/file"
)

// prompts reads the files of prompts in a folder, each once.
type prompts struct {
	root string // canonical; empty when there is none
	read map[string]string
	size int // total size of the plan's prompts; a prompt counts for each agent that has it
}

// add counts a prompt of a plan, and refuses one that makes the total too large.
func (p *prompts) add(text string) error {
	if p.size += len(text); p.size > agency.MaxPromptBytes {
		return agency.Errorf(agency.CodePlanInvalid, "the prompts of the plan have more than %d bytes together", agency.MaxPromptBytes).
			WithHint("put the material into files of the repository and name them in the prompts")
	}
	return nil
}

// text reads the file at path, which is absolute or relative to the canonical folder dir. It also
// returns the absolute path.
func (p *prompts) text(dir, path string) (abs, text string, err error) {
	bad := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodePlanInvalid, format, args...).WithDetail("path", abs)
	}
	abs = path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(dir, path)
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		// A path may contain links that the canonical root lacks, such as macOS's /tmp.
		abs = filepath.Join(folder, filepath.Base(path))
	}
	if p.root == "" {
		return "", "", bad("the prompt file %s cannot be read: the repository is bare and has no files", document.Quoted(path)).WithHint("write the task into the plan: prompt")
	}
	rel, err := filepath.Rel(p.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", "", bad("the prompt file %s does not lie in the repository %s", document.Quoted(path), document.Printable(p.root)).WithHint("copy it there, or write the task into the plan: prompt")
	}
	text, seen := p.read[abs]
	if !seen {
		data, err := file.ReadBeneath(p.root, rel, agency.PromptLimit)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", "", bad("the prompt file %s does not exist", document.Quoted(path)).WithHint("write it, or write the task into the plan: prompt. It would be %s", document.Printable(abs))
		case errors.Is(err, file.ErrNotRegular):
			return "", "", bad("the prompt file %s is a link, or not a regular file", document.Quoted(path)).WithHint("links are not followed: copy the file")
		case errors.Is(err, file.ErrTooLarge):
			return "", "", bad("the prompt file %s has more than %d bytes", document.Quoted(path), agency.PromptLimit).WithHint("put the material into files of the repository and name them in the prompt")
		case err != nil:
			return "", "", bad("the prompt file %s cannot be read: %w", document.Quoted(path), file.Cause(err))
		}
		text = string(data)
		if err := agency.CheckPrompt(text); err != nil {
			e := agency.AsError(err)
			return "", "", bad("the prompt file %s: %s", document.Quoted(path), e.Message).WithHint("a prompt file is UTF-8 text that is not empty")
		}
		if p.read == nil {
			p.read = map[string]string{}
		}
		p.read[abs] = text
	}
	return abs, text, p.add(text)
}
