package daemon

import (
	"context"

	"agency/internal/api"
	"agency/internal/doctor"
)

func (d *Daemon) newDoctor() *doctor.Doctor {
	return &doctor.Doctor{Deps: doctor.Deps{
		Git: d.git, Tmux: d.tmux, Store: d.store, Runs: d.sup.Observer, Backups: d.backups, Screens: d.screens(),
		Daemon: doctor.Daemon{Version: d.Version, Started: d.started, Config: d.Config},
		Active: d.active.config, State: func() api.DaemonConfig { return d.active.state(d.Config) },
		Room: d.disks.CheckRoom, StaleFiles: d.files.Failures, Serving: d.serving(), Now: d.clock.Now, Elapsed: d.clock.Elapsed,
	}}
}

func (d *Daemon) doctor(ctx context.Context, req api.DoctorRequest) (api.DoctorResponse, error) {
	checks, err := d.newDoctor().Look(ctx, req)
	return api.DoctorResponse{Checks: checks}, err
}
