package supervisor

import (
	"cmp"
	"context"
	"path/filepath"

	"agency"
)

// Place is where a run begins: a repository, its project configuration, and the commit of its base
// as far as it was given.
type Place struct {
	Repo    agency.Repo
	Project agency.Project
	dir     string // in the repository, where the client wants to start
	project projectFile
	base    string
	commit  string
	baseErr error // why base has no commit
}

// Locate finds the repository that a client in dir names, "." or a path, and its project
// configuration. base is the reference to start from, as far as it is known; empty is HEAD, from
// which most runs start. The commit is resolved while git looks for the repository.
func (ps *Projects) Locate(ctx context.Context, dir, repo, base string) (*Place, error) {
	at := &Place{dir: repo, base: cmp.Or(base, "HEAD")}
	if !filepath.IsAbs(repo) {
		at.dir = filepath.Join(dir, repo)
	}
	resolved := make(chan struct{})
	go func() {
		defer close(resolved)
		at.commit, at.baseErr = ps.git.ResolveCommit(ctx, at.dir, at.base)
	}()
	var err error
	at.Repo, err = ps.git.Recall(ctx, at.dir)
	<-resolved
	if err != nil {
		return nil, err // without a repository the reference does not matter
	}
	if at.project, err = ps.read(ctx, at.Repo, at.commit); err != nil {
		return nil, err
	}
	at.Project = at.project.Project
	return at, nil
}

// commitOf returns the commit of a reference in the repository of a place.
func (ps *Projects) commitOf(ctx context.Context, at *Place, base string) (string, error) {
	if base == at.base {
		return at.commit, at.baseErr
	}
	return ps.git.ResolveCommit(ctx, at.dir, base)
}
