// Package doctor decides what is wrong with this machine for agency: with what runs depend on, and
// with what belongs to no run. It changes nothing.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/git"
	"agency/internal/harness"
	"agency/internal/plain"
	"agency/internal/recovery"
	"agency/internal/runner"
)

// Git is the part of git that the doctor uses.
type Git interface {
	Version(ctx context.Context) (string, error)
	Discover(ctx context.Context, dir string) (agency.Repo, error)
	Branches(ctx context.Context, repo agency.Repo, prefix string) ([]string, error)
	Worktree(ctx context.Context, repo agency.Repo, path string) (string, error)
	Unmerged(ctx context.Context, repo agency.Repo, branch string, known ...string) (bool, error)
	Leftover(repo agency.Repo, worktree string) (bool, error)
	Locks(repo agency.Repo, branches, worktrees []string) ([]git.Lock, error)
}

// Tmux is the part of tmux that the doctor uses.
type Tmux interface {
	Version(ctx context.Context) (string, error)
	Sessions(ctx context.Context) ([]string, error)
}

// Store is the record that the doctor reads.
type Store interface {
	Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error)
	Repo(ctx context.Context, fingerprint string) (*agency.Repo, error)
	Landings(ctx context.Context, run agency.RunID) ([]agency.Landing, error)
	// NoRoom returns why no disk space is reserved for the record; nil when it is.
	NoRoom() error
}

// Runs are the runs as their supervisor knows them.
type Runs interface {
	LiveRuns() int
	// Derive adds to a run what is known of it beyond the record.
	Derive(r *agency.Run) agency.Status
}

// Daemon is what the doctor needs from the daemon.
type Daemon struct {
	Version string
	Started time.Time
	Config  *config.Config // the configuration at its start
}

// Deps are the parts that a doctor needs.
type Deps struct {
	Git     Git
	Tmux    Tmux
	Store   Store
	Runs    Runs
	Backups *recovery.Backups
	Screens harness.Screens
	Daemon  Daemon
	Active  func() *config.Config   // the configuration that the daemon uses now
	State   func() api.DaemonConfig // of that configuration
	// Standbys returns the worktrees that were made ahead of runs.
	Standbys func() []agency.Standby
	Room     func() error // why no run can be created, as on a full disk; nil when one can
	// StaleFiles returns, by session, why its status file could not be written.
	StaleFiles func() map[agency.SessionID]string
	Serving    runner.Serving // the processes that no run may end
	Now        func() time.Time
	Elapsed    func(since time.Time) time.Duration
	Sandbox    Sandbox
	Image      func(ctx context.Context, req api.DoctorRequest) string // of containers; empty when none is configured
}

// Sandbox tries the sandboxes of this machine.
type Sandbox interface {
	// Trials returns the outcome of each attempt to break out of a sandbox of a level, process or
	// landlock, or E_SANDBOX_UNAVAILABLE.
	Trials(ctx context.Context, level agency.SandboxLevel) ([]agency.SandboxTrial, error)
	// TryImage does the same for containers of an image, in the engine that an environment names.
	TryImage(ctx context.Context, env agency.Environ, name string) ([]agency.SandboxTrial, error)
	// Containers returns the containers in the engine that an environment names, and in those that
	// the attempts of a data root noted; away are those of engines that do not answer.
	Containers(ctx context.Context, env agency.Environ, home string) (found, away []agency.Container)
}

// Doctor checks the machine.
type Doctor struct{ Deps }

// probeBytes is the space that the data root must have, in bytes: more than a file system keeps in
// a file's inode.
const probeBytes = 16 << 10

// backupLate is the age of the newest backup beyond which the doctor warns.
const backupLate = 3 * recovery.BackupEvery

// The levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"
	levelWarning = "warning"
	levelError   = "error"
)

