package doctor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/duration"
	"agency/internal/git"
	"agency/internal/plain"
	"agency/internal/recovery"
	"agency/internal/runner"
)

// orphans finds tmux sessions, worktrees, run directories, containers and processes that the record
// does not know, or that should be gone.
func (d *Doctor) orphans(ctx context.Context, env agency.Environ) ([]api.Check, error) {
	runs, err := d.Store.Runs(ctx, agency.Filter{Removed: true})
	if err != nil {
		return nil, err
	}
	present, known := map[string]bool{}, map[string]bool{}
	for i := range runs {
		known[string(runs[i].ID)] = true
		present[string(runs[i].ID)] = runs[i].RemovedAt == nil
	}
	lost := d.lostRuns(known)
	checks := []api.Check{}
	orphan := func(kind, place, fix string) {
		checks = append(checks, api.Check{Name: "orphan " + kind, Level: levelWarning, Text: place, Fix: fix})
	}
	if err := d.orphanSessions(ctx, known, present, lost, orphan); err != nil {
		checks = append(checks, failed("tmux sessions", err))
	}
	d.orphanWorktrees(ctx, runs, lost, orphan)
	d.orphanBranches(ctx, append(slices.Collect(maps.Values(lost)), runs...), orphan)
	d.orphanFolders(known, lost, orphan)
	d.containers(ctx, env, runs, lost, orphan)
	processes, notes := d.checkProcesses(runs)
	if checks = append(checks, processes...); len(checks) == 0 {
		checks = append(checks, api.Check{Name: "orphans", Level: levelOK, Text: "none"})
	}
	return append(checks, notes...), nil
}

// rebuild is the fix for what the record does not know, as after a restore of an older backup.
const rebuild = "agency daemon stop && agency db rebuild"

// lostRuns returns the runs that only their folders record, by id. They may be live, so the doctor
// names no command that removes their sessions, worktrees, branches or containers: the fix for the
// folder brings them back.
func (d *Doctor) lostRuns(known map[string]bool) map[string]agency.Run {
	lost := map[string]agency.Run{}
	dirs, _ := filepath.Glob(filepath.Join(d.Daemon.Config.Home, "runs", "*"))
	for _, dir := range dirs {
		if id := filepath.Base(dir); !known[id] {
			if r, err := recovery.ReadRun(dir); err == nil {
				lost[id] = *r
			}
		}
	}
	return lost
}

// orphanSessions finds sessions of runs that are removed, or that only have a folder without the record
// of a run.
func (d *Doctor) orphanSessions(ctx context.Context, known, present map[string]bool, lost map[string]agency.Run, orphan func(kind, place, fix string)) error {
	sessions, err := d.Tmux.Sessions(ctx)
	if agency.IsCode(err, agency.CodeTmuxNotFound) {
		return nil
	}
	for _, name := range sessions {
		id := strings.TrimPrefix(name, agency.SessionPrefix)
		_, err := os.Lstat(filepath.Join(d.Daemon.Config.Home, "runs", id))
		// Other data roots may share the tmux server: their sessions are not this one's.
		_, isLost := lost[id]
		if ours := known[id] || err == nil; ours && !present[id] && !isLost {
			orphan("session", name, tmuxCommand(d.Daemon.Config.Tmux.Socket)+" kill-session -t ="+name)
		}
	}
	return err
}

// orphanWorktrees finds worktrees that belong to no run, and what an interrupted removal left of
// one.
func (d *Doctor) orphanWorktrees(ctx context.Context, runs []agency.Run, lost map[string]agency.Run, orphan func(kind, place, fix string)) {
	worktreeOf := map[string]*agency.Run{} // by the name of the folder
	for i := range runs {
		worktreeOf[filepath.Base(runs[i].Worktree)] = &runs[i]
	}
	ofLost := map[string]bool{}
	for _, r := range lost {
		ofLost[filepath.Base(r.Worktree)] = true
	}
	worktrees, _ := filepath.Glob(filepath.Join(d.Daemon.Config.Home, "worktrees", "*", "*"))
	standbys := d.Standbys()
	for _, path := range worktrees {
		name, rest, _ := strings.Cut(filepath.Base(path), ".")
		switch r := worktreeOf[name]; {
		case slices.ContainsFunc(standbys, func(s agency.Standby) bool { return s.ID == name }), ofLost[name]:
		case r == nil:
			orphan("worktree", path, d.removing(ctx, runs, path))
		case r.RemovedAt != nil || rest != "":
			orphan("worktree", path, "agency rm "+string(r.ID)) // a leftover of a removal
		}
	}
	for i := range runs {
		r := &runs[i]
		if _, err := os.Lstat(r.Worktree); r.RemovedAt == nil || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if left, err := d.Git.Leftover(r.Repo, r.Worktree); err == nil && left {
			orphan("worktree", r.Worktree+" in "+r.Repo.Root, "agency rm "+string(r.ID))
		}
	}
}

// orphanFolders finds folders of runs that the record does not know.
func (d *Doctor) orphanFolders(known map[string]bool, lost map[string]agency.Run, orphan func(kind, place, fix string)) {
	dirs, _ := filepath.Glob(filepath.Join(d.Daemon.Config.Home, "runs", "*"))
	for _, path := range dirs {
		id := filepath.Base(path)
		if _, isLost := lost[id]; isLost {
			orphan("run directory", path+", of a run that the record does not know", rebuild)
		} else if !known[id] {
			orphan("run directory", path, "rm -r -- "+plain.ShellWord(path))
		}
	}
}

