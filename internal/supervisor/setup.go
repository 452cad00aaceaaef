package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// stepSetup is the step, of a creation or of the first attempt that gets that far, in which the
// repository prepares a new worktree. A run without it needs no setup.
const stepSetup = "setup"

// setup is what a repository wants done in a worktree, as far as a user has trusted it.
type setup struct {
	projectFile
	hash    string // of the content that is trusted
	argv0   string // the program, as an absolute path; empty for a file of the worktree
	again   string // the command that trusts changed content
	without string // the command that starts the run without setup
	warn    func(text string)
}

// RunSetup runs a setup to its end and ends what it leaves behind. If the program fails, or is not
// done in time, it returns an error that continues the words "the setup".
type RunSetup func(ctx context.Context, c agency.SetupCommand) error

// copyLimit is the most that one entry of [worktree] copy may hold, in bytes.
const copyLimit = 1 << 30

// doSetup prepares a new worktree as the repository wants: copies and links first, then its script.
// It returns E_SETUP_FAILED when one of them fails; the worktree is then left as it is.
func (la *launcher) doSetup(ctx context.Context, l *launching) error {
	r, p := l.run, l.setup
	ctx, cancel := context.WithTimeout(ctx, p.SetupTimeout)
	defer cancel()
	// The setup ends with the daemon, because no process would wait for it.
	defer context.AfterFunc(la.life.ctx, cancel)()
	// After the first check, git's hooks and filters made these files.
	t, err := wants(p.projectFile, inWorktree(r.Worktree), r.Worktree)
	if err != nil {
		return err
	}
	if t.Hash != p.hash {
		return untrusted(&t, p.again, p.without)
	}
	if err := la.shareFiles(ctx, r, p); err != nil {
		return err
	}
	killpoint.At("setup.shared")
	if len(p.Setup) == 0 {
		return nil
	}
	argv := slices.Clone(p.Setup)
	if argv[0] = p.argv0; p.argv0 == "" {
		script, _ := setupScript(p.Setup)
		argv[0] = filepath.Join(r.Worktree, script)
		if info, err := os.Lstat(argv[0]); err == nil && info.Mode().Perm()&0o111 == 0 {
			return agency.Errorf(agency.CodeSetupFailed, "setup %s is not executable", script).
				WithHint("chmod +x %s && git commit -am \"make %s executable\"; here: chmod +x %s && agency resume %s", script, script, argv[0], r.Ref())
		}
	}
	log := filepath.Join(r.Dir, "setup.log")
	mark := makingMark(r)
	err = la.runSetup(ctx, agency.SetupCommand{
		Argv: argv, Dir: r.Worktree, Env: append(setupEnv(l, la.Home, la.Socket), mark), Mark: mark, Log: log, Timeout: p.SetupTimeout,
	})
	killpoint.At("setup.ended")
	if err != nil {
		return agency.Errorf(agency.CodeSetupFailed, "setup %w; its log is %s", err, log).
			WithHint("when it is fixed: agency resume %s; or go without: agency resume --no-setup %s", r.Ref(), r.Ref()).
			WithDetail("log", log).WithDetail("run", r.Ref()).WithDetail("worktree_path", r.Worktree)
	}
	return nil
}

// makingMark is in the environment of every process that prepares a worktree, so that a later
// daemon can end them after a crash.
func makingMark(r *agency.Run) string { return "AGENCY_MAKING=" + r.Worktree }

// setupEnv returns the runner's environment with the variables for a script, and without the token,
// because a script does not speak for the run.
func setupEnv(l *launching, home, socket string) []string {
	r := l.run
	return append(slices.Clone(l.env),
		"AGENCY_RUN_ID="+string(r.ID),
		fmt.Sprintf("AGENCY_ATTEMPT=%d", r.Attempt.Number),
		"AGENCY_HANDLE="+r.Handle,
		"AGENCY_NAME="+r.Name,
		"AGENCY_WORKTREE="+r.Worktree,
		"AGENCY_RUN_DIR="+r.Dir,
		"AGENCY_REPO_ROOT="+r.Repo.Root,
		"AGENCY_BRANCH="+r.Branch,
		"AGENCY_BASE="+r.Base,
		"AGENCY_BASE_COMMIT="+r.Commit,
		"AGENCY_HOME="+home,
		"AGENCY_SOCKET="+socket,
	)
}

