package supervisor

import (
	"context"

	"agency"
)

// RepoOf is the repository of a folder, with its lasting identity, which it is given if it has none.
func (s *Supervisor) RepoOf(ctx context.Context, dir string) (agency.Repo, error) {
	repo, err := s.Git.Discover(ctx, dir)
	if err != nil {
		return repo, err
	}
	return repo, s.identify(ctx, &repo)
}

// Exclude keeps a folder of a repository, relative to its root, out of git.
func (s *Supervisor) Exclude(ctx context.Context, repo agency.Repo, folder string) error {
	unlock, err := s.lockRepo(ctx, repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	return s.Git.Exclude(repo, "/"+ignorePattern.Replace(folder)+"/")
}
