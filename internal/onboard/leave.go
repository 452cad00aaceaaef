package onboard

import (
	"context"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
)

// LeaveGit is the part of git that Leave uses.
type LeaveGit interface {
	ID(commonDir string) (string, error)
	OwnRefs(ctx context.Context, repo agency.Repo) (branches, saved []string, err error)
	RemoveWorktree(ctx context.Context, repo agency.Repo, path string) error
	Leave(repo agency.Repo) error
}

// Store is the record of the repositories and runs that agency knows.
type Store interface {
	Repos(ctx context.Context) ([]agency.Repo, error)
	Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error)
}

// Leave takes agency out of all repositories. The work of runs stays: their branches, and what is
// saved below refs/agency.
type Leave struct {
	Git   LeaveGit
	Store Store
	Lock  func(ctx context.Context, fingerprint string) (unlock func(), err error)
	// ClearStandbys removes the worktrees that were made ahead of runs, and CheckTrees returns
	// those in which the checks of a repository run.
	ClearStandbys func(ctx context.Context) int
	CheckTrees    func(repo agency.Repo) ([]string, error)
}

// Repos returns what stays in each repository, and with apply removes the rest. While a run is not
// removed, it returns E_INVALID_STATE. It leaves out a repository that is gone, or whose path now
// holds another one. A repository that cannot be changed has a problem; the others are changed.
func (l Leave) Repos(ctx context.Context, apply bool) (api.LeaveReposResponse, error) {
	runs, err := l.Store.Runs(ctx, agency.Filter{Removed: true})
	if err != nil {
		return api.LeaveReposResponse{}, err
	}
	of := map[string]map[string]bool{} // the branches of the runs of a repository
	for i := range runs {
		r := &runs[i]
		if apply && r.RemovedAt == nil {
			return api.LeaveReposResponse{}, agency.Errorf(agency.CodeInvalidState, "%s is not removed", r.Ref()).WithHint("agency rm %s", r.Ref())
		}
		if of[r.Repo.Fingerprint] == nil {
			of[r.Repo.Fingerprint] = map[string]bool{}
		}
		of[r.Repo.Fingerprint]["refs/heads/"+r.Branch] = true
	}
	repos, err := l.Store.Repos(ctx)
	if err != nil {
		return api.LeaveReposResponse{}, err
	}
	if apply {
		l.ClearStandbys(ctx)
	}
	resp := api.LeaveReposResponse{Repos: []api.LeftRepo{}}
	for _, repo := range repos {
		left := api.LeftRepo{Root: repo.Root, Branches: []string{}, Saved: []string{}}
		id, err := l.Git.ID(repo.CommonDir)
		if err == nil && id != repo.Fingerprint {
			continue
		}
		var branches, saved []string
		if err == nil {
			branches, saved, err = l.Git.OwnRefs(ctx, repo)
		}
		for _, ref := range branches {
			if of[repo.Fingerprint][ref] {
				left.Branches = append(left.Branches, strings.TrimPrefix(ref, "refs/heads/"))
			}
		}
		left.Saved = slices.Concat(left.Saved, saved)
		if err == nil && apply {
			err = l.leave(ctx, repo)
		}
		if err != nil {
			left.Problem = agency.AsError(err).Message
		}
		resp.Repos = append(resp.Repos, left)
	}
	return resp, nil
}

func (l Leave) leave(ctx context.Context, repo agency.Repo) error {
	unlock, err := l.Lock(ctx, repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	trees, err := l.CheckTrees(repo)
	if err != nil {
		return err
	}
	for _, tree := range trees {
		if err := l.Git.RemoveWorktree(ctx, repo, tree); err != nil {
			return err
		}
	}
	return l.Git.Leave(repo)
}
