package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/git"
	"agency/internal/harness"
	"agency/internal/recovery"
	"agency/internal/runner"
)

// probeBytes is what the data root must have room for: more than a file system keeps beside a file's name.
const probeBytes = 16 << 10

// backupLate is the age of the newest backup from which the doctor warns.
const backupLate = 3 * recovery.BackupEvery

// The levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"
	levelWarning = "warning"
	levelError   = "error"
)

// doctor looks at everything that a run depends on, and for what belongs to no run. It changes nothing.
func (d *Daemon) doctor(ctx context.Context, req api.DoctorRequest) (api.DoctorResponse, error) {
	checks := []api.Check{d.checkGit(ctx), d.checkTmux(ctx)}
	cfg, err := config.Load(req.Config, req.Env)
	if err != nil {
		checks = append(checks, failed("config", err))
	} else {
		checks = append(checks, checkConfig(cfg))
		checks = append(checks, checkRunners(ctx, cfg, req)...)
	}
	checks = append(checks, d.checkRepo(ctx, req.Dir), d.checkHome(), d.checkBackup(ctx), d.checkSelf(), d.checkActive())
	checks = append(checks, d.checkReserve()...)
	checks = append(checks, d.checkScreens()...)
	checks = append(checks, d.checkFiles()...)
	events, err := d.checkEvents(ctx)
	if err != nil {
		return api.DoctorResponse{}, err
	}
	checks = append(checks, events)
	orphans, err := d.orphans(ctx)
	if err != nil {
		return api.DoctorResponse{}, err
	}
	return api.DoctorResponse{Checks: append(checks, orphans...)}, nil
}

func failed(name string, err error) api.Check {
	e := agency.AsError(err)
	return api.Check{Name: name, Level: levelError, Text: e.Message, Fix: e.Hint}
}

// checkFiles tells of the sessions whose status files are behind.
func (d *Daemon) checkFiles() []api.Check {
	checks := []api.Check{}
	failures := d.files.Failures()
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		checks = append(checks, api.Check{
			Name: "status files", Level: levelWarning, Text: fmt.Sprintf("those of session %s are behind: %s", id, failures[id]),
			Fix: "make the way to its folder free of links and writable; it is tried again: agency session show " + string(id) + " --path",
		})
	}
	return checks
}

// checkScreens reads the user's own patterns for terminals, where there are any.
func (d *Daemon) checkScreens() []api.Check {
	checks := []api.Check{}
	paths, _ := filepath.Glob(screenFile(d.screens(), "*")) // its one error is for a bad pattern
	for _, path := range paths {
		c := api.Check{Name: "patterns", Level: levelOK, Text: path}
		if _, err := ownPatterns(d.screens(), strings.TrimSuffix(filepath.Base(path), ".toml")); err != nil {
			c.Level, c.Text, c.Fix = levelError, err.Error(), "docs/agents.md says what such a file holds"
		}
		checks = append(checks, c)
	}
	return checks
}

func (d *Daemon) checkGit(ctx context.Context) api.Check {
	version, err := d.git.Version(ctx)
	if err != nil {
		return failed("git", err)
	}
	return api.Check{Name: "git", Level: levelOK, Text: version}
}

func (d *Daemon) checkTmux(ctx context.Context) api.Check {
	version, err := d.tmux.Version(ctx)
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

func checkRunners(ctx context.Context, cfg *config.Config, req api.DoctorRequest) []api.Check {
	checks := []api.Check{}
	check := func(name string, kind agency.RunnerKind, exec string) {
		path, err := harness.FindExec(agency.Runner{Kind: kind, Name: name}, exec, req.Dir, req.Env)
		if err != nil {
			level := levelNote
			if name == cfg.Defaults.Runner {
				level = levelWarning
			}
			e := agency.AsError(err)
			checks = append(checks, api.Check{Name: "runner " + name, Level: level, Text: e.Message, Fix: e.Hint})
			return
		}
		checks = append(checks, versionCheck(name, kind, path, harness.Version(ctx, kind, path)))
	}
	for _, kind := range harness.Kinds() {
		check(string(kind), kind, cfg.Runners[kind].Exec)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Custom)) {
		check(name, agency.Custom, cfg.Custom[name].Exec)
	}
	return checks
}

func (d *Daemon) checkRepo(ctx context.Context, dir string) api.Check {
	repo, err := d.git.Discover(ctx, dir)
	if err != nil {
		e := agency.AsError(err)
		return api.Check{Name: "repository", Level: levelNote, Text: e.Message, Fix: e.Hint}
	}
	return api.Check{Name: "repository", Level: levelOK, Text: repo.Root}
}