// Look returns the findings about everything that a run depends on, and about what belongs to no
// run. req has the client's directory and environment.
func (d *Doctor) Look(ctx context.Context, req api.DoctorRequest) ([]api.Check, error) {
	checks := []api.Check{d.checkGit(ctx), d.checkTmux(ctx)}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		checks = append(checks, failed("config", err))
	} else {
		checks = append(checks, checkConfig(cfg))
		checks = append(checks, checkRunners(ctx, cfg, req)...)
	}
	checks = append(checks, d.checkRepo(ctx, req.Dir), d.checkHome(ctx), d.checkBackup(ctx), d.checkDaemon(), d.checkActive(), checkNotify(d.Active()))
	checks = append(checks, d.checkReserve()...)
	checks = append(checks, d.checkScreens()...)
	checks = append(checks, d.checkFiles()...)
	events, err := d.checkEvents(ctx)
	if err != nil {
		return nil, err
	}
	checks = append(checks, events)
	orphans, err := d.orphans(ctx, req.Env)
	if err != nil {
		return nil, err
	}
	return append(checks, orphans...), nil
}

func failed(name string, err error) api.Check {
	e := agency.AsError(err)
	return api.Check{Name: name, Level: levelError, Text: e.Message, Fix: e.Hint}
}

// checkFiles returns a finding for each session whose status file is out of date.
func (d *Doctor) checkFiles() []api.Check {
	checks := []api.Check{}
	failures := d.StaleFiles()
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		checks = append(checks, api.Check{
			Name: "status files", Level: levelWarning, Text: fmt.Sprintf("those of session %s are behind: %s", id, failures[id]),
			Fix: "remove links from the path to its folder and make it writable; agency tries again: agency session show " + string(id) + " --path",
		})
	}
	return checks
}

// checkScreens checks the user's own patterns for terminals, if there are any.
func (d *Doctor) checkScreens() []api.Check {
	checks := []api.Check{}
	for _, path := range d.Screens.Files() {
		c := api.Check{Name: "patterns", Level: levelOK, Text: path}
		if err := d.Screens.CheckFile(path); err != nil {
			c.Level, c.Text, c.Fix = levelError, err.Error(), "docs/agents.md shows what such a file holds"
		}
		checks = append(checks, c)
	}
	return checks
}

func (d *Doctor) checkGit(ctx context.Context) api.Check {
	version, err := d.Git.Version(ctx)
	if err != nil {
		return failed("git", err)
	}
	return api.Check{Name: "git", Level: levelOK, Text: version}
}

func (d *Doctor) checkTmux(ctx context.Context) api.Check {
	version, err := d.Tmux.Version(ctx)
	if err != nil {
		return failed("tmux", err)
	}
	return api.Check{Name: "tmux", Level: levelOK, Text: version}
}

func checkConfig(cfg *config.Config) api.Check {
	if !cfg.Exists {
		return api.Check{Name: "config", Level: levelOK, Text: "defaults, there is no " + cfg.Path}
	}
	return api.Check{Name: "config", Level: levelOK, Text: cfg.Path}
}

func (d *Doctor) checkRepo(ctx context.Context, dir string) api.Check {
	repo, err := d.Git.Discover(ctx, dir)
	if err != nil {
		e := agency.AsError(err)
		return api.Check{Name: "repository", Level: levelNote, Text: e.Message, Fix: e.Hint}
	}
	return api.Check{Name: "repository", Level: levelOK, Text: repo.Root}
}

func (d *Doctor) checkHome(ctx context.Context) api.Check {
	probe, err := os.CreateTemp(d.Daemon.Config.Home, ".doctor-*")
	if err == nil {
		_, err = probe.Write(make([]byte, probeBytes)) // on a full disk, an empty file can still be written
		_, _ = probe.Close(), os.Remove(probe.Name())
	}
	if err != nil {
		return api.Check{Name: "data root", Level: levelError, Text: err.Error(), Fix: "make room in " + d.Daemon.Config.Home + ", or set AGENCY_HOME to another folder"}
	}
	if err := d.Room(); err != nil {
		e := agency.AsError(err)
		return api.Check{Name: "data root", Level: levelWarning, Text: e.Message + "; no run is made", Fix: e.Hint}
	}
	return api.Check{Name: "data root", Level: levelOK, Text: d.Daemon.Config.Home + ": " + diskUse(ctx, d.Daemon.Config.Home)}
}

