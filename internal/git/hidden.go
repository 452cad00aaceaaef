package git

import (
	"context"
	"path/filepath"
	"strings"

	"agency"
)

// hidden returns the files that a move changes, that git was told not to look at, and that the user
// changed. Git takes such a file for unchanged when its size is the same and it was written in the
// same second, and would overwrite it.
func (c *checkout) hidden(ctx context.Context, from, to string) ([]string, error) {
	out, err := c.git.do(ctx, call{dir: c.path, site: c.site, settings: c.sparse, args: []string{"ls-files", "-v", "-z"}})
	if err != nil {
		return nil, err
	}
	told := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		// S: skip-worktree; a small letter: assume-unchanged.
		if tag, path, ok := strings.Cut(line, " "); ok && (tag == "S" || strings.ToUpper(tag) != tag) {
			told[path] = true
		}
	}
	if len(told) == 0 {
		return nil, nil
	}
	files, err := c.git.history.Changed(ctx, c.repo, from, to)
	if err != nil {
		return nil, err
	}
	s, err := c.git.trees.saver(ctx, c.repo, c.path)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var changed []string
	for _, f := range files {
		if !told[f.Path] || strings.HasPrefix(f.From, "160000 ") { // git leaves the files of a submodule alone
			continue
		}
		switch is, err := c.unchanged(ctx, s, f); {
		case err != nil:
			return nil, err
		case !is:
			changed = append(changed, f.Path)
		}
	}
	return changed, nil
}

// unchanged reports whether a file of the checkout holds what it held before a move, or does not
// exist.
func (c *checkout) unchanged(ctx context.Context, s *saver, f agency.ChangedFile) (bool, error) {
	_, id, err := content(ctx, s, filepath.Join(c.path, f.Path), f.Path)
	if missing(err) {
		return true, nil
	}
	return err == nil && id != "" && strings.HasSuffix(f.From, " "+id), err
}