func (d *Daemon) checkHome() api.Check {
	probe, err := os.CreateTemp(d.Config.Home, ".doctor-*")
	if err == nil {
		_, err = probe.Write(make([]byte, probeBytes)) // an empty file has room on a full disk, too
		_, _ = probe.Close(), os.Remove(probe.Name())
	}
	if err != nil {
		return api.Check{Name: "data root", Level: levelError, Text: err.Error(), Fix: "make room in " + d.Config.Home + ", or set AGENCY_HOME to another folder"}
	}
	if err := d.checkRoom(); err != nil {
		e := agency.AsError(err)
		return api.Check{Name: "data root", Level: levelWarning, Text: e.Message + "; no run is made", Fix: e.Hint}
	}
	return api.Check{Name: "data root", Level: levelOK, Text: d.Config.Home}
}

func (d *Daemon) checkSelf() api.Check {
	text := fmt.Sprintf("pid %d, version %s, up %s, live runs: %d", os.Getpid(), d.Version, agency.ShortDuration(d.clock.Elapsed(d.started)), d.sup.LiveRuns())
	if d.Config.SocketNote != "" {
		return api.Check{Name: "daemon", Level: levelNote, Text: text + "; " + d.Config.SocketNote}
	}
	return api.Check{Name: "daemon", Level: levelOK, Text: text}
}

// orphans are sessions, worktrees, run directories and processes that no row of the record knows, or that should be gone.
func (d *Daemon) orphans(ctx context.Context) ([]api.Check, error) {
	runs, err := d.store.Runs(ctx, agency.Filter{Removed: true})
	if err != nil {
		return nil, err
	}
	present, known := map[string]bool{}, map[string]bool{}
	for i := range runs {
		known[string(runs[i].ID)] = true
		present[string(runs[i].ID)] = runs[i].RemovedAt == nil
	}
	checks := []api.Check{}
	orphan := func(kind, place, fix string) {
		checks = append(checks, api.Check{Name: "orphan " + kind, Level: levelWarning, Text: place, Fix: fix})
	}
	sessions, err := d.tmux.Sessions(ctx)
	if err != nil && !agency.IsCode(err, agency.CodeTmuxNotFound) {
		checks = append(checks, failed("tmux sessions", err))
	}
	for _, name := range sessions {
		id := strings.TrimPrefix(name, agency.SessionPrefix)
		_, err := os.Lstat(filepath.Join(d.Config.Home, "runs", id))
		// Other data roots may share the tmux server: their sessions are none of ours.
		if ours := known[id] || err == nil; ours && !present[id] {
			orphan("session", name, tmuxCommand(d.Config.Tmux.Socket)+" kill-session -t ="+name)
		}
	}
	worktrees, _ := filepath.Glob(filepath.Join(d.Config.Home, "worktrees", "*", "*"))
	for _, path := range worktrees {
		if id, _, _ := strings.Cut(filepath.Base(path), "."); known[id] && !present[filepath.Base(path)] {
			orphan("worktree", path, "agency rm "+id) // what a removal has left
		} else if !known[id] {
			fix := d.removing(ctx, runs, path)
			orphan("worktree", path, fix)
		}
	}
	for i := range runs {
		r := &runs[i]
		if _, err := os.Lstat(r.Worktree); r.RemovedAt == nil || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if left, err := d.git.Leftover(r.Repo, r.Worktree); err == nil && left {
			orphan("worktree", r.Worktree+" in "+r.Repo.Root, "agency rm "+string(r.ID))
		}
	}
	d.orphanBranches(ctx, runs, orphan)
	dirs, _ := filepath.Glob(filepath.Join(d.Config.Home, "runs", "*"))
	for _, path := range dirs {
		if known[filepath.Base(path)] {
			continue
		}
		fix := "rm -r -- " + agency.ShellWord(path)
		if recovery.IsRun(path) { // as after a restore of a backup that is older than the run
			fix = "agency daemon stop && agency db rebuild"
		}
		orphan("run directory", path, fix)
	}
	processes, notes := d.checkProcesses(runs)
	if checks = append(checks, processes...); len(checks) == 0 {
		checks = append(checks, api.Check{Name: "orphans", Level: levelOK, Text: "none"})
	}
	return append(checks, notes...), nil
}

