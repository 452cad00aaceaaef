package daemon

import (
	"cmp"
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/doctor"
)

func (d *Daemon) doctor(ctx context.Context, req api.DoctorRequest) (api.DoctorResponse, error) {
	looks := doctor.Doctor{Deps: doctor.Deps{
		Git: d.git, Tmux: d.tmux, Store: d.store, Runs: d.sup.Observer, Backups: d.backups, Screens: d.screens(),
		Daemon: doctor.Daemon{Version: d.Version, Started: d.started, Config: d.Config},
		Active: d.active.config, State: func() api.DaemonConfig { return d.active.state(d.Config) },
		Standbys: d.sup.Standbys.List, Room: d.disks.CheckRoom, StaleFiles: d.files.Failures, Serving: d.serving(), Now: d.clock.Now, Elapsed: d.clock.Elapsed,
		Sandbox: d.sandbox, Image: d.imageFor,
	}}
	if req.Sandbox {
		return looks.TrySandbox(ctx, req)
	}
	checks, err := looks.Look(ctx, req)
	return api.DoctorResponse{Checks: checks, Trials: []agency.SandboxTrial{}}, err
}

// imageFor returns the image that a run of a client in a container would have; empty when none is
// configured.
func (d *Daemon) imageFor(ctx context.Context, req api.DoctorRequest) string {
	image := ""
	if repo, err := d.git.Discover(ctx, req.Dir); err == nil {
		if p, err := d.sup.Projects.Of(ctx, repo); err == nil {
			image = p.Image
		}
	}
	if cfg, err := config.Load(req.Config, req.Env); err == nil {
		image = cmp.Or(image, cfg.Sandbox.Image)
	}
	return image
}
