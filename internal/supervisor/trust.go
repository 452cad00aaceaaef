package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"agency"
	"agency/internal/file"
)

// decide sets whether the user trusts what a project wants, which means all of the hashes.
func (ps *Projects) decide(ctx context.Context, repo agency.Repo, t *agency.SetupTrust, hashes ...string) error {
	if len(hashes) == 0 || repo.Fingerprint == "" {
		return nil
	}
	t.Trusted, t.Changed = true, false
	for _, hash := range hashes {
		trusted, earlier, err := ps.store.Trusts(ctx, repo.Fingerprint, hash)
		if err != nil {
			return err
		}
		t.Trusted = t.Trusted && trusted
		t.Changed = t.Changed || earlier && !trusted
	}
	return nil
}

// Trust returns what a repository wants done in new worktrees, and as checks, and whether that is
// trusted.
func (ps *Projects) Trust(ctx context.Context, req TrustRequest) (agency.Repo, agency.SetupTrust, error) {
	repo, t, _, err := ps.trust(ctx, req)
	return repo, t, err
}

// trust is Trust. It also returns the hashes that are trusted one by one: of the setup, and of the
// checks.
func (ps *Projects) trust(ctx context.Context, req TrustRequest) (agency.Repo, agency.SetupTrust, []string, error) {
	switch {
	case req.Run != "":
		repo, t, err := ps.trustOfRun(ctx, req.Run)
		return repo, t, hashesOf(t.Hash), err
	case req.Target != "":
		return ps.trustOfTarget(ctx, req)
	}
	repo, err := ps.git.Discover(ctx, req.Dir)
	fail := func(err error) (agency.Repo, agency.SetupTrust, []string, error) {
		return repo, agency.SetupTrust{}, nil, err
	}
	if err != nil {
		return fail(err)
	}
	commit := ""
	if repo.Toplevel == "" {
		if commit, err = ps.git.ResolveCommit(ctx, req.Dir, req.Base); err != nil {
			return fail(err)
		}
	}
	p, err := ps.read(ctx, repo, commit)
	if err != nil {
		return fail(err)
	}
	req.Base = cmp.Or(req.Base, p.Base, req.Default)
	commit, err = ps.git.ResolveCommit(ctx, req.Dir, req.Base)
	if err != nil && !agency.IsCode(err, agency.CodeEmptyRepo) {
		return fail(err)
	}
	read := func(path string) (data []byte, found bool, err error) {
		if commit != "" {
			data, found, err = ps.git.File(ctx, repo, commit, path, setupFileLimit)
		}
		if err == nil && !found && repo.Toplevel != "" {
			data, found, err = inWorktree(repo.Toplevel)(path) // not committed yet
		}
		return data, found, err
	}
	t, err := wants(p, read, repo.Root)
	if err != nil {
		return repo, t, nil, err
	}
	t.Problem = ps.setupProblem(ctx, repo, commit, p.Setup)
	hashes, err := addChecks(&t, p, read)
	if err != nil {
		return repo, t, nil, err
	}
	hashes = ps.addImage(ctx, &t, repo, commit, p, read, hashes)
	return repo, t, hashes, ps.decide(ctx, repo, &t, hashes...)
}

// SetupProblem returns why a setup could not succeed in the worktree of a run that starts from
// base, and what to do about it; empty when it knows no reason.
func (ps *Projects) SetupProblem(ctx context.Context, repo agency.Repo, base string, setup []string) string {
	commit, err := ps.git.ResolveCommit(ctx, repo.Toplevel, base)
	if err != nil {
		commit = "" // the repository has no commit yet
	}
	return ps.setupProblem(ctx, repo, commit, setup)
}

