package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/git"
	"agency/internal/onboard"
	"agency/internal/sandbox"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// projectOperations serve the operations on repositories: init and trust.
type projectOperations struct {
	sup        *supervisor.Supervisor
	sandbox    *sandbox.Host
	git        *git.Git
	store      *sqlite.Store
	checkTrees func(repo agency.Repo) ([]string, error)
}

func (o projectOperations) initRepo(ctx context.Context, req api.InitRepoRequest) (api.InitRepoResponse, error) {
	return onboard.Init{Git: o.git, Trust: o.sup.Projects, Sandbox: o.sandbox}.Repo(ctx, req)
}

func (o projectOperations) leaveRepos(ctx context.Context, req api.LeaveReposRequest) (api.LeaveReposResponse, error) {
	return onboard.Leave{
		Git: o.git, Store: o.store, Lock: o.sup.Repos.Lock, ClearStandbys: o.sup.Standbys.Clear, CheckTrees: o.checkTrees,
	}.Repos(ctx, req.Apply)
}

func (o projectOperations) trustRequest(req api.TrustRequest) (supervisor.TrustRequest, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return supervisor.TrustRequest{}, err
	}
	return supervisor.TrustRequest{Dir: req.Dir, Base: req.Base, Run: req.Run, Target: req.Target, Default: cfg.Defaults.Base}, nil
}

func (o projectOperations) showTrust(ctx context.Context, req api.TrustRequest) (api.TrustResponse, error) {
	of, err := o.trustRequest(req)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := o.sup.Projects.Trust(ctx, of)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (o projectOperations) grantTrust(ctx context.Context, req api.GrantTrustRequest) (api.TrustResponse, error) {
	of, err := o.trustRequest(req.Of)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := o.sup.Projects.Grant(ctx, of, req.Hash)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (o projectOperations) revokeTrust(ctx context.Context, req api.RevokeTrustRequest) (api.RevokeTrustResponse, error) {
	repo, revoked, err := o.sup.Projects.Revoke(ctx, req.Dir)
	return api.RevokeTrustResponse{Root: repo.Root, Revoked: revoked}, err
}

func (o projectOperations) listRefs(ctx context.Context, req api.RefsRequest) (api.RefsResponse, error) {
	repo, err := o.git.Discover(ctx, req.Dir)
	if err != nil {
		return api.RefsResponse{}, err
	}
	resp := api.RefsResponse{Landings: []api.LandedRun{}}
	if resp.Names, err = o.git.RefNames(ctx, repo); err != nil {
		return api.RefsResponse{}, err
	}
	if resp.Remotes, err = o.git.Remotes(ctx, repo); err != nil {
		return api.RefsResponse{}, err
	}
	landed, err := o.store.LandedIn(ctx, repo.Fingerprint, mostLandings)
	if err != nil {
		return api.RefsResponse{}, err
	}
	for i := range landed {
		r, err := o.store.Run(ctx, landed[i].RunID)
		if err != nil {
			return api.RefsResponse{}, err
		}
		resp.Landings = append(resp.Landings, api.LandedRun{ID: landed[i].ID, Run: r.Ref(), Target: landed[i].Target})
	}
	return resp, nil
}

// mostLandings is the largest number of landings that listRefs returns.
const mostLandings = 50
