package supervisor

import (
	"context"

	"agency"
)

// ProjectOf is what a repository says about runs in it.
func (s *Supervisor) ProjectOf(ctx context.Context, repo agency.Repo) (agency.Project, error) {
	commit := ""
	if repo.Toplevel == "" {
		var err error
		if commit, err = s.Git.ResolveCommit(ctx, repo.Root, "HEAD"); err != nil {
			return agency.Project{}, err
		}
	}
	p, err := s.project(ctx, repo, commit)
	return p.Project, err
}