// setupProblem checks the file that a setup runs: first in the commit, as a worktree would get it,
// then in the checkout.
func (ps *Projects) setupProblem(ctx context.Context, repo agency.Repo, commit string, setup []string) string {
	script, isFile := setupScript(setup)
	if !isFile {
		return ""
	}
	if commit != "" {
		found, runs, err := ps.git.Executable(ctx, repo, commit, script)
		switch {
		case err != nil || runs:
			return ""
		case found:
			return fmt.Sprintf("%s is not executable in the commit that runs start from: chmod +x %s && git add %s && git commit -m \"make %s executable\"", script, script, script, script)
		}
	}
	info, err := file.StatBeneath(repo.Toplevel, script)
	switch {
	case repo.Toplevel == "" || errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s is not there: write it, then chmod +x %s && git add %s && git commit", script, script, script)
	case err != nil:
		return ""
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Sprintf("%s is neither executable nor committed: chmod +x %s && git add %s && git commit", script, script, script)
	default:
		return fmt.Sprintf("%s is not committed, so new worktrees do not have it: git add %s && git commit", script, script)
	}
}

// CheckSetup returns the error with which a run of a spec would be refused because its setup, or the
// image that is built for it, is missing or not trusted. The run would begin in the repository of dir,
// from a commit that the base of the spec names.
func (ps *Projects) CheckSetup(ctx context.Context, dir string, spec *agency.Spec, commit string, env []string) error {
	repo, err := ps.git.Discover(ctx, dir)
	if err != nil {
		return err
	}
	p, err := ps.read(ctx, repo, commit)
	if err != nil {
		return err
	}
	again := trustCommand(spec.BaseRef, p.Base)
	_, err = ps.planSetup(ctx, repo, p, ps.inCommit(ctx, repo, commit), preparing{
		where: fmt.Sprintf("the commit %.12s (%s)", commit, spec.BaseRef), env: env, level: spec.Sandbox, again: again,
	})
	if err == nil && p.BuildsImage(spec) {
		err = ps.checkImage(ctx, repo, commit, p, again)
	}
	return err
}

// trustOfRun is Trust for what a resume of a run would do.
func (ps *Projects) trustOfRun(ctx context.Context, ref string) (agency.Repo, agency.SetupTrust, error) {
	r, err := ps.store.Resolve(ctx, ref)
	if err != nil {
		return agency.Repo{}, agency.SetupTrust{}, err
	}
	repo, err := ps.git.Discover(ctx, r.Repo.Root)
	if err != nil {
		return repo, agency.SetupTrust{}, err
	}
	p, err := ps.read(ctx, repo, r.Commit)
	if err != nil {
		return repo, agency.SetupTrust{}, err
	}
	t, err := wants(p, inWorktree(r.Worktree), r.Worktree)
	if err != nil {
		return repo, t, err
	}
	return repo, t, ps.decide(ctx, repo, &t, hashesOf(t.Hash)...)
}

// Grant trusts what Trust returned. hash is the content that the user saw: if it has changed since,
// Grant returns E_INVALID_STATE. With nothing to trust it does nothing.
func (ps *Projects) Grant(ctx context.Context, req TrustRequest, hash string) (agency.Repo, agency.SetupTrust, error) {
	repo, t, hashes, err := ps.trust(ctx, req)
	if err != nil {
		return repo, t, err
	}
	if t.Hash != hash {
		return repo, t, agency.Errorf(agency.CodeInvalidState, "what %s wants done in new worktrees has just changed", repo.Root).
			WithHint("look again: agency trust --show")
	}
	if t.Hash == "" || t.Trusted {
		return repo, t, nil
	}
	if err := ps.repos.identify(ctx, &repo); err != nil {
		return repo, t, err
	}
	for _, hash := range hashes {
		if err := ps.store.GrantTrust(ctx, repo, hash); err != nil {
			return repo, t, err
		}
	}
	t.Trusted, t.Changed = true, false
	return repo, t, nil
}

// Revoke revokes everything that was trusted in the repository of a folder, and returns how much
// that was.
func (ps *Projects) Revoke(ctx context.Context, dir string) (agency.Repo, int, error) {
	repo, err := ps.git.Discover(ctx, dir)
	if err != nil || repo.Fingerprint == "" {
		return repo, 0, err
	}
	revoked, err := ps.store.RevokeTrust(ctx, repo)
	return repo, revoked, err
}