// removing returns the command that removes a worktree which belongs to no run. Git refuses when
// the worktree holds work. The command names the repository that knows the worktree, since an agent
// can change where the worktree's own .git points. While git fails in a repository, the worktree may
// belong to it: then removing returns what the user must mend first.
func (d *Doctor) removing(ctx context.Context, runs []agency.Run, path string) string {
	asked, failing := map[string]bool{}, ""
	for i := range runs {
		repo := runs[i].Repo
		if asked[repo.CommonDir] {
			continue
		}
		asked[repo.CommonDir] = true
		git := "git -C " + plain.ShellWord(repo.Root) + " worktree "
		at, err := d.Git.Worktree(ctx, repo, path)
		if err == nil && at == path {
			return git + "remove -- " + plain.ShellWord(path)
		}
		if _, gone := os.Lstat(repo.CommonDir); err != nil && !errors.Is(gone, fs.ErrNotExist) {
			failing = git + "list"
		}
	}
	if failing != "" {
		return "mend what this prints: " + failing + "; then: agency doctor"
	}
	return "rm -r -- " + plain.ShellWord(path)
}

// orphanBranches finds branches below agency/ that no run made, and locks that git left, in every
// repository with runs. It also finds the locks of repositories that the record does not know.
func (d *Doctor) orphanBranches(ctx context.Context, runs []agency.Run, orphan func(kind, place, fix string)) {
	made, repos := map[string]bool{}, map[string]agency.Repo{} // a clone has the branches of the original
	for i := range runs {
		r := &runs[i]
		made[r.Branch] = true
		repos[r.Repo.Fingerprint] = r.Repo
	}
	for fingerprint, known := range repos {
		repo, err := d.Git.Discover(ctx, known.Root)
		if err != nil || repo.Fingerprint != fingerprint {
			continue // it was moved or removed; other findings report that
		}
		branches, err := d.Git.Branches(ctx, repo, "agency/")
		if err != nil {
			continue
		}
		for _, branch := range branches {
			if !made[branch] && !strings.HasPrefix(branch, restored) {
				text, fix := d.orphanBranch(ctx, repo, branch)
				orphan("branch", text, fix)
			}
		}
		for _, lock := range d.leftLocks(ctx, repo, runs) {
			text := lock.Path + ", left " + duration.Short(d.Now().Sub(lock.At)) + " ago by a git that was killed"
			if lock.Worktree != "" && !slices.ContainsFunc(runs, func(r agency.Run) bool { return r.Worktree == lock.Worktree }) {
				text += "; in your checkout " + lock.Worktree + ", first close what may hold it, as an editor of a commit"
			}
			orphan("git lock", text, "rm -- "+plain.ShellWord(lock.Path))
		}
	}
	locks, _ := filepath.Glob(filepath.Join(d.Daemon.Config.Home, "locks", "*.lock"))
	for _, path := range locks {
		// A repository may have no runs: only trust, or sessions with the agents of another
		// program.
		if repo, err := d.Store.Repo(ctx, strings.TrimSuffix(filepath.Base(path), ".lock")); err == nil && repo == nil {
			orphan("lock", path, "rm -- "+plain.ShellWord(path))
		}
	}
}

// orphanBranch returns the finding about a branch that no run made, and a command that loses no
// work: a branch with commits that no other branch has gets a name that agency leaves alone.
func (d *Doctor) orphanBranch(ctx context.Context, repo agency.Repo, branch string) (text, fix string) {
	text, git := branch+" in "+repo.Root, "git -C "+plain.ShellWord(repo.Root)+" branch "
	if work, err := d.Git.Unmerged(ctx, repo, branch, "HEAD"); err == nil && work {
		kept := restored + strings.ReplaceAll(strings.TrimPrefix(branch, "agency/"), "/", "-")
		return text + ", with commits that no other branch has", git + "-m -- " + plain.ShellWord(branch) + " " + plain.ShellWord(kept)
	}
	return text, git + "-d -- " + plain.ShellWord(branch) // git refuses where the branch holds work
}

// restored is the beginning of the names of branches that belong to the user: agency reports none
// of them.
const restored = "agency/restored-"

// leftLocks returns the lock files in a repository that no git process holds. They existed before
// and after a moment in which no git process worked in the repository, in a worktree of its runs or
// in one where they landed.
func (d *Doctor) leftLocks(ctx context.Context, repo agency.Repo, runs []agency.Run) []git.Lock {
	ofBranches, ofWorktrees := map[string]bool{}, map[string]bool{repo.Root: true}
	for i := range runs {
		r := &runs[i]
		if r.Repo.Fingerprint != repo.Fingerprint {
			continue
		}
		ofBranches[r.Branch], ofWorktrees[r.Worktree] = true, true
		landings, err := d.Store.Landings(ctx, r.ID)
		if err != nil {
			return nil
		}
		for i := range landings {
			ofBranches[landings[i].Target] = true
			if at := landings[i].Worktree; at != "" {
				ofWorktrees[at] = true
			}
		}
	}
	branches, worktrees := slices.Sorted(maps.Keys(ofBranches)), slices.Sorted(maps.Keys(ofWorktrees))
	before, err := d.Git.Locks(repo, branches, worktrees)
	if err != nil || len(before) == 0 {
		return nil
	}
	if busy, err := runner.Busy("git", append(worktrees, repo.CommonDir)); err != nil || busy {
		return nil
	}
	after, err := d.Git.Locks(repo, branches, worktrees)
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
		return "tmux -S " + plain.ShellWord(socket)
	default:
		return "tmux -L " + plain.ShellWord(socket)
	}
}
