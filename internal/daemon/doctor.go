package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
	"agency/internal/doctor"
)

func (d *Daemon) doctor(ctx context.Context, req api.DoctorRequest) (api.DoctorResponse, error) {
	looks := doctor.Doctor{Deps: doctor.Deps{
		Git: d.git, Tmux: d.tmux, Store: d.store, Runs: d.sup.Observer, Backups: d.backups, Screens: d.screens(),
		Daemon: doctor.Daemon{Version: d.Version, Started: d.started, Config: d.Config},
		Active: d.active.config, State: func() api.DaemonConfig { return d.active.state(d.Config) },
		Standbys: d.sup.Standbys.List, Room: d.disks.CheckRoom, StaleFiles: d.files.Failures, Serving: d.serving(), Now: d.clock.Now, Elapsed: d.clock.Elapsed,
		Sandbox: d.sandbox,
	}}
	if req.Sandbox {
		return looks.TrySandbox(ctx)
	}
	checks, err := looks.Look(ctx, req)
	return api.DoctorResponse{Checks: checks, Trials: []agency.SandboxTrial{}}, err
}
