package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"agency"
	"agency/internal/file"
	"agency/internal/supervisor/keyed"
)

// Projects reads the project configuration of repositories, and stores what users trust of it.
type Projects struct {
	store             *Records
	repos             *Repos
	git               Git
	harness           Harness
	parse             ParseProject
	parseDevcontainer ParseDevcontainer

	solo keyed.Locks // on starts of runs in repositories that allow one live run, by repository
}

// projectFile is a repository's agency.toml: its content, and its bytes, nil when there is no file.
type projectFile struct {
	agency.Project
	data  []byte
	hooks string // folder of the hooks that come with the files; empty for none
}

// read reads the project configuration of a repository: the file in the caller's worktree or, in a
// bare repository, that of a commit.
func (ps *Projects) read(ctx context.Context, repo agency.Repo, commit string) (projectFile, error) {
	var data []byte
	var err error
	path := filepath.Join(repo.Toplevel, agency.ProjectFile)
	switch {
	case repo.Toplevel != "":
		if data, err = file.ReadBeneath(repo.Toplevel, agency.ProjectFile, agency.ProjectLimit); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	case commit != "":
		path = agency.ProjectFile + " of " + repo.Root
		data, _, err = ps.git.File(ctx, repo, commit, agency.ProjectFile, agency.ProjectLimit)
		if err != nil && !errors.Is(err, file.ErrNotRegular) && !errors.Is(err, file.ErrTooLarge) {
			return projectFile{}, err // git failed, which says nothing about the file
		}
	}
	if err != nil {
		return projectFile{}, agency.Errorf(agency.CodeConfigInvalid, "%s cannot be read: %w", path, err).
			WithHint("it must be a regular file of at most %d bytes", agency.ProjectLimit)
	}
	p, err := ps.parse(path, data)
	return projectFile{p, data, repo.Hooks}, err
}

// refuseSecond refuses a run in a repository that allows one live run at a time, unless self is the
// only live run.
func (ps *Projects) refuseSecond(ctx context.Context, repo agency.Repo, self agency.RunID) error {
	live, err := ps.store.Runs(ctx, agency.Filter{Repo: repo.Fingerprint, Live: true})
	if err != nil {
		return err
	}
	for i := range live {
		if r := &live[i]; r.ID != self {
			return agency.Errorf(agency.CodeRepoBusy, "%s allows one live run at a time, and %s is live", repo.Root, r.Ref()).
				WithHint("wait for it: agency wait %s; or set parallel = true under [project] in %s", r.Ref(), agency.ProjectFile).
				WithDetail("run", r.Ref())
		}
	}
	return nil
}

// lockSolo prevents two concurrent starts from both being the only live run. It does nothing where
// runs may be parallel.
func (ps *Projects) lockSolo(ctx context.Context, p *agency.Project, repo agency.Repo, self agency.RunID) (unlock func(), err error) {
	if p.Parallel {
		return func() {}, nil
	}
	if unlock, err = ps.solo.Lock(ctx, repo.Fingerprint); err != nil {
		return nil, err
	}
	if err := ps.refuseSecond(ctx, repo, self); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// Of returns the project configuration of a repository.
func (ps *Projects) Of(ctx context.Context, repo agency.Repo) (agency.Project, error) {
	commit := ""
	if repo.Toplevel == "" {
		var err error
		if commit, err = ps.git.ResolveCommit(ctx, repo.Root, "HEAD"); err != nil {
			return agency.Project{}, err
		}
	}
	p, err := ps.read(ctx, repo, commit)
	return p.Project, err
}
