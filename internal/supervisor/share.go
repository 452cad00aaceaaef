package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/duration"
	"agency/internal/file"
)

// sharing are the files that a worktree gets from the main worktree.
type sharing struct {
	repo     agency.Repo // as recorded
	worktree string
	project  *agency.Project
	again    bool // the worktree may have them already
	warn     func(text string)
}

// shareFiles copies and links files of the main worktree into a worktree, and makes git ignore them
// there. A file that is missing, or that the worktree already has, is a warning: most checkouts do
// not have all files that a repository lists.
func (ps *Projects) shareFiles(ctx context.Context, s sharing) error {
	p := s.project
	if len(p.Copy)+len(p.Link) == 0 {
		return nil
	}
	repo, err := ps.git.Discover(ctx, s.repo.Root)
	if err != nil {
		return err
	}
	from := repo.Toplevel
	if from == "" {
		s.warn(fmt.Sprintf("%s has no main worktree to copy from", repo.Root))
		return nil
	}
	var made []string
	share := func(verb, path string, do func(rel string) ([]string, error)) error {
		rel := filepath.Clean(path)
		skipped, err := do(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.warn(fmt.Sprintf("%s was not %s: it is not in %s", rel, verb, from))
			return nil
		case errors.Is(err, fs.ErrExist) && s.again: // made before
		case errors.Is(err, fs.ErrExist):
			s.warn(fmt.Sprintf("%s was not %s: it is in the worktree already", rel, verb))
			return nil
		case ctx.Err() != nil:
			return agency.Errorf(agency.CodeSetupFailed, "setup did not end in %s, at %s", duration.Text(p.SetupTimeout), rel)
		case err != nil:
			return agency.Errorf(agency.CodeSetupFailed, "setup: %s cannot be %s: %w", rel, verb, err).
				WithHint("only files and folders beneath %s can be, and no links; fix [worktree] in %s", from, agency.ProjectFile)
		}
		for _, name := range skipped {
			s.warn(fmt.Sprintf("%s was not %s: it is not a regular file", name, verb))
		}
		made = append(made, rel)
		return nil
	}
	for _, path := range p.Copy {
		if err := share("copied", path, func(rel string) ([]string, error) { return file.CopyBeneath(ctx, from, s.worktree, rel, copyLimit) }); err != nil {
			return err
		}
	}
	for _, path := range p.Link {
		err := share("linked", path, func(rel string) ([]string, error) {
			info, err := file.StatBeneath(from, rel)
			if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				err = file.ErrNotRegular
			}
			if err != nil {
				return nil, err
			}
			return nil, file.LinkBeneath(s.worktree, rel, filepath.Join(from, rel))
		})
		if err != nil {
			return err
		}
	}
	return ps.hide(ctx, s, repo, made)
}

// hide makes git ignore paths of a worktree that it does not ignore yet.
func (ps *Projects) hide(ctx context.Context, s sharing, repo agency.Repo, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	ignored, err := ps.git.Ignored(ctx, repo, s.worktree, paths)
	if err != nil {
		return err
	}
	unlock, err := ps.repos.Lock(ctx, s.repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	for _, path := range paths {
		if slices.Contains(ignored, path) {
			continue
		}
		if err := ps.git.Exclude(repo, "/"+ignorePattern.Replace(path)); err != nil {
			return err
		}
	}
	return nil
}

// ignorePattern escapes a path so that git's ignore rules match only that path.
var ignorePattern = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `)