// preparing is where and how a setup is to be done.
type preparing struct {
	where          string // its files, in words
	env            []string
	level          agency.SandboxLevel // of the run
	fromSandbox    bool                // an agent in a sandbox requests the run
	again, without string              // as in setup
}

// planSetup checks what the repository wants done in new worktrees before anything is created: it
// has to exist and be trusted. It returns nil when there is nothing to do.
func (ps *Projects) planSetup(ctx context.Context, repo agency.Repo, project projectFile, read reading, in preparing) (*setup, error) {
	if in.fromSandbox {
		return nil, planInside(&project.Project, in.without)
	}
	t, err := wants(project, read, in.where)
	if err != nil || t.Hash == "" {
		return nil, err
	}
	if err := ps.decide(ctx, repo, &t, t.Hash); err != nil {
		return nil, err
	}
	if !t.Trusted {
		return nil, untrusted(&t, in.again, in.without)
	}
	p := &setup{projectFile: project, hash: t.Hash, again: in.again, without: in.without}
	if _, isFile := setupScript(project.Setup); isFile || len(project.Setup) == 0 {
		return p, nil
	}
	if in.level == agency.SandboxContainer {
		p.argv0 = project.Setup[0] // it is in the image
		return p, nil
	}
	if p.argv0, err = ps.harness.FindExec(agency.Runner{Kind: agency.Custom, Name: "setup"}, project.Setup[0], in.where, in.env); err != nil {
		return nil, agency.Errorf(agency.CodeSetupFailed, "the setup cannot be run: %s", agency.AsError(err).Message).
			WithHint("install it, or go without: %s", in.without)
	}
	return p, nil
}

// setupPending reports whether a run needs a setup that was never done.
func (ps *Projects) setupPending(ctx context.Context, r *agency.Run) (bool, error) {
	pending := false
	for n := 1; n <= r.Attempt.Number; n++ {
		steps, err := ps.store.Steps(ctx, r.ID, n)
		if err != nil {
			return false, err
		}
		for _, step := range steps {
			if step.Name != stepSetup {
				continue
			}
			if step.DoneAt != nil {
				return false, nil
			}
			pending = true
		}
	}
	return pending, nil
}

// setupFileLimit is the largest file that a setup may name, in bytes.
const setupFileLimit = 1 << 20

// reading reads a file of the repository by its path there. found is false when there is none.
type reading func(path string) (data []byte, found bool, err error)

// inCommit reads files as a worktree of the commit would hold them.
func (ps *Projects) inCommit(ctx context.Context, repo agency.Repo, commit string) reading {
	return func(path string) ([]byte, bool, error) { return ps.git.File(ctx, repo, commit, path, setupFileLimit) }
}

