package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"agency"
	"agency/internal/killpoint"
)

// stepSetup is the step, of a creation or of the first attempt that gets that far, in which the
// repository prepares a new worktree. A run without it needs no setup.
const stepSetup = "setup"

// setup is what a repository wants done in a worktree, as far as a user has trusted it.
type setup struct {
	projectFile
	hash    string // of the content that is trusted
	argv0   string // the program: an absolute path, or a name in the image; empty for a file of the worktree
	again   string // the command that trusts changed content
	without string // the command that starts the run without setup
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
	if err := p.recheck(r.Worktree); err != nil {
		return err
	}
	if err := la.projects.shareFiles(ctx, sharing{r.Repo, r.Worktree, &p.Project, r.Attempt.Number > 1, l.warn}); err != nil {
		return err
	}
	killpoint.At("setup.shared")
	if len(p.Setup) == 0 {
		return nil
	}
	argv := p.argv(r.Worktree)
	if script, isFile := setupScript(p.Setup); isFile {
		if info, err := os.Lstat(argv[0]); err == nil && info.Mode().Perm()&0o111 == 0 {
			return agency.Errorf(agency.CodeSetupFailed, "setup %s is not executable", script).
				WithHint("chmod +x %s && git commit -am \"make %s executable\"; here: chmod +x %s && agency resume %s", script, script, argv[0], r.Ref())
		}
	}
	log := filepath.Join(r.Dir, setupLog)
	mark := makingMark(r.Worktree)
	run := la.runSetup
	if r.Sandbox.Level == agency.SandboxContainer {
		run = func(ctx context.Context, c agency.SetupCommand) error { return la.setupInContainer(ctx, l, c) }
	}
	err := run(ctx, agency.SetupCommand{
		Argv: argv, Dir: r.Worktree, Env: append(setupEnv(l, la.Home, la.Socket), mark), Mark: mark, Log: log, Timeout: p.SetupTimeout,
	})
	killpoint.At("setup.ended")
	if agency.IsCode(err, agency.CodeSandboxUnavailable) {
		return err
	}
	if err != nil {
		return agency.Errorf(agency.CodeSetupFailed, "setup %w; its log is %s", err, log).
			WithHint("fix it, then: agency resume %s; or go without: agency resume --no-setup %s", r.Ref(), r.Ref()).
			WithDetail("log", log).WithDetail("run", r.Ref()).WithDetail("worktree_path", r.Worktree)
	}
	return nil
}

// setupLog is the file in a run directory with the output of its setup.
const setupLog = "setup.log"

// recheck checks that the files of a worktree are those that are trusted: after the first check,
// git's hooks and filters made them.
func (p *setup) recheck(worktree string) error {
	t, err := wants(p.projectFile, inWorktree(worktree), worktree)
	if err == nil && t.Hash != p.hash {
		return untrusted(&t, p.again, p.without)
	}
	return err
}

// argv returns the command line of the setup in a worktree.
func (p *setup) argv(worktree string) []string {
	argv := slices.Clone(p.Setup)
	if argv[0] = p.argv0; p.argv0 == "" {
		script, _ := setupScript(p.Setup)
		argv[0] = filepath.Join(worktree, script)
	}
	return argv
}

// makingMark is in the environment of every process that prepares a worktree, so that a later
// daemon can end them after a crash.
func makingMark(worktree string) string { return "AGENCY_MAKING=" + worktree }

// setupEnv returns the runner's environment with the variables for a script, and without the token,
// because a script does not speak for the run.
func setupEnv(l *launching, home, socket string) []string {
	r := l.run
	return append(placeEnv(l.env, r.Worktree, r.Repo.Root, home, socket),
		"AGENCY_RUN_ID="+string(r.ID),
		fmt.Sprintf("AGENCY_ATTEMPT=%d", r.Attempt.Number),
		"AGENCY_HANDLE="+r.Handle,
		"AGENCY_NAME="+r.Name,
		"AGENCY_RUN_DIR="+r.Dir,
		"AGENCY_BRANCH="+r.Branch,
		"AGENCY_BASE="+r.Base,
		"AGENCY_BASE_COMMIT="+r.Commit,
	)
}

// placeEnv returns an environment with the variables that a script has in any worktree.
func placeEnv(env []string, worktree, root, home, socket string) []string {
	return append(slices.Clone(env), "AGENCY_WORKTREE="+worktree, "AGENCY_REPO_ROOT="+root, "AGENCY_HOME="+home, "AGENCY_SOCKET="+socket)
}

// planLaterSetup plans the setup of a run that never had it, and enforces the rule of one live run
// at a time. giveUp reports that the run continues without setup for good. The caller calls unlock
// when the attempt is recorded, or will not be.
func (pl *planner) planLaterSetup(ctx context.Context, repo agency.Repo, l *launching, req *ResumeRequest) (unlock func(), giveUp bool, err error) {
	r := l.run
	repo.Fingerprint = r.Repo.Fingerprint
	project, err := pl.projects.read(ctx, repo, r.Commit)
	if err != nil {
		return nil, false, err
	}
	pending, err := pl.projects.setupPending(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if pending && !req.NoSetup {
		l.setup, err = pl.projects.planSetup(ctx, repo, project, inWorktree(r.Worktree), preparing{
			where: r.Worktree, env: l.env, level: r.Sandbox.Level, fromSandbox: req.FromSandbox, again: "agency trust --run " + r.Ref(), without: "agency resume --no-setup " + r.Ref(),
		})
		if err != nil {
			return nil, false, err
		}
	}
	unlock, err = pl.projects.lockSolo(ctx, &project.Project, repo, r.ID)
	return sync.OnceFunc(unlock), pending && l.setup == nil, err
}

// linkImpossible reports whether a file system does not support links.
func linkImpossible(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, os.ErrInvalid)
}
