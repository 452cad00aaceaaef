package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// CheckPlan is what a repository wants run before work lands in a branch: what the newest commit of
// that branch lists, if the user trusts it.
type CheckPlan struct {
	Project agency.Project // its Checks are the plan
	Target  string         // the branch
	// Guarded are patterns of the files that decide what runs: git's globs. A change of them needs
	// the approval of the user.
	Guarded []string

	hash string // of what is trusted
}

// PlanChecks reads the checks of a branch, at its newest commit. Without checks the error is
// E_NO_CHECKS, and without trust E_TRUST_REQUIRED.
func (ps *Projects) PlanChecks(ctx context.Context, repo agency.Repo, target, commit string) (*CheckPlan, error) {
	p, err := ps.atCommit(ctx, repo, commit)
	if err != nil {
		return nil, err
	}
	if len(p.Checks) == 0 {
		return nil, agency.Errorf(agency.CodeNoChecks, "%s of %s lists no checks", agency.ProjectFile, target).
			WithHint("add one and commit it on %s: [[check]] name = \"test\", run = [\"make\", \"test\"]", target)
	}
	read := ps.inCommit(ctx, repo, commit)
	files, err := checkFiles(p, read)
	if err != nil {
		return nil, err
	}
	t := agency.SetupTrust{
		Hash: trustHash(p.data, files), Setup: orEmpty(p.Setup), Copy: orEmpty(p.Copy), Link: orEmpty(p.Link),
		Checks: checkLines(&p.Project), Files: files,
	}
	if err := ps.decide(ctx, repo, &t, t.Hash); err != nil {
		return nil, err
	}
	if !t.Trusted {
		return nil, untrustedChecks(&t, target)
	}
	// With attributes, git writes another file than the one that is in the commit.
	plan := &CheckPlan{Project: p.Project, Target: target, Guarded: []string{agency.ProjectFile, "**/.gitattributes"}, hash: t.Hash}
	for _, f := range files {
		plan.Guarded = append(plan.Guarded, globLiteral.Replace(f.Path))
	}
	for i := range p.Checks {
		check := &p.Checks[i]
		if script, isFile := setupScript(check.Run); isFile && !slices.ContainsFunc(files, func(f agency.SetupFile) bool { return f.Path == script }) {
			missing := agency.Errorf(agency.CodeSetupFailed, "the check %s runs %s, which is not in %s", check.Name, script, target)
			if words := strings.Fields(script); len(words) > 1 {
				return nil, missing.WithHint(`a text names a file; a program with arguments is a list: run = ["%s"]`, strings.Join(words, `", "`))
			}
			return nil, missing.WithHint("write it, make it executable and commit it on %s", target)
		}
		plan.Guarded = append(plan.Guarded, check.Files...)
	}
	return plan, nil
}

// globLiteral escapes a path so that git's globs match only that path.
var globLiteral = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// untrustedChecks is the error for checks that the user does not trust.
func untrustedChecks(t *agency.SetupTrust, target string) *agency.Error {
	again := "agency trust --target " + plain.ShellWord(target)
	return agency.Errorf(agency.CodeTrustRequired, "before work lands in %s, the repository wants to run %s, %s", target, strings.Join(t.Checks, "; "), untrustedReason(t)).
		WithHint("look: %s --show; allow it: %s", again, again).
		WithDetail("hash", t.Hash).WithDetail("checks", t.Checks).WithDetail("setup", t.Setup).WithDetail("copy", t.Copy).WithDetail("link", t.Link).
		WithDetail("files", t.Files)
}

// Preparing is where and how Prepare works.
type Preparing struct {
	Repo     agency.Repo // as recorded
	Worktree string
	Env      []string // of the setup, complete
	Mark     string   // the entry of Env that distinguishes its processes
	Log      string   // file of the output of the setup
	CheckOut func() error
	Run      RunSetup
	Warn     func(text string)
}

// Prepare checks out what is to be checked, and does in the worktree what the plan's repository
// wants done before its checks: copies, links, and the setup. The copies of an earlier time are
// replaced. A setup that fails is E_SETUP_FAILED.
func (ps *Projects) Prepare(ctx context.Context, plan *CheckPlan, at Preparing) error {
	p := &plan.Project
	if err := removeCopies(at.Worktree, p.Copy); err != nil {
		return err
	}
	if err := at.CheckOut(); err != nil { // also brings back what git has in the place of a copy
		return err
	}
	if err := ps.shareFiles(ctx, sharing{at.Repo, at.Worktree, p, true, at.Warn}); err != nil {
		return err
	}
	killpoint.At("checks.shared")
	if len(p.Setup) == 0 {
		return nil
	}
	argv, err := FindProgram(p.Setup, at.Worktree, at.Env)
	if err == nil {
		err = at.Run(ctx, agency.SetupCommand{Argv: argv, Dir: at.Worktree, Env: at.Env, Mark: at.Mark, Log: at.Log, Timeout: p.SetupTimeout})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return agency.Errorf(agency.CodeSetupFailed, "setup %w; its log is %s", err, at.Log).WithDetail("log", at.Log)
	}
	return nil
}

// removeCopies removes the files of an earlier Prepare, so that they are copied anew. It follows no
// link out of the worktree.
func removeCopies(worktree string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	root, err := os.OpenRoot(worktree)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, path := range paths {
		if err := root.RemoveAll(filepath.Clean(path)); err != nil {
			return fmt.Errorf("remove the copy of %s in %s: %w", path, worktree, err)
		}
	}
	return nil
}

// FindProgram returns a command line of a project with its program as an absolute path: a file of
// the worktree, or a program in the PATH of env.
func FindProgram(command []string, worktree string, env []string) ([]string, error) {
	argv := slices.Clone(command)
	if script, isFile := setupScript(command); isFile {
		argv[0] = filepath.Join(worktree, script)
		info, err := file.StatBeneath(worktree, script)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot be started: %s: %w", script, file.Cause(err))
		case info.Mode().Perm()&0o111 == 0:
			return nil, fmt.Errorf("cannot be started: %s is not executable", script)
		}
		return argv, nil
	}
	program, found := file.FindProgram(agency.Environ(env).Lookup("PATH"), command[0])
	if !found {
		return nil, fmt.Errorf("cannot be started: there is no %s in PATH", command[0])
	}
	argv[0] = program
	return argv, nil
}
