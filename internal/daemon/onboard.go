package daemon

import (
	"context"

	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/onboard"
	"agency/internal/supervisor"
)

func (d *Daemon) initRepo(ctx context.Context, req api.InitRepoRequest) (api.InitRepoResponse, error) {
	return onboard.Init{Git: d.git, Trust: d.sup.Projects}.Repo(ctx, req)
}

func (d *Daemon) trustRequest(req api.TrustRequest) (supervisor.TrustRequest, error) {
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		return supervisor.TrustRequest{}, err
	}
	return supervisor.TrustRequest{Dir: req.Dir, Base: req.Base, Run: req.Run, Default: cfg.Defaults.Base}, nil
}

func (d *Daemon) showTrust(ctx context.Context, req api.TrustRequest) (api.TrustResponse, error) {
	of, err := d.trustRequest(req)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := d.sup.Projects.Trust(ctx, of)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (d *Daemon) grantTrust(ctx context.Context, req api.GrantTrustRequest) (api.TrustResponse, error) {
	of, err := d.trustRequest(req.Of)
	if err != nil {
		return api.TrustResponse{}, err
	}
	repo, t, err := d.sup.Projects.Grant(ctx, of, req.Hash)
	return api.TrustResponse{Root: repo.Root, Trust: t}, err
}

func (d *Daemon) revokeTrust(ctx context.Context, req api.RevokeTrustRequest) (api.RevokeTrustResponse, error) {
	repo, revoked, err := d.sup.Projects.Revoke(ctx, req.Dir)
	return api.RevokeTrustResponse{Root: repo.Root, Revoked: revoked}, err
}