// inWorktree reads the files that are in the worktree.
func inWorktree(root string) reading {
	return func(path string) ([]byte, bool, error) {
		info, err := file.StatBeneath(root, path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
		data, err := file.ReadBeneath(root, path, setupFileLimit)
		return data, err == nil, err
	}
}

// wants returns what a project wants a user to trust; whether it is trusted is not set. Every word
// of the setup that names a file of the repository includes the file's content; a setup that is
// itself a file must exist.
func wants(p projectFile, read reading, where string) (agency.SetupTrust, error) {
	t := agency.SetupTrust{
		Setup: orEmpty(p.Setup), Copy: orEmpty(p.Copy), Link: orEmpty(p.Link), Hooks: []string{}, Checks: []string{}, Files: []agency.SetupFile{},
	}
	hooks, err := hookFiles(p.hooks, read)
	if err != nil || !p.NeedsTrust() && len(hooks) == 0 {
		return t, err
	}
	if t.Files, err = namedFiles(fileWords(p.Setup), "the setup", read); err != nil {
		return t, err
	}
	if script, isFile := setupScript(p.Setup); isFile && (len(t.Files) == 0 || t.Files[0].Path != script) {
		return t, agency.Errorf(agency.CodeSetupFailed, "the setup %s is not in %s", script, where).
			WithHint("write it, make it executable and commit it: chmod +x %s && git add %s && git commit; or take it back: agency init --setup ''; or go without: agency run --no-setup ...", script, script)
	}
	for _, hook := range hooks {
		t.Hooks = append(t.Hooks, hook.Path)
		t.Files = append(t.Files, hook)
	}
	t.Hash = trustHash(p.data, t.Files)
	return t, nil
}

// namedFiles returns the files of the repository that words of a command line name. of is the name of
// the command line in errors.
func namedFiles(words []string, of string, read reading) ([]agency.SetupFile, error) {
	files := []agency.SetupFile{}
	for _, word := range words {
		path := filepath.Clean(word)
		if !filepath.IsLocal(path) || path == "." {
			continue
		}
		data, found, err := read(path)
		if err != nil {
			return files, agency.Errorf(agency.CodeSetupFailed, "%s names %s, which cannot be used: %w", of, path, err).
				WithHint("it must name regular files of at most %d bytes, not links", setupFileLimit)
		}
		if found {
			files = append(files, agency.SetupFile{Path: path, Content: string(data)})
		}
	}
	return files, nil
}

// checkoutHooks are the hooks that git may run while it makes a worktree.
var checkoutHooks = []string{"post-checkout", "post-index-change", "reference-transaction"}

// hookFiles returns the hooks that git would run from the files of a new worktree.
func hookFiles(folder string, read reading) ([]agency.SetupFile, error) {
	files := []agency.SetupFile{}
	if folder == "" || !filepath.IsLocal(folder) {
		return files, nil
	}
	for _, name := range checkoutHooks {
		path := filepath.Join(folder, name)
		data, found, err := read(path)
		if err != nil {
			return nil, agency.Errorf(agency.CodeSetupFailed, "the hook %s, which core.hooksPath names, cannot be used: %w", path, err).
				WithHint("go without: agency run --no-setup ...; or name a folder of your own: git config core.hooksPath /ABSOLUTE/PATH")
		}
		if found {
			files = append(files, agency.SetupFile{Path: path, Content: string(data)})
		}
	}
	return files, nil
}

// setupScript returns the file of the repository that a setup runs, if it does not run a program
// from PATH.
func setupScript(argv []string) (path string, isFile bool) {
	if len(argv) == 0 || !strings.Contains(argv[0], "/") {
		return "", false
	}
	return filepath.Clean(argv[0]), true
}

// untrusted is the error for a setup that is not trusted. again is the command that trusts it;
// without is a command that continues without it, if there is one.
func untrusted(t *agency.SetupTrust, again, without string) *agency.Error {
	hint := fmt.Sprintf("look: %s --show; allow it: %s", again, again)
	if without != "" {
		hint += "; go without: " + without
	}
	return agency.Errorf(agency.CodeTrustRequired, "in new worktrees the repository wants to %s, %s", t.Wants(), untrustedReason(t)).
		WithHint("%s", hint).
		WithDetail("hash", t.Hash).WithDetail("setup", t.Setup).WithDetail("copy", t.Copy).WithDetail("link", t.Link).WithDetail("files", t.Files)
}

// untrustedReason returns why the user does not trust what a repository wants.
func untrustedReason(t *agency.SetupTrust) string {
	if t.Changed {
		return "which is not what was trusted before"
	}
	return "which is not trusted yet"
}

// TrustRequest asks about what the repository of Dir wants done in new worktrees.
type TrustRequest struct {
	Dir     string
	Base    string // what a run would start from; empty is the repository's own choice, and then Default
	Default string
	Run     string // instead of Base: what a resume of this run would do
	Target  string // instead of Base: what agency verify --into this branch would do
}
