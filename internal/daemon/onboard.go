package daemon

import (
	"context"

	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/git"
	"agency/internal/onboard"
	"agency/internal/supervisor"
)

// projectOperations serve the operations on repositories: init and trust.
type projectOperations struct {
	sup *supervisor.Supervisor
	git *git.Git
}

func (o projectOperations) initRepo(ctx context.Context, req api.InitRepoRequest) (api.InitRepoResponse, error) {
	return onboard.Init{Git: o.git, Trust: o.sup.Projects}.Repo(ctx, req)
}

func (o projectOperations) trustRequest(req api.TrustRequest) (supervisor.TrustRequest, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return supervisor.TrustRequest{}, err
	}
	return supervisor.TrustRequest{Dir: req.Dir, Base: req.Base, Run: req.Run, Default: cfg.Defaults.Base}, nil
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