// diskTime is how long the doctor counts what is on the disk.
const diskTime = 5 * time.Second

// diskUse returns in words what a data root takes on the disk.
func diskUse(ctx context.Context, home string) string {
	ctx, cancel := context.WithTimeout(ctx, diskTime)
	defer cancel()
	worktrees, cut := file.Usage(ctx, filepath.Join(home, "worktrees"))
	all, cutToo := file.Usage(ctx, home)
	if cut != nil || cutToo != nil {
		return "more than " + plain.ByteSize(max(all, worktrees)) + " of files"
	}
	return plain.ByteSize(all-worktrees) + ", and worktrees of " + plain.ByteSize(worktrees)
}

func (d *Doctor) checkDaemon() api.Check {
	up := duration.Short(d.Elapsed(d.Daemon.Started))
	text := fmt.Sprintf("pid %d, version %s, up %s, live runs: %d", os.Getpid(), d.Daemon.Version, up, d.Runs.LiveRuns())
	if note := d.Daemon.Config.SocketNote; note != "" {
		return api.Check{Name: "daemon", Level: levelNote, Text: text + "; " + note}
	}
	return api.Check{Name: "daemon", Level: levelOK, Text: text}
}

// checkActive checks the configuration that the daemon uses now.
func (d *Doctor) checkActive() api.Check {
	s := d.State()
	check := api.Check{Name: "daemon config", Level: levelOK, Text: "up to date"}
	switch {
	case s.Problem != "":
		check.Level, check.Text, check.Fix = levelError, "the previous one is still used: "+s.Problem, "agency config check"
	case len(s.NeedsRestart) > 0:
		check.Level, check.Text, check.Fix = levelWarning, "tmux.socket changed, and takes effect when the daemon starts again", "agency daemon stop && agency daemon start"
	}
	return check
}

// checkNotify names the channels that bring alerts to the user.
func checkNotify(cfg *config.Config) api.Check {
	check := api.Check{Name: "notify", Level: levelOK}
	for _, name := range slices.Sorted(maps.Keys(cfg.Notify.Channels)) {
		check.Text += ", " + name + " (" + cfg.Notify.Channels[name].Kind + ")"
	}
	check.Text = strings.TrimPrefix(check.Text, ", ")
	if check.Text == "" {
		check.Level, check.Text = levelNote, "no channel is set: alerts show in tmux and ring the bell"
		check.Fix = "agency config set notify.channels.me.kind desktop"
	}
	return check
}

// checkReserve returns a finding when no disk space is reserved for the record.
func (d *Doctor) checkReserve() []api.Check {
	err := d.Store.NoRoom()
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return nil // see docs/crash.md for systems that cannot reserve space
	}
	return []api.Check{{
		Name: "reserve", Level: levelWarning, Text: "no room on the disk is reserved for the record, which a full disk would stop: " + err.Error(),
		Fix: "make room in " + d.Daemon.Config.Home + "; it is tried again every " + duration.Short(d.Active().Watchdog.PollInterval),
	}}
}

// checkBackup checks the age of the newest backup.
func (d *Doctor) checkBackup(ctx context.Context) api.Check {
	check := api.Check{Name: "backup", Level: levelOK}
	due, err := d.Backups.Due(ctx)
	if err != nil {
		return failed("backup", err)
	}
	now := d.Now()
	switch newest, at := d.Backups.Newest(); {
	case newest != "":
		check.Text = "the newest is " + duration.Short(now.Sub(at)) + " old: " + filepath.Base(newest)
	default:
		check.Text = "none yet"
	}
	switch {
	case d.Active().DB.Backups == 0:
		check.Level, check.Text, check.Fix = levelNote, check.Text+"; none are made", "set [db] backups in "+d.Daemon.Config.Path
	case now.Sub(due) > backupLate-recovery.BackupEvery:
		check.Level, check.Fix = levelWarning, "agency daemon logs has the reason; by hand: agency db backup"
	}
	return check
}