// removing is the command that removes a worktree which no run has. Git refuses where it holds work; it is asked from the repository
// that knows the worktree, since what the worktree's own .git leads to was an agent's choice.
func (d *Daemon) removing(ctx context.Context, runs []agency.Run, path string) string {
	asked := map[string]bool{}
	for i := range runs {
		repo := runs[i].Repo
		if asked[repo.CommonDir] {
			continue
		}
		asked[repo.CommonDir] = true
		if at, err := d.git.Worktree(ctx, repo, path); err == nil && at == path {
			return "git -C " + agency.ShellWord(repo.Root) + " worktree remove -- " + agency.ShellWord(path)
		}
	}
	return "rm -r -- " + agency.ShellWord(path)
}

// orphanBranches looks in every repository that has runs for branches below agency/ that no run made and for locks that a
// git left, and for locks of repositories that the record does not know.
func (d *Daemon) orphanBranches(ctx context.Context, runs []agency.Run, orphan func(kind, place, fix string)) {
	made, repos := map[string]bool{}, map[string]agency.Repo{} // a clone has the branches of the original
	for i := range runs {
		r := &runs[i]
		made[r.Branch] = true
		repos[r.Repo.Fingerprint] = r.Repo
	}
	for fingerprint, known := range repos {
		repo, err := d.git.Discover(ctx, known.Root)
		if err != nil || repo.Fingerprint != fingerprint {
			continue // it was moved or removed; its runs say so
		}
		branches, err := d.git.Branches(ctx, repo, "agency/")
		if err != nil {
			continue
		}
		for _, branch := range branches {
			if !made[branch] && !strings.HasPrefix(branch, "agency/restored-") {
				orphan("branch", branch+" in "+repo.Root, "git -C "+agency.ShellWord(repo.Root)+" branch -d -- "+agency.ShellWord(branch)) // refuses where it holds work
			}
		}
		for _, lock := range d.leftLocks(repo, runs) {
			orphan("git lock", lock.Path+", left "+agency.ShortDuration(d.clock.Now().Sub(lock.At))+" ago by a git that was killed", "rm -- "+agency.ShellWord(lock.Path))
		}
	}
	locks, _ := filepath.Glob(filepath.Join(d.Config.Home, "locks", "*.lock"))
	for _, path := range locks {
		// A repository may have no runs: only sessions of somebody else's agents, or trust.
		if repo, err := d.store.Repo(ctx, strings.TrimSuffix(filepath.Base(path), ".lock")); err == nil && repo == nil {
			orphan("lock", path, "rm -- "+agency.ShellWord(path))
		}
	}
}

// leftLocks are the lock files of git in a repository that no git holds: they were there before and after a moment in
// which no git was at work in the repository or in a worktree of its runs.
func (d *Daemon) leftLocks(repo agency.Repo, runs []agency.Run) []git.Lock {
	branches, worktrees := []string{}, []string{}
	for i := range runs {
		if r := &runs[i]; r.Repo.Fingerprint == repo.Fingerprint {
			branches, worktrees = append(branches, r.Branch), append(worktrees, r.Worktree)
		}
	}
	before, err := d.git.Locks(repo, branches, worktrees)
	if err != nil || len(before) == 0 {
		return nil
	}
	if busy, err := runner.Busy("git", append(worktrees, repo.Root, repo.CommonDir)); err != nil || busy {
		return nil
	}
	after, err := d.git.Locks(repo, branches, worktrees)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(after, func(l git.Lock) bool { return !slices.Contains(before, l) })
}

func tmuxCommand(socket string) string {
	switch {
	case socket == "":
		return "tmux"
	case filepath.IsAbs(socket):
		return "tmux -S " + agency.ShellWord(socket)
	default:
		return "tmux -L " + agency.ShellWord(socket)
	}
}

// checkBackup is what the doctor says of the backups.
func (d *Daemon) checkBackup(ctx context.Context) api.Check {
	check := api.Check{Name: "backup", Level: levelOK}
	due, err := d.backups.Due(ctx)
	if err != nil {
		return failed("backup", err)
	}
	now := d.clock.Now()
	switch newest, at := d.backups.Newest(); {
	case newest != "":
		check.Text = "the newest is " + agency.ShortDuration(now.Sub(at)) + " old: " + newest
	default:
		check.Text = "none yet"
	}
	switch {
	case d.active.config().DB.Backups == 0:
		check.Level, check.Text, check.Fix = levelNote, check.Text+"; none are made", "set [db] backups in "+d.Config.Path
	case now.Sub(due) > backupLate-recovery.BackupEvery:
		check.Level, check.Fix = levelWarning, "agency daemon logs says why; by hand: agency db backup"
	}
	return check
}