// shareFiles copies and links files of the main worktree into a worktree, and makes git ignore them
// there. A file that is missing, or that the worktree already has, is a warning: most checkouts do
// not have all files that a repository lists.
func (la *launcher) shareFiles(ctx context.Context, r *agency.Run, p *setup) error {
	if len(p.Copy)+len(p.Link) == 0 {
		return nil
	}
	repo, err := la.git.Discover(ctx, r.Repo.Root)
	if err != nil {
		return err
	}
	from := repo.Toplevel
	if from == "" {
		p.warn(fmt.Sprintf("%s has no main worktree to copy from", repo.Root))
		return nil
	}
	var made []string
	share := func(verb, path string, do func(rel string) ([]string, error)) error {
		rel := filepath.Clean(path)
		skipped, err := do(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.warn(fmt.Sprintf("%s was not %s: it is not in %s", rel, verb, from))
			return nil
		case errors.Is(err, fs.ErrExist) && r.Attempt.Number > 1: // made by an earlier attempt
		case errors.Is(err, fs.ErrExist):
			p.warn(fmt.Sprintf("%s was not %s: it is in the worktree already", rel, verb))
			return nil
		case ctx.Err() != nil:
			return agency.Errorf(agency.CodeSetupFailed, "setup did not end in %s, at %s", p.SetupTimeout, rel)
		case err != nil:
			return agency.Errorf(agency.CodeSetupFailed, "setup: %s cannot be %s: %w", rel, verb, err).
				WithHint("only files and folders beneath %s can be, and no links; fix [worktree] in %s", from, agency.ProjectFile)
		}
		for _, name := range skipped {
			p.warn(fmt.Sprintf("%s was not %s: it is not a regular file", name, verb))
		}
		made = append(made, rel)
		return nil
	}
	for _, path := range p.Copy {
		if err := share("copied", path, func(rel string) ([]string, error) { return file.CopyBeneath(ctx, from, r.Worktree, rel, copyLimit) }); err != nil {
			return err
		}
	}
	for _, path := range p.Link {
		err := share("linked", path, func(rel string) ([]string, error) {
			info, err := file.StatBeneath(from, rel)
			if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				err = file.ErrNotRegular
			}
			if err != nil {
				return nil, err
			}
			return nil, file.LinkBeneath(r.Worktree, rel, filepath.Join(from, rel))
		})
		if err != nil {
			return err
		}
	}
	return la.hide(ctx, r, repo, made)
}

// hide makes git ignore paths of a worktree that it does not ignore yet.
func (la *launcher) hide(ctx context.Context, r *agency.Run, repo agency.Repo, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	ignored, err := la.git.Ignored(ctx, repo, r.Worktree, paths)
	if err != nil {
		return err
	}
	unlock, err := la.repos.lock(ctx, r.Repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	for _, path := range paths {
		if slices.Contains(ignored, path) {
			continue
		}
		if err := la.git.Exclude(repo, "/"+ignorePattern.Replace(path)); err != nil {
			return err
		}
	}
	return nil
}

// ignorePattern escapes a path so that git's ignore rules match only that path.
var ignorePattern = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `)

// planLaterSetup plans the setup of a run that never had it, and enforces the rule of one live run
// at a time. giveUp reports that the run continues without setup for good. The caller calls unlock
// when the attempt is recorded, or will not be.
func (la *launcher) planLaterSetup(ctx context.Context, repo agency.Repo, l *launching, req *ResumeRequest) (unlock func(), giveUp bool, err error) {
	r := l.run
	repo.Fingerprint = r.Repo.Fingerprint
	project, err := la.projects.read(ctx, repo, r.Commit)
	if err != nil {
		return nil, false, err
	}
	pending, err := la.projects.setupPending(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if pending && !req.NoSetup {
		l.setup, err = la.projects.planSetup(ctx, repo, project, inWorktree(r.Worktree), r.Worktree, l.env,
			"agency trust --run "+r.Ref(), "agency resume --no-setup "+r.Ref())
		if err != nil {
			return nil, false, err
		}
		if l.setup != nil {
			l.setup.warn = req.Warn
		}
	}
	unlock, err = la.projects.lockSolo(ctx, &project.Project, repo, r.ID)
	return sync.OnceFunc(unlock), pending && l.setup == nil, err
}

// linkImpossible reports whether a file system does not support links.
func linkImpossible(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, os.ErrInvalid)
}
